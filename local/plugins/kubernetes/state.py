"""The stored state of an object: the live object, its inputs, and its field manager.

The layout (`__inputs`, `__initialApiVersion`, `__fieldManager` beside the object's own fields) is that of Pulumi's
plugin, so that a stack can switch between the two.
"""

import base64
from typing import Any

from local.plugins.kubernetes.objects import SECRET, SERVER_FIELDS, Kind, at
from local.plugins.kubernetes.values import UNKNOWN, Json, Secret, has_unknown, mark_like, plain

_INPUTS, _API_VERSION, _MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_DASHED = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
_TO_UNDERSCORES = {name: name.replace("-", "_") for name in _DASHED}
_TO_DASHES = {underscored: name for name, underscored in _TO_UNDERSCORES.items()}


def from_program(inputs: Json) -> Json:
    """Inputs with Kubernetes' names: SDKs write `x_kubernetes_...` for `x-kubernetes-...` of the schemas."""
    result: Json = _rename(inputs, _TO_DASHES)
    return result


def _rename(value: Any, names: dict[str, str]) -> Any:
    match value:
        case Secret():
            return Secret(_rename(value.value, names))
        case dict():
            return {names.get(key, key): _rename(item, names) for key, item in value.items()}
        case list():
            return [_rename(item, names) for item in value]
    return value


def as_stored(inputs: Json) -> Json:
    """Inputs without marks as the server stores them: a Secret's `stringData` is part of `data`, in base64.

    So a refresh shows `data`. Unknown inputs stay as in the program (pulumi-kubernetes 4.32,
    provider/pkg/clients/unstructured.go, normalizeSecretStringData; provider/pkg/provider/provider.go,
    normalizeInputs).
    """
    text = inputs.get("stringData")
    if Kind.of_object(inputs) != SECRET or not isinstance(text, dict) or not text or has_unknown(inputs):
        return inputs
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in text.items()}
    kept = {key: value for key, value in inputs.items() if key != "stringData"}
    return kept | {"data": (inputs.get("data") or {}) | encoded}


def hide(obj: Json, like: Json) -> Json:
    """The object with everything marked secret that the inputs mark, and with all data of a Secret."""
    marked: Json = mark_like(obj, like)
    if Kind.of_object(plain({key: obj.get(key) for key in ("apiVersion", "kind")})) != SECRET:
        return marked
    marked |= {key: Secret(plain(marked[key])) for key in ("data", "stringData") if key in marked}
    if at(plain(marked), "metadata", "annotations", _LAST_APPLIED):
        # `kubectl apply` stores a copy of the data there.
        annotations = marked["metadata"]["annotations"]
        hidden = annotations | {_LAST_APPLIED: Secret(annotations[_LAST_APPLIED])}
        marked["metadata"] = marked["metadata"] | {"annotations": hidden}
    return marked


def pack(live: Json, inputs: Json, manager: str, api_version: str) -> Json:
    """The outputs of a resource: the live object with secrets marked as in the inputs, and our own fields."""
    outputs: Json = _rename(hide(live, inputs), _TO_UNDERSCORES)
    kept = _rename(hide(inputs, inputs), _TO_UNDERSCORES)
    return outputs | {_INPUTS: kept, _API_VERSION: api_version, _MANAGER: manager}


def inputs_of(state: Json) -> Json:
    return from_program(state.get(_INPUTS) or {})


def manager_of(state: Json) -> str:
    return str(plain(state.get(_MANAGER)) or "")


def api_version_of(state: Json) -> str:
    return str(plain(state.get(_API_VERSION)) or "")


def live_of(state: Json) -> Json:
    """The live object as last seen, without marks."""
    kept = (_INPUTS, _API_VERSION, _MANAGER)
    result: Json = plain(from_program({key: value for key, value in state.items() if key not in kept}))
    return result


def predict_create(obj: Json) -> Json:
    """An object in a preview of its creation: values that only the server can set are unknown.

    Without these, a program that reads `metadata["uid"]` or `status` would fail in previews.
    """
    unknown = dict.fromkeys(("creationTimestamp", "generation", "resourceVersion", "uid"), UNKNOWN)
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in SERVER_FIELDS}
    return obj | {"metadata": metadata | unknown, "status": UNKNOWN}


def foresee_update(obj: Json, live: Json) -> Json:
    """An object in a preview of its update if unknown inputs make a dry run impossible."""
    kept = {key: value for key, value in live.get("metadata", {}).items() if key in ("creationTimestamp", "uid")}
    unknown = dict.fromkeys(("generation", "resourceVersion"), UNKNOWN)
    return obj | {"metadata": obj.get("metadata", {}) | kept | unknown, "status": UNKNOWN}
