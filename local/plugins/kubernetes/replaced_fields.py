"""Fields whose change replaces an object, because they are immutable in the API server (or for Pulumi).

The list is that of Pulumi's plugin (provider/pkg/provider/diff.go, version 4.32), so that both previews report
"replace" for the same changes. `[*]` matches every item of a list.
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

    They include the data of a ConfigMap or Secret unless the provider is configured to treat these as mutable, or if
    the object itself has `immutable: true`.
    """
    kind = Kind.of_object(obj)
    fields = [*_IDENTITY, *_REPLACED.get((kind.group, kind.kind), ())]
    immutable = obj.get("immutable") is True
    if kind == SECRET and (immutable or not secret_mutable):
        fields += ["data", "stringData"]
    if kind == CONFIG_MAP and (immutable or not config_map_mutable):
        fields += ["data", "binaryData"]
    return [_parse(field) for field in fields]


def _parse(field: str) -> Path:
    return tuple(part for key in field.split(".") for part in ((key[:-3], "[*]") if key.endswith("[*]") else (key,)))


def touches(path: Path, value: Any, field: Path) -> bool:
    """Whether a change of `value` at `path` changes `field`: above it, at it, or within it."""
    for step, expected in zip(path, field, strict=False):
        if step != expected and not (expected == "[*]" and isinstance(step, int)):
            return False
    return _has(value, field[len(path) :])


def _has(value: Any, rest: Path) -> bool:
    if not rest:
        return True
    if rest[0] == "[*]":
        return isinstance(value, list) and any(_has(item, rest[1:]) for item in value)
    return isinstance(value, dict) and rest[0] in value and _has(value[rest[0]], rest[1:])
