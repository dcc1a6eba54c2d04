"""Rules on what came with KubeRay 1.7: network policies, mTLS, the history server, GCS storage, priorities of groups.

They follow ValidateRayClusterSpec and what it calls (ray-operator/controllers/ray/utils/validation.go at v1.7.0). An
operator of an earlier release has none of these fields (releases.py).
"""

from collections.abc import Iterator, Mapping

from core.body import Body
from core.problems import Path
from core.versions import version_tuple
from kuberay.formats import generic_version, is_dns_1123_label, older
from kuberay.releases import FIRST_RAY_WITH_GROUP_PRIORITY
from kuberay.rules import Cluster, Found, problem

ROCKSDB = "rocksdb"

_START_COMMAND = "KUBERAY_GEN_AUTOSCALER_START_CMD"

_TLS_VARIABLES = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
_TLS_VOLUME, _TLS_FOLDER = "ray-tls", "/etc/ray/tls"

_GCS_VARIABLES = ("RAY_gcs_storage", "RAY_gcs_storage_path")
_GCS_VOLUME, _GCS_FOLDER = "gcs-storage", "/data/gcs"

_COLLECTOR = "ray-history-collector"

_OF_THE_COLLECTOR = (
    "POD_IP", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_ROLE", "OWNER_KIND", "OWNER_NAME",
    "EVENTS_PORT",
)  # fmt: skip
"""Variables that KubeRay sets in the collector (constant.go)."""

_BACKEND = "STORAGE_BACKEND"

_OF_BACKENDS: Mapping[str, tuple[str, ...]] = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
"""Variables that a backend of the history server needs. Azure's depend on its authentication."""

_AZURE_STRING, _AZURE_ADDRESS = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"


def check(cluster: Cluster) -> Found:
    """All rules on the new fields of a RayCluster's spec."""
    if not cluster.operator.since("1.7"):
        return
    for path, group in cluster.groups:
        if "groupName" in group:
            yield from _priority(cluster, path, group)
    yield from _gcs_storage(cluster)
    for at, name in _variables(cluster.spec.get("autoscalerOptions", {}), (*cluster.path, "autoscalerOptions")):
        if name == _START_COMMAND:
            message = f"KubeRay sets {_START_COMMAND} itself: remove it"
            yield problem("autoscaler-start-command", at, name, message)
    yield from _history_server(cluster)
    yield from _network_policy(cluster)
    yield from _tls(cluster)


def _gate(cluster: Cluster, field: str, gate: str) -> Found:
    if not cluster.operator.enabled(gate):
        message = f"{field} needs the operator's feature gate {gate}: enable it, or remove {field}"
        yield problem("option-feature-gate", (*cluster.path, field), None, message)


def _priority(cluster: Cluster, path: Path, group: Body) -> Found:
    """validateWorkerGroupPriority."""
    priority = group.get("priority", 0)
    if priority == 0:
        return
    version = generic_version(cluster.spec.get("rayVersion", ""))
    at = (*path, "priority")
    if version is None or older(version, version_tuple(FIRST_RAY_WITH_GROUP_PRIORITY)):
        message = f"priority needs Ray {FIRST_RAY_WITH_GROUP_PRIORITY} or later: set rayVersion, or remove priority"
        yield problem("group-priority", at, priority, message)
    elif not cluster.sets_autoscaler_v2:
        message = "priority of a group needs autoscaler v2: set autoscalerOptions.version to v2"
        yield problem("group-priority", at, priority, message)


def _gcs_storage(cluster: Cluster) -> Found:
    """validateGcsFaultToleranceBackend."""
    name, rule = "gcsFaultToleranceOptions", "gcs-storage"
    options, at = cluster.spec.get(name, {}), (*cluster.path, name)
    if options.get("backend", "redis") != ROCKSDB:
        if "storage" in options:
            message = f"storage is of the backend {ROCKSDB} alone: remove it, or set backend to {ROCKSDB}"
            yield problem(rule, (*at, "storage"), None, message)
        return
    gate = "GCSFaultToleranceEmbeddedStorage"
    if not cluster.operator.enabled(gate):
        message = f"the backend {ROCKSDB} needs the operator's feature gate {gate}: enable it, or use redis"
        yield problem("option-feature-gate", (*at, "backend"), ROCKSDB, message)
    for field in ("redisAddress", "redisUsername", "redisPassword", "externalStorageNamespace"):
        if options.get(field, "") != "":
            yield problem(rule, (*at, field), None, f"the backend {ROCKSDB} has no Redis: remove {field}")
    storage = options.get("storage", {})
    if storage.get("claimName"):
        for field in ("size", "storageClassName", "accessModes"):
            if field in storage and storage[field] != []:
                message = f"the existing claim determines {field}: remove it, or claimName"
                yield problem(rule, (*at, "storage", field), storage[field], message)
    head = (*cluster.path, "headGroupSpec", "template", "spec")
    pod = cluster.head["template"].get("spec", {})
    container = (pod.get("containers") or [{}])[0]
    for place, variable in _variables(container, (*head, "containers", 0)):
        if variable in _GCS_VARIABLES:
            message = f"with the backend {ROCKSDB} KubeRay sets {variable} itself: remove it"
            yield problem(rule, place, variable, message)
    yield from _own_mounts(container, (*head, "containers", 0), _GCS_VOLUME, _GCS_FOLDER, rule)
    for index, volume in enumerate(pod.get("volumes", ())):
        if volume["name"] == _GCS_VOLUME:
            message = f"KubeRay uses the volume {_GCS_VOLUME!r} of a head itself: give it another name"
            yield problem(rule, (*head, "volumes", index, "name"), _GCS_VOLUME, message)


