"""A cache for what is derived from the settings of a stack."""

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from stacks.settings import StackSettings

Parts = TypeVarTuple("Parts")
Result = TypeVar("Result")


def cached(function: Callable[[StackSettings, *Parts], Result]) -> Callable[[StackSettings, *Parts], Result]:
    """Caches the result of a function of a stack, or of a stack and some of its tenants and RayClusters.

    All callers get the same object: none of them may change it.
    """

    @functools.wraps(function)
    def kept(stack: StackSettings, *parts: *Parts) -> Result:
        # Settings have no hash. An id is unique while its object lives, and the cache keeps a reference to the object.
        key = (function, id(stack), *map(id, parts))
        if key not in stack.kept:
            stack.kept[key] = function(stack, *parts), stack, parts
        result: Result = stack.kept[key][0]
        return result

    return kept
