"""How an object reaches beyond its namespace: the table of all fields that people and code may write.

A field is the namespace's own, or has a function that says what its value reaches. A field that is not in the table is
reported, so that a new one of Kubernetes or KubeRay is judged before it is admitted. The table is written from what
each field does, without the admission policies.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Judged = Iterator[str]

Judge = Callable[[Any, str], Judged]
"""Judges a field's value; the path is for the message."""


def _own(value: Any, at: str) -> Judged:
    """What only the object, its namespace, or pods on its own nodes notice."""
    yield from ()


def _never(value: Any, at: str) -> Judged:
    yield f"{at}: {value}"


def _left(*harmless: Any) -> Judge:
    def judge(value: Any, at: str) -> Judged:
        if value not in harmless:
            yield f"{at}: {value}"

    return judge


def _most(number: int) -> Judge:
    def judge(value: Any, at: str) -> Judged:
        if (value if isinstance(value, int) else len(value)) > number:
            yield f"{at}: more than {number}"

    return judge


Table = Mapping[str, Judge]


def _part(table: Table) -> Judge:
    def judge(value: Any, at: str) -> Judged:
        for name, each in value.items():
            if each in (None, "", False, [], {}):
                continue
            if name not in table:
                yield f"{at}.{name}: a field that nobody has judged"
            else:
                yield from table[name](each, f"{at}.{name}")

    return judge


def _each(judge: Judge) -> Judge:
    def all_of(value: Any, at: str) -> Judged:
        for index, each in enumerate(value):
            yield from judge(each, f"{at}[{index}]")

    return all_of


def _fields(*names: str) -> Table:
    return dict.fromkeys(names, _own)


_READ_BY_NO_CONTROLLER = (
    *("kubectl.kubernetes.io/", "pulumi.com/", "meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"),
    *("app.kubernetes.io/", "prometheus.io/", "ray.io/", "ray-platform/"),
)
"""Prometheus reads its own, to scrape the pod that has them."""

_OF_ONE_POD = ("scheduling.k8s.io/group-name",)
"""The PodGroup of the same namespace, which Volcano writes."""


def _annotations(value: Mapping[str, str], at: str) -> Judged:
    for key in value:
        if "/" in key and not key.startswith(_READ_BY_NO_CONTROLLER) and key not in _OF_ONE_POD:
            yield f"{at}: {key} is for a controller"


_METADATA: Table = {
    **_fields("name", "generateName", "namespace", "labels", "uid", "resourceVersion", "generation"),
    **_fields("creationTimestamp", "managedFields", "ownerReferences", "deletionGracePeriodSeconds", "selfLink"),
    "annotations": _annotations,
    "finalizers": _never,
}

_OWN_CLASSES = ("ray-head", "ray-worker")


def _class_label(value: Mapping[str, str], at: str) -> Judged:
    for key in ("ray.io/priority-class-name", "kueue.x-k8s.io/priority-class"):
        if value.get(key, "") not in ("", *_OWN_CLASSES):
            yield f"{at}: the gang has PriorityClass {value[key]}"


def _no_owner(value: Any, at: str) -> Judged:
    yield f"{at}: an owner of KubeRay's choosing"


def _finalizers_of_ray(value: list[str], at: str) -> Judged:
    for each in value:
        if each != "ray.io/idle-termination-cleanup-finalizer":
            yield f"{at}: {each}"


_OF_RAY_METADATA: Table = {
    **_METADATA,
    "annotations": _own,  # KubeRay copies them to a PodGroup, and to an Ingress, which nobody may ask for
    "labels": _class_label,
    "ownerReferences": _no_owner,
    "finalizers": _finalizers_of_ray,
}


def _toleration(value: Mapping[str, str], at: str) -> Judged:
    key = value.get("key", "")
    if key != "nvidia.com/gpu" and not key.startswith("node.kubernetes.io/"):
        yield f"{at}: tolerates {key or 'everything'}"


def _term(value: Mapping[str, Any], at: str) -> Judged:
    if "namespaceSelector" in value or set(value.get("namespaces", ())) - {"team-access"}:
        yield f"{at}: pods of other namespaces"