def _history_server(cluster: Cluster) -> Found:
    """ValidateRayClusterSpec, validateCollectorOptions."""
    field, rule = "historyServerOptions", "history-server"
    if field not in cluster.spec:
        return
    yield from _gate(cluster, field, "RayClusterHistoryServer")
    at = (*cluster.path, field, "collectorOptions")
    if "collectorOptions" not in cluster.spec[field]:
        yield problem(rule, at, None, "historyServerOptions needs a collector: add collectorOptions")
        return
    options = cluster.spec[field]["collectorOptions"]
    if not options.get("image"):
        yield problem(rule, (*at, "image"), options.get("image"), "the collector has no image: set image")
    variables = {each["name"]: each for each in options.get("env", ())}
    for place, name in _variables(options, at):
        if name in _OF_THE_COLLECTOR:
            yield problem(rule, place, name, f"KubeRay sets {name} of the collector itself: remove it")
    if message := _backend_fault(variables):
        yield problem(rule, (*at, "env"), None, message)
    for path, group in cluster.groups:
        for index, container in enumerate(group["template"].get("spec", {}).get("containers", ())):
            if container["name"] == _COLLECTOR:
                message = f"KubeRay adds a container {_COLLECTOR!r} itself: give this one another name"
                yield problem(rule, (*path, "template", "spec", "containers", index, "name"), _COLLECTOR, message)


def _backend_fault(variables: Mapping[str, Body]) -> str | None:
    backend = variables.get(_BACKEND, {}).get("value", "")
    if not backend:
        return f"the collector does not know where to: set the variable {_BACKEND} to S3, GCS, AzureBlob or AliyunOSS"

    def missing(name: str) -> bool:
        return not (variables.get(name, {}).get("value") or "valueFrom" in variables.get(name, {}))

    needed = _OF_BACKENDS.get(backend.upper(), ())
    if backend.upper() == "AZUREBLOB":
        mode = variables.get("AZURE_STORAGE_AUTH_MODE", {}).get("value", "").strip().lower()
        if mode == "connection_string":
            needed = (_AZURE_STRING,)
        elif mode in ("workload_identity", "default"):
            needed = (_AZURE_ADDRESS,)
        elif missing(_AZURE_STRING) and missing(_AZURE_ADDRESS):
            return f"{_BACKEND} {backend} needs one of two variables: set {_AZURE_STRING} or {_AZURE_ADDRESS}"
    if absent := [name for name in needed if missing(name)]:
        return f"{_BACKEND} {backend} needs more variables: set {', '.join(absent)}"
    return None


def _network_policy(cluster: Cluster) -> Found:
    """validateNetworkPolicy."""
    field, rule = "networkPolicy", "network-policy"
    policy = cluster.spec.get(field)
    if policy is None:
        return
    yield from _gate(cluster, field, "RayClusterNetworkPolicy")
    at, mode = (*cluster.path, field), policy["mode"]
    names = [group["groupName"] for _, group in cluster.groups if "groupName" in group]
    places = [((*at, each), policy[each]) for each in ("head", "worker") if each in policy]
    for index, rules in enumerate(policy.get("workerGroups", ())):
        places.append(((*at, "workerGroups", index), rules))
        if rules["groupName"] not in names:
            message = f"there is no worker group {rules['groupName']!r}: use one of {', '.join(names) or 'none'}"
            yield problem(rule, (*at, "workerGroups", index, "groupName"), rules["groupName"], message)
    for place, rules in places:
        for key, open_in in (("ingressRules", "DenyAllEgress"), ("egressRules", "DenyAllIngress")):
            if rules.get(key) and mode == open_in:
                message = f"mode {mode} restricts nothing of this direction: remove {key}, or change the mode"
                yield problem(rule, (*place, key), None, message)
    for path, group in cluster.groups:
        if "groupName" in group and not is_dns_1123_label(group["groupName"]):
            message = (
                f"{group['groupName']!r} is part of the name of a NetworkPolicy: use at most 63 lower-case letters, "
                "digits and hyphens, no hyphen at an end"
            )
            yield problem(rule, (*path, "groupName"), group["groupName"], message)


def _tls(cluster: Cluster) -> Found:
    """ValidateRayClusterSpec, validateTLSOptions."""
    field, gate = "tlsOptions", "RayClusterMTLS"
    if field not in cluster.spec:
        return
    yield from _gate(cluster, field, gate)
    if not (cluster.spec[field].get("enabled") and cluster.operator.enabled(gate)):
        return
    places: list[tuple[Path, Body]] = [
        ((*path, "template", "spec", "containers", 0), containers[0])
        for path, group in cluster.groups
        if (containers := group["template"].get("spec", {}).get("containers"))
    ]
    places.append(((*cluster.path, "autoscalerOptions"), cluster.spec.get("autoscalerOptions", {})))
    for at, container in places:
        for place, variable in _variables(container, at):
            if variable in _TLS_VARIABLES:
                message = f"with tlsOptions KubeRay sets {variable} itself: remove it"
                yield problem("tls-options", place, variable, message)
        yield from _own_mounts(container, at, _TLS_VOLUME, _TLS_FOLDER, "tls-options")


def _variables(container: Body, at: Path) -> Iterator[tuple[Path, str]]:
    """The environment variables of a container, each with its place."""
    for index, variable in enumerate(container.get("env", ())):
        yield (*at, "env", index), variable["name"]


def _own_mounts(container: Body, at: Path, volume: str, folder: str, rule: str) -> Found:
    """Mounts of a volume, or at a folder, that KubeRay mounts itself."""
    for index, mount in enumerate(container.get("volumeMounts", ())):
        if mount["name"] == volume or mount["mountPath"] == folder:
            message = f"KubeRay mounts its volume {volume!r} at {folder} itself: use another volume and another path"
            yield problem(rule, (*at, "volumeMounts", index), mount["name"], message)
