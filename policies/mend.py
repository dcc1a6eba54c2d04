"""Puts into a resource's properties what remedies say, and leaves all else as the engine told it: marks of secrets and
of what is not known, assets, references."""

from collections.abc import Iterable

from google.protobuf import json_format, struct_pb2

from .decode import SECRET, SIGNATURE
from .values import Change


def mended(properties: struct_pb2.Struct, changes: Iterable[Change]) -> struct_pb2.Struct:
    """The properties with the changes."""
    made = struct_pb2.Value(struct_value=properties)
    for change in changes:
        held: struct_pb2.Value | None = made
        for step in change.path:
            held = None if held is None else _below(held, step)
        if held is not None:
            json_format.ParseDict(change.value, held)
    return made.struct_value


def _below(value: struct_pb2.Value, step: str | int) -> struct_pb2.Value | None:
    """The value below, made where nothing stands; None where what stands there holds no such thing."""
    if value.WhichOneof("kind") in (None, "null_value"):
        value.struct_value.SetInParent()
    if value.WhichOneof("kind") == "struct_value" and isinstance(step, str):
        fields = value.struct_value.fields
        secret = SIGNATURE in fields and fields[SIGNATURE].string_value == SECRET
        return _below(fields["value"], step) if secret else fields[step]
    if value.WhichOneof("kind") == "list_value" and isinstance(step, int):
        return value.list_value.values[step]
    return None