_AFFINITY = _part(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": _each(_term),
        "preferredDuringSchedulingIgnoredDuringExecution": _each(_part({"weight": _own, "podAffinityTerm": _term})),
    }
)

_CLAIM = _part(
    {
        "metadata": _part(
            {**_fields("labels", "name", "namespace"), "annotations": _annotations, "finalizers": _never}
        ),
        "spec": _part(_fields("accessModes", "resources", "volumeMode")),
    }
)


def _no_host_path(value: Any, at: str) -> Judged:
    yield f"{POD_SECURITY}{at}: {value}"


POD_SECURITY = "Pod Security: "
"""Before what Pod Security refuses in the pods of an object, if not in the object."""

_VOLUME = _part(
    {
        **_fields("name", "configMap", "downwardAPI", "emptyDir", "image", "persistentVolumeClaim", "projected"),
        **_fields("secret"),
        "hostPath": _no_host_path,
        "ephemeral": _part({"volumeClaimTemplate": _CLAIM}),
        # All others are what the kubelet can reach.
    }
)


def _foreign_volume(value: Mapping[str, Any], at: str) -> Judged:
    yield from (each.replace("a field that nobody has judged", "files of others") for each in _VOLUME(value, at))


_ASKED = _part(
    {
        **_fields("failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"),
        **_fields("terminationGracePeriodSeconds", "exec", "grpc", "sleep"),
        "httpGet": _part({**_fields("port", "path", "scheme", "httpHeaders"), "host": _no_host_path}),
        "tcpSocket": _part({"port": _own, "host": _no_host_path}),
    }
)
"""The kubelet asks, past all NetworkPolicies."""

_SECURITY = _part(
    {
        **_fields("allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser"),
        **_fields("fsGroup", "fsGroupChangePolicy", "supplementalGroups", "supplementalGroupsPolicy"),
        **_fields("seLinuxChangePolicy", "capabilities", "seccompProfile", "appArmorProfile", "seLinuxOptions"),
        **_fields("windowsOptions", "sysctls", "procMount"),
        "privileged": _no_host_path,
    }
)
"""Pod Security judges the others by their values."""

_PORT = _part({**_fields("containerPort", "name", "protocol", "hostIP"), "hostPort": _no_host_path})

_CONTAINER: Table = {
    **_fields("args", "command", "env", "envFrom", "image", "imagePullPolicy", "name", "resizePolicy", "resources"),
    **_fields("restartPolicy", "restartPolicyRules", "stdin", "stdinOnce", "terminationMessagePath", "tty"),
    **_fields("terminationMessagePolicy", "volumeDevices", "volumeMounts", "workingDir"),
    "lifecycle": _part({"postStart": _ASKED, "preStop": _ASKED, "stopSignal": _own}),
    "livenessProbe": _ASKED,
    "readinessProbe": _ASKED,
    "startupProbe": _ASKED,
    "ports": _each(_PORT),
    "securityContext": _SECURITY,
}

DAY = 86400

