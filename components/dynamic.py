"""The base of dynamic resources, whose providers are part of this program."""

import pickle
from typing import Any

import pulumi.dynamic


class Resource(pulumi.dynamic.Resource):
    """A dynamic resource without a limit on their number in a stack.

    For each dynamic resource Pulumi's SDK wraps a method of the pickler and does not remove the wrapper (3.259,
    pulumi/dynamic/dynamic.py, serialize_provider). After some nine hundred resources Python's recursion limit is
    reached.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pickler: Any = pickle._Pickler
        original = pickler._batch_setitems
        try:
            super().__init__(*args, **kwargs)
        finally:
            pickler._batch_setitems = original
