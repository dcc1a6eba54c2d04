"""Property values on the wire (protobuf structs with Pulumi's markers) and in Python.

The markers are those of Pulumi's wire format (sdk/go/common/resource/plugin/rpc.go in github.com/pulumi/pulumi).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.struct_pb2 import NullValue, Struct, Value

Json = dict[str, Any]
"""A Kubernetes object, or a part of one, as parsed from JSON."""

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a marker of the wire format, not a secret
_UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        _UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class Unknown:
    """A value that is not known in a preview."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in the state and hides on the terminal."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


def decode(struct: Struct) -> Json:
    """Reads a struct: markers become `UNKNOWN` and `Secret`, whole numbers integers (the wire has only floats)."""
    return {key: _decode(value) for key, value in struct.fields.items()}


def _decode(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "struct_value":
        fields = value.struct_value.fields
        if _SIGNATURE not in fields:
            return decode(value.struct_value)
        if fields[_SIGNATURE].string_value == _SECRET:
            return Secret(_decode(fields["value"]))
        raise ValueError("a Kubernetes object cannot hold an asset, an archive or a reference to a resource")
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return value.bool_value if kind == "bool_value" else None


def encode(values: Mapping[str, Any]) -> Struct:
    """Writes a mapping as a struct, with the wire's markers.

    Values are written in place: a separately created value would be copied into its parent message, at each level with
    everything below it.
    """
    struct = Struct()
    _write_fields(struct, values)
    return struct


def _write_fields(struct: Struct, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        _write(struct.fields[key], value)


def _write(message: Value, value: Any) -> None:
    match value:
        case None:
            message.null_value = NullValue.NULL_VALUE
        case bool():
            message.bool_value = value
        case str():
            message.string_value = value
        case int() | float():
            message.number_value = value
        case Unknown():
            message.string_value = _UNKNOWN_STRING
        case Secret():
            _write_fields(message.struct_value, {_SIGNATURE: _SECRET, "value": value.value})
        case list():
            message.list_value.SetInParent()
            for item in value:
                _write(message.list_value.values.add(), item)
        case dict():
            message.struct_value.SetInParent()
            _write_fields(message.struct_value, value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be a property of a Kubernetes object")


def plain(value: Any) -> Any:
    """The value without marks of secrets and without nulls, which mean the same to Kubernetes as absence."""
    match value:
        case Secret():
            return plain(value.value)
        case dict():
            return {key: plain(item) for key, item in value.items() if _present(item)}
        case list():
            return [plain(item) for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """The value without nulls; marks of secrets stay."""
    match value:
        case Secret():
            return Secret(without_nulls(value.value))
        case dict():
            return {key: without_nulls(item) for key, item in value.items() if _present(item)}
        case list():
            return [without_nulls(item) for item in value]
    return value


def _present(value: Any) -> bool:
    return (value.value if isinstance(value, Secret) else value) is not None


def has_unknown(value: Any) -> bool:
    """Whether anything within the value is unknown."""
    match value:
        case Unknown():
            return True
        case Secret():
            return has_unknown(value.value)
        case dict():
            return any(map(has_unknown, value.values()))
        case list():
            return any(map(has_unknown, value))
    return False


def has_secret(value: Any) -> bool:
    """Whether anything within the value is marked secret."""
    match value:
        case Secret():
            return True
        case dict():
            return any(map(has_secret, value.values()))
        case list():
            return any(map(has_secret, value))
    return False


def mark_like(value: Any, pattern: Any) -> Any:
    """The value, marked secret where the pattern is; an item of a list that has changed its length hides the list."""
    match pattern:
        case Secret():
            return value if isinstance(value, Secret) else Secret(value)
        case dict() if isinstance(value, dict):
            return {key: mark_like(item, pattern.get(key)) for key, item in value.items()}
        case list() if isinstance(value, list) and len(value) == len(pattern):
            return [mark_like(item, like) for item, like in zip(value, pattern, strict=True)]
        case list() if has_secret(pattern):
            return Secret(value)
    return value
