"""A key before the applications of a service: what the pods of its RayCluster have for it. Pure functions."""

from collections.abc import Iterator

from components import payloads
from components.external_cluster.settings import SecretKeySettings
from components.ray_cluster.settings import OwnedClusterSettings
from core.body import Body
from core.problems import Problem
from kuberay.serve_config import ServeConfigSettings

MODULE, FUNCTION = "require_key", "middlewares"
"""The program and its function, which the proxies call."""

FOLDER = "/etc/ray-platform/serve"
"""Folder of Ray's containers with the program and the keys."""

VOLUME = "serve-api-key"

LABELS = {"app.kubernetes.io/part-of": "ray-platform", "app.kubernetes.io/component": VOLUME}

_CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
"""Function that returns what Ray puts before its proxy (python/ray/serve/_private/constants.py)."""

_PAST_THE_PROXY = ("RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_ENABLE_DIRECT_INGRESS")
"""Variables with which requests do not pass Ray's own proxy (the same file, Ray 2.60)."""


def config_map(service: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _name(service), "labels": dict(LABELS)},
        "data": {f"{MODULE}.py": payloads.text(MODULE)},
    }


def with_key(cluster: OwnedClusterSettings, key: SecretKeySettings | None) -> OwnedClusterSettings:
    """The RayCluster of a service whose proxies ask for a key."""
    if key is None:
        return cluster
    sources = [
        {"configMap": {"name": _name(cluster.name)}},
        {"secret": {"name": key.name, "items": [{"key": key.key, "path": "keys"}]}},
    ]
    paths = [FOLDER, *([cluster.env["PYTHONPATH"]] if cluster.env.get("PYTHONPATH") else [])]
    return cluster.model_copy(
        update={
            "volumes": (*cluster.volumes, {"name": VOLUME, "projected": {"sources": sources}}),
            "volume_mounts": (*cluster.volume_mounts, {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}),
            "env": {**cluster.env, _CALLBACK: f"{MODULE}:{FUNCTION}", "PYTHONPATH": ":".join(paths)},
        }
    )


def problems_of_key(config: ServeConfigSettings, spec: Body) -> Iterator[Problem]:
    """Settings with which requests would pass without the key; paths in the service's settings. `spec`: that of its
    rendered RayCluster."""
    grpc = config.grpc_options
    if grpc and grpc.grpc_servicer_functions:
        message = "gRPC would pass without a key, because Ray asks for it in HTTP requests only: remove it, or apiKey"
        yield Problem(("serveConfigV2", "grpc_options"), None, message, "service-api-key")
    for group in (spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())):
        variables = group["template"]["spec"]["containers"][0].get("env") or ()
        env = {each["name"]: str(each.get("value", "")) for each in variables}
        undone = [name for name in _PAST_THE_PROXY if env.get(name, "0") != "0"]
        undone += [] if env.get(_CALLBACK) == f"{MODULE}:{FUNCTION}" else [_CALLBACK]
        undone += [] if env.get("PYTHONPATH", "").split(":")[0] == FOLDER else ["PYTHONPATH"]
        for name in undone:
            advice = (
                ", or set it in env of the cluster, which keeps the program's folder" if name == "PYTHONPATH" else ""
            )
            message = f"variable {name} of {group.get('groupName', 'the head')} would undo it: remove it{advice}"
            yield Problem(("apiKey",), None, message, "service-api-key")


def _name(service: str) -> str:
    return f"{service}-api-key"
