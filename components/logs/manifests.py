"""The collector in a pod of Ray, as a native sidecar. Pure functions.

A native sidecar does not keep a pod from ending, and ends after the other containers, so it reads their last lines.
"""

from components.bodies import restricted_sidecar
from components.logs.settings import LogsSettings, SecretKey
from core.body import Body
from core.quantities import amount
from kuberay.running import LOGS

NAME = "log-collector"
"""Name of the container and of its volume with the configuration."""

CONFIG_MAP = "ray-log-collector"
"""Name of the ConfigMap in the namespace of each tenant. Pods read it when they start."""

CONFIG_FILE = "config.yaml"

FOLDER = "/etc/otelcol"

RAY_FOLDER = "/tmp/ray"  # noqa: S108 (Ray's own folder)

STATE_VOLUME, CA_VOLUME = f"{NAME}-state", f"{NAME}-ca"

LAST_SECONDS = 5
"""Seconds from the deletion of its pod for which the collector reads on at least. A poll and the last record take one
and a half; processes of Ray write for two or three more."""

STATE = "/var/lib/otelcol"
"""Folder for the places up to which files were read, and for records that wait."""

CA_FILE = "/etc/otelcol-ca/ca.crt"

OF_THE_POD = {
    "POD_NAMESPACE": "metadata.namespace",
    "POD_NAME": "metadata.name",
    "NODE_NAME": "spec.nodeName",
    "RAY_CLUSTER": "metadata.labels['ray.io/cluster']",
    "RAY_NODE_TYPE": "metadata.labels['ray.io/node-type']",
    "RAY_GROUP": "metadata.labels['ray.io/group']",
}
"""Variables with fields of the pod. KubeRay sets the labels (ray-operator/controllers/ray/common/pod.go: labelPod)."""

_OF_MEMORY = 0.8
"""Share of its memory from which the collector frees some, as OpenTelemetry recommends for GOMEMLIMIT."""

RAY_MOUNT: Body = {"name": LOGS, "mountPath": RAY_FOLDER}


def sidecar(settings: LogsSettings, user: int | None, pull_policy: str) -> Body:
    """The init container. `user`: that of Ray's container, whose files it reads; None: that of the image."""
    amounts = settings.resources.model_dump()
    return {
        "name": NAME,
        "image": settings.image,
        "imagePullPolicy": pull_policy,
        "restartPolicy": "Always",
        "args": [f"--config={FOLDER}/{CONFIG_FILE}"],
        "env": _env(settings),
        # The kubelet ends the collector after Ray, but not before this time is over.
        "lifecycle": {"preStop": {"sleep": {"seconds": LAST_SECONDS}}},
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "securityContext": restricted_sidecar(user),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {**RAY_MOUNT, "readOnly": True},
            {"name": NAME, "mountPath": FOLDER, "readOnly": True},
            {"name": STATE_VOLUME, "mountPath": STATE},
            *([{"name": CA_VOLUME, "mountPath": CA_FILE.rpartition("/")[0], "readOnly": True}] if settings.ca else []),
        ],
    }


def volumes(settings: LogsSettings) -> tuple[Body, ...]:
    made: list[Body] = [
        {"name": LOGS, "emptyDir": {}},
        {"name": NAME, "configMap": {"name": CONFIG_MAP}},
        {"name": STATE_VOLUME, "emptyDir": {}},
    ]
    if settings.ca:
        items = [{"key": settings.ca.key, "path": CA_FILE.rpartition("/")[2]}]
        made.append({"name": CA_VOLUME, "secret": {"secretName": settings.ca.secret, "items": items}})
    return tuple(made)


def variables_of_ray(settings: LogsSettings) -> dict[str, str]:
    """Variables of Ray's container (Ray: src/ray/common/ray_config_def.h, python/ray/_private/node.py)."""
    events = {"RAY_enable_export_api_write": "1"} if settings.events else {}
    if settings.rotation is None:
        return events
    size, files = int(amount(settings.rotation.size)), settings.rotation.files
    return {**events, "RAY_ROTATION_MAX_BYTES": str(size), "RAY_ROTATION_BACKUP_COUNT": str(files)}


def _env(settings: LogsSettings) -> list[Body]:
    found: list[Body] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name, field in OF_THE_POD.items()
    ]
    for name, value in settings.headers.items():
        if isinstance(value, SecretKey):
            reference = {"secretKeyRef": {"name": value.secret, "key": value.key}}
            found.append({"name": header_variable(name), "valueFrom": reference})
    limit = int(amount(settings.resources.memory) * int(_OF_MEMORY * 100) / 100)
    return [*found, {"name": "GOMEMLIMIT", "value": str(limit)}]


def header_variable(name: str) -> str:
    """The container's variable with the value of a header from a Secret."""
    return f"HEADER_{''.join(each if each.isalnum() else '_' for each in name).upper()}"
