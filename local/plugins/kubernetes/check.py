"""Validates a program's inputs and completes them with a name and a namespace."""

from typing import Any

from pulumi.runtime.proto.provider_pb2 import CheckRequest

from local.plugins.kubernetes import wait_for
from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.errors import ApiError, NoSuchKindError, RefusedError, UnreachableError
from local.plugins.kubernetes.objects import (
    AUTONAMED,
    SERVER_FIELDS,
    Kind,
    at,
    is_autonamed,
    is_kind_of_list,
    name_of,
    namespace_of,
    unique_name,
    urn_name,
)
from local.plugins.kubernetes.state import as_stored, from_program, hide
from local.plugins.kubernetes.values import UNKNOWN, Json, has_unknown, plain

_AUTONAMING = CheckRequest.AutonamingOptions


def check(
    urn: str, olds: Json, news: Json, seed: bytes, autonaming: _AUTONAMING | None, cluster: Cluster | None
) -> Json:
    """The inputs that are compared, sent and stored: the program's, with apiVersion, kind, name and namespace.

    A missing name is generated once and then kept from the old inputs. Without a cluster the old inputs decide whether
    the kind has namespaces.

    Raises:
        RefusedError: this provider cannot manage such an object.
    """
    kind = Kind.of_urn(urn)
    _refuse_unsupported(kind)
    inputs: Json = {"apiVersion": kind.api_version, "kind": kind.kind} | plain(from_program(news))
    if isinstance(inputs.get("metadata", {}), dict):
        old = plain(from_program(olds))
        metadata = {key: value for key, value in inputs.get("metadata", {}).items() if key not in SERVER_FIELDS}
        inputs["metadata"] = metadata
        if "name" not in metadata:
            _name(urn, old, inputs, seed, autonaming)
        if not metadata.get("namespace") and (namespace := _namespace(inputs, old, cluster)):
            metadata["namespace"] = namespace
        if not has_unknown(at(metadata, "annotations", wait_for.ANNOTATION)):
            wait_for.expectations(inputs)
    return hide(as_stored(inputs), news)


def _refuse_unsupported(kind: Kind) -> None:
    if is_kind_of_list(kind):
        raise RefusedError(
            "list resources exist for compatibility with YAML manifests and Helm charts, and cannot be created "
            "directly. Use the underlying resource type instead"
        )
    if kind.builtin and kind.kind.endswith("Patch"):
        raise RefusedError(f"the stand-in does not manage {kind.kind}; use the real plugin for Patch resources")
    if kind.group == "helm.sh":
        raise RefusedError(f"the stand-in does not do Helm ({kind}); use the real plugin")


def _name(urn: str, old: Json, inputs: Json, seed: bytes, autonaming: _AUTONAMING | None) -> None:
    metadata: dict[str, Any] = inputs["metadata"]
    if metadata.get("generateName"):
        raise RefusedError("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
    if metadata.get("annotations") is UNKNOWN:
        return
    if old and is_autonamed(old):
        metadata["name"] = name_of(old)
    elif autonaming and autonaming.mode == _AUTONAMING.DISABLE:
        raise RefusedError("autonaming is disabled, resource requires the .metadata.name field to be set")
    else:
        proposed = autonaming.proposed_name if autonaming else ""
        metadata["name"] = proposed or unique_name(f"{urn_name(urn)}-", seed)
    metadata["annotations"] = metadata.get("annotations", {}) | {AUTONAMED: "true"}


def _namespace(inputs: Json, old: Json, cluster: Cluster | None) -> str:
    if cluster is None:
        return namespace_of(old)
    try:
        namespaced = cluster.discovery.find(Kind.of_object(inputs)).namespaced
    except (NoSuchKindError, ApiError, UnreachableError):
        # Most likely a custom resource whose CRD comes with the same program. Most have namespaces; for the others the
        # server drops it, and so does the comparison with the program's later inputs.
        namespaced = True
    return cluster.namespace if namespaced else ""
