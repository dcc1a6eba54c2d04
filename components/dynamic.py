"""The base of resources whose providers are this program's own."""

import pickle
from typing import Any

import pulumi.dynamic


class Resource(pulumi.dynamic.Resource):
    """A dynamic resource of which a stack may have any number.

    Pulumi's SDK leaves a wrapper around a method of the pickler behind for each dynamic resource, and around that the
    next one (3.259, pulumi/dynamic/dynamic.py, serialize_provider): after some nine hundred Python refuses to recurse.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pickler: Any = pickle._Pickler
        original = pickler._batch_setitems
        try:
            super().__init__(*args, **kwargs)
        finally:
            pickler._batch_setitems = original