_POD: Table = {
    **_fields("activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks"),
    **_fields("hostAliases", "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "nodeSelector", "os"),
    **_fields("overhead", "preemptionPolicy", "readinessGates", "resourceClaims", "resources", "restartPolicy"),
    **_fields("runtimeClassName", "schedulingGates", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN"),
    **_fields("shareProcessNamespace", "subdomain", "topologySpreadConstraints", "workloadRef", "schedulingGroup"),
    # Kubernetes refuses a priority other than that of the class.
    **_fields("priority", "ephemeralContainers"),
    "affinity": _part({"nodeAffinity": _own, "podAffinity": _AFFINITY, "podAntiAffinity": _AFFINITY}),
    "containers": _each(_part(_CONTAINER)),
    "initContainers": _each(_part(_CONTAINER)),
    "hostIPC": _no_host_path,
    "hostNetwork": _no_host_path,
    "hostPID": _no_host_path,
    "nodeName": _never,
    "priorityClassName": _left(*_OWN_CLASSES),
    "schedulerName": _left("default-scheduler"),
    "securityContext": _SECURITY,
    "terminationGracePeriodSeconds": _most(DAY),
    "tolerations": _each(_toleration),
    "volumes": _each(_foreign_volume),
}

_OF_CODE: Table = {
    **_POD,
    "priorityClassName": lambda value, at: _never(value, at) if value.startswith("system-") else _own(value, at),
}
"""Pods and Deployments may have the cluster's default class, whose name is not known."""

_TEMPLATE_METADATA = {**_METADATA}

_TEMPLATE = _part({"metadata": _part(_TEMPLATE_METADATA), "spec": _part(_POD)})

_SERVICE_SPEC = _part(
    {
        **_fields("allocateLoadBalancerNodePorts", "clusterIP", "clusterIPs", "externalTrafficPolicy", "ipFamilies"),
        **_fields("healthCheckNodePort", "internalTrafficPolicy", "ipFamilyPolicy", "publishNotReadyAddresses"),
        **_fields("selector", "sessionAffinity", "sessionAffinityConfig", "trafficDistribution", "ports"),
        # Only of a LoadBalancer.
        **_fields("loadBalancerClass", "loadBalancerIP", "loadBalancerSourceRanges"),
        "externalIPs": _never,
        "externalName": _never,
        "type": _left("ClusterIP"),
    }
)


def _own_name(value: str, at: str) -> Judged:
    if not value.startswith(("adhoc-", "other-")) or value.endswith(("-head-svc", "-serve-svc")):
        yield f"{at}: the Service of another object"


_RAY_SERVICE = _part({"metadata": _part({**_METADATA, "name": _own_name}), "spec": _SERVICE_SPEC})


def _workers(value: Mapping[str, Any], at: str) -> Judged:
    number = max(value.get("replicas") or 0, value.get("minReplicas") or 0) * (value.get("numOfHosts") or 1)
    if number > MOST_WORKERS:
        yield f"{at}: {number} workers"


MOST_WORKERS = 10_000


def _groups(value: list[Mapping[str, Any]], at: str) -> Judged:
    for index, each in enumerate(value):
        yield from _workers(each, f"{at}[{index}]")
        yield from _GROUP(each, f"{at}[{index}]")


def _deleted(value: list[str], at: str) -> Judged:
    for each in value:
        if not each.startswith(("adhoc-a100-", "training-a100-")):
            yield f"{at}: deletes {each}"


_GROUP = _part(
    {
        **_fields("groupName", "idleTimeoutSeconds", "labels", "maxReplicas", "minReplicas", "numOfHosts", "replicas"),
        **_fields("rayStartParams", "resources", "suspend"),
        "scaleStrategy": _part({"workersToDelete": _deleted}),
        "template": _TEMPLATE,
    }
)

_HEAD = _part(
    {
        **_fields("labels", "rayStartParams", "resources"),
        "enableIngress": _never,
        "headService": _RAY_SERVICE,
        "serviceType": _left("ClusterIP"),
        "template": _TEMPLATE,
    }
)

_AUTOSCALER = _part(
    {
        **_fields("env", "envFrom", "idleTimeoutSeconds", "image", "imagePullPolicy", "resources", "upscalingMode"),
        **_fields("version", "volumeMounts"),
        "securityContext": _SECURITY,
    }
)

_RAY_CLUSTER = _part(
    {
        **_fields("authOptions", "enableInTreeAutoscaling", "rayVersion", "suspend", "upgradeStrategy"),
        # Its Redis decides, by users and passwords. MultiKueue's manager serves it then, or nobody.
        **_fields("gcsFaultToleranceOptions", "managedBy"),
        "autoscalerOptions": _AUTOSCALER,
        "headGroupSpec": _HEAD,
        "headServiceAnnotations": _annotations,
        "workerGroupSpecs": _groups,
    }
)

LONGEST = 32 * 2**10


def _texts(value: Mapping[str, str], at: str) -> Judged:
    yield from _most(LONGEST)("".join([*value, *map(str, value.values())]), at)


_JOB = _part(
    {
        **_fields("activeDeadlineSeconds", "backoffLimit", "deletionStrategy", "entrypointNumCpus", "managedBy"),
        **_fields("entrypointNumGpus", "preRunningDeadlineSeconds", "shutdownAfterJobFinishes", "suspend"),
        **_fields("submissionMode", "submitterConfig", "ttlSecondsAfterFinished"),
        **dict.fromkeys(("entrypoint", "entrypointResources", "jobId", "runtimeEnvYAML"), _most(LONGEST)),
        **dict.fromkeys(("metadata", "clusterSelector"), _texts),
        "rayClusterSpec": _RAY_CLUSTER,
        "submitterPodTemplate": _TEMPLATE,
    }
)


def _gateway(value: Mapping[str, Any], at: str) -> Judged:
    if (value.get("clusterUpgradeOptions") or {}).get("gatewayClassName"):
        yield f"{at}: a Gateway"


_SERVICE = _part(
    {
        **_fields("deploymentUnhealthySecondThreshold", "excludeHeadPodFromServeSvc", "managedBy"),
        **_fields("rayClusterDeletionDelaySeconds", "serviceUnhealthySecondThreshold"),
        "rayClusterConfig": _RAY_CLUSTER,
        "serveConfigV2": _most(2**18),
        "serveService": _RAY_SERVICE,
        "upgradeStrategy": _gateway,
    }
)


def _object(spec: Judge, metadata: Table, **more: Judge) -> Judge:
    return _part({**_fields("apiVersion", "kind", "status"), "metadata": _part(metadata), "spec": spec, **more})


_REACHING: Mapping[str, Judge] = {
    "RayCluster": _object(_RAY_CLUSTER, _OF_RAY_METADATA),
    "RayJob": _object(_JOB, _OF_RAY_METADATA),
    "RayService": _object(_SERVICE, _OF_RAY_METADATA),
    "RayCronJob": _object(
        _part({**_fields("schedule", "suspend", "timeZone", "concurrencyPolicy"), "jobTemplate": _JOB}),
        _OF_RAY_METADATA,
    ),
    "Pod": _object(_part(_OF_CODE), _METADATA),
    "Service": _object(_SERVICE_SPEC, _METADATA),
    "Deployment": _object(
        _part(
            {
                **_fields("minReadySeconds", "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "selector"),
                **_fields("strategy"),
                "replicas": _most(MOST_WORKERS),
                "template": _part({"metadata": _part(_METADATA), "spec": _part(_OF_CODE)}),
            }
        ),
        {**_METADATA, "annotations": _own},  # those of its pods count
    ),
    # A budget may keep its own pods from being evicted, and no controller reads annotations of one.
    "PodDisruptionBudget": _object(_own, {**_METADATA, "annotations": _own}),
}


def reached(body: Mapping[str, Any]) -> list[str]:
    """What an object reaches beyond its namespace, each with the field."""
    return list(_REACHING[body["kind"]](body, body["kind"]))


def pods(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods that KubeRay or Kubernetes makes from an object."""
    spec = body["spec"]
    job = spec.get("jobTemplate", spec)
    if template := job.get("submitterPodTemplate"):
        yield template
    if body["kind"] == "Deployment":
        yield spec["template"]
    cluster = {"RayCluster": spec, "RayService": spec.get("rayClusterConfig")}.get(
        body["kind"], job.get("rayClusterSpec")
    )
    if cluster:
        head = cluster["headGroupSpec"]["template"]
        options = cluster.get("autoscalerOptions", {})
        beside = {"name": "autoscaler", "image": "ray", "securityContext": options.get("securityContext", {})}
        containers = [*head["spec"]["containers"], *([beside] if "securityContext" in options else [])]
        yield {**head, "spec": {**head["spec"], "containers": containers}}
        yield from (group["template"] for group in cluster.get("workerGroupSpecs", ()))


def changed(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """The fields that differ, as `spec.workerGroupSpecs.0.replicas`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from changed(before.get(key), after.get(key), f"{at}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from changed(*pair, f"{at}.{index}")
    elif before != after:
        yield at.strip(".")
