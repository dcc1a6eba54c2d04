"""What follows from a stack's settings, worked out once: they are never changed once read."""

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from .settings import StackSettings

Parts = TypeVarTuple("Parts")
Result = TypeVar("Result")


def once(function: Callable[[StackSettings, *Parts], Result]) -> Callable[[StackSettings, *Parts], Result]:
    """Keep what a function makes of a stack, or of some of its tenants and RayClusters with it.

    All callers get the same object: none of them may change it.
    """

    @functools.wraps(function)
    def kept(stack: StackSettings, *parts: *Parts) -> Result:
        # Settings have no hash. No other object has one's id while it lives, and what is kept keeps it alive.
        key = (function, id(stack), *map(id, parts))
        if key not in stack.kept:
            stack.kept[key] = function(stack, *parts), stack, parts
        result: Result = stack.kept[key][0]
        return result

    return kept
