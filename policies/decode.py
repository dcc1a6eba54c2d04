"""Decodes objects that Pulumi's engine passes to policy packs, with markers for secrets and unknown values."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

from policies.cml import cluster_on_cml
from policies.values import UNKNOWN, Change, Object, Secret

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (the mark of one)
"""Key and value that mark special mappings (pulumi sdk/go/common/resource/sig/sig.go)."""

_UNKNOWNS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""Sentinels for unknown values, one for each type (pulumi sdk/go/common/resource/plugin/rpc.go)."""

_TOKEN = re.compile(r"kubernetes:(?:core/)?(?P<version>(?:[^:/]+/)?v\d\w*):(?P<kind>\w+)")
"""Type token of a resource that is one Kubernetes object."""

_CLUSTER_ON_CML = "pulumi-python:dynamic/ray-platform:CmlNodes"
"""Type token of the resource that has the applications of a cluster on Cloudera ML (components/dynamic/cml.py)."""

_NO_OBJECTS = ("helm.sh/", "kustomize/", "yaml/")
"""Versions of resources that create objects: either each object is a resource itself, or Helm creates it."""

_UNJUDGED = ("CustomResourceDefinition",)
"""Kinds without rules, of a megabyte each."""


def judged_object(type_: str, properties: struct_pb2.Struct, urn: str, protect: bool) -> Object | None:
    """The Kubernetes object of a resource, or its cluster on Cloudera ML; None if no rule applies to it.

    `*Patch` resources are not judged: they have only some fields of an object.
    """
    if type_ == _CLUSTER_ON_CML:
        return Object(cluster_on_cml(decoded(properties)), urn, protected=protect)
    found = _TOKEN.fullmatch(type_)
    if found is None or found["version"].startswith(_NO_OBJECTS):
        return None
    if found["kind"] in _UNJUDGED or found["kind"].endswith("Patch"):
        return None
    body = {"apiVersion": found["version"], "kind": found["kind"], **decoded(properties)}
    return Object(body, urn, protected=protect)


def decoded(properties: struct_pb2.Struct) -> Mapping[str, Any]:
    """The properties of a resource, without null values."""
    values = {key: _value(value) for key, value in properties.fields.items()}
    return {key: value for key, value in values.items() if value is not None}


def _value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "number_value":
        # Protobuf passes all numbers as floating-point numbers.
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_value(each) for each in value.list_value.values]
    if kind == "struct_value":
        return _mapping(value.struct_value)
    return None


def _mapping(struct: struct_pb2.Struct) -> Any:
    if SIGNATURE not in struct.fields:
        return decoded(struct)
    if struct.fields[SIGNATURE].string_value == SECRET:
        return Secret(_value(struct.fields["value"]))
    # Assets, archives and references to resources, which no Kubernetes object has.
    return UNKNOWN


def mended(properties: struct_pb2.Struct, changes: Iterable[Change]) -> struct_pb2.Struct:
    """Applies the changes to the properties."""
    root = struct_pb2.Value(struct_value=properties)
    for change in changes:
        target: struct_pb2.Value | None = root
        for step in change.path:
            target = None if target is None else _below(target, step)
        if target is not None:
            json_format.ParseDict(change.value, target)
    return root.struct_value


def _below(value: struct_pb2.Value, step: str | int) -> struct_pb2.Value | None:
    """The value below, created if missing; None if the existing value has another type."""
    if value.WhichOneof("kind") in (None, "null_value"):
        value.struct_value.SetInParent()
    if value.WhichOneof("kind") == "struct_value":
        fields = value.struct_value.fields
        if SIGNATURE in fields and fields[SIGNATURE].string_value == SECRET:
            return _below(fields["value"], step)
        return fields[step] if isinstance(step, str) else None
    if value.WhichOneof("kind") == "list_value" and isinstance(step, int):
        return value.list_value.values[step]
    return None
