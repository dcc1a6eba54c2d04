"""Fields whose change replaces an object, because the API server does not let them change (or Pulumi will not).

The list is that of Pulumi's plugin (provider/pkg/provider/diff.go, version 4.32), so that a preview here says
"replace" where one there does. `[*]` stands for every item of a list.
"""

from typing import Any

from local.plugins.kubernetes.objects import CONFIG_MAP, SECRET, Kind
from local.plugins.kubernetes.values import Json

Path = tuple[str | int, ...]

_IDENTITY = ("metadata.name", "metadata.namespace")

_CONTAINER = (
    "args", "command", "env", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "ports", "readinessProbe",
    "resources", "securityContext", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty",
    "volumeDevices", "volumeMounts", "workingDir",
)  # fmt: skip

_POD = (
    "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
    "hostIPC", "hostNetwork", "hostPID", "hostname", "imagePullSecrets", "nodeName", "nodeSelector", "overhead",
    "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "restartPolicy", "runtimeClassName",
    "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds", "volumes",
)  # fmt: skip

_VOLUME = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip


def _spec(*fields: str) -> tuple[str, ...]:
    return tuple(f"spec.{field}" for field in fields)


_REPLACED: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "DaemonSet"): _spec("selector"),
    ("apps", "Deployment"): _spec("selector"),
    ("apps", "StatefulSet"): _spec(
        "podManagementPolicy", "revisionHistoryLimit", "selector", "serviceName", "volumeClaimTemplates"
    ),
    ("batch", "Job"): _spec("completions", "parallelism", "selector", "template"),
    ("", "PersistentVolume"): _spec(*_VOLUME),
    ("", "PersistentVolumeClaim"): _spec("accessModes", "selector", "storageClassName", "volumeName"),
    ("", "Pod"): _spec(
        *_POD, *(f"{group}[*].{field}" for group in ("containers", "initContainers") for field in _CONTAINER)
    ),
    ("", "ResourceQuota"): _spec("scopes"),
    ("", "Secret"): ("type",),
    ("", "Service"): _spec("clusterIP"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
}


def replaced_fields(obj: Json, *, config_map_mutable: bool, secret_mutable: bool) -> list[Path]:
    """The fields of an object whose change replaces it.

    A ConfigMap's or Secret's data is among them unless the provider was told that these are mutable, or when the
    object itself says `immutable: true`.
    """
    kind = Kind.of_object(obj)
    said = [*_IDENTITY, *_REPLACED.get((kind.group, kind.kind), ())]
    immutable = obj.get("immutable") is True
    if kind == SECRET and (immutable or not secret_mutable):
        said += ["data", "stringData"]
    if kind == CONFIG_MAP and (immutable or not config_map_mutable):
        said += ["data", "binaryData"]
    return [_parse(field) for field in said]


def _parse(field: str) -> Path:
    return tuple(part for key in field.split(".") for part in ((key[:-3], "[*]") if key.endswith("[*]") else (key,)))


def touches(path: Path, value: Any, field: Path) -> bool:
    """Whether a change of `value` at `path` changes `field`: above it, at it, or within it."""
    for step, wanted in zip(path, field, strict=False):
        if step != wanted and not (wanted == "[*]" and isinstance(step, int)):
            return False
    return _has(value, field[len(path) :])


def _has(value: Any, rest: Path) -> bool:
    if not rest:
        return True
    if rest[0] == "[*]":
        return isinstance(value, list) and any(_has(item, rest[1:]) for item in value)
    return isinstance(value, dict) and rest[0] in value and _has(value[rest[0]], rest[1:])
