"""The admission policy that keeps a tenant's RayClusters, RayJobs and RayServices from harming others, in CEL.

Who makes one decides what the operator makes from it: pods that evict others or keep their workers from every node,
Services that take the traffic of an address, volumes of others. What code on Ray makes itself, with the account of
`rayDeployer`, is judged alike. Earlier violations stay, so that what runs can be scaled and deleted; an update adds
none (components/access/findings.py).
"""

from collections.abc import Sequence

from components.access.findings import Listed, defined
from components.access.personas import ALL_RAY_KINDS, RAY_GROUP
from components.access.restricted import Restricted, by_namespace
from components.job_template.manifests import AUTHOR_ANNOTATION, TEMPLATE_LABEL
from core.body import Body
from core.pods import LONGEST_STOP, POD_SECURITY_PREFIX, PROFILES
from kuberay.schedulers import KUEUE_QUEUE_LABEL, QUEUE_LABEL
from policies.cel import before, listed

IDLE_FINALIZER = "ray.io/idle-termination-cleanup-finalizer"
"""Finalizer that Ray's autoscaler adds to its own RayCluster
(ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py)."""

PRIORITY_LABELS = ("ray.io/priority-class-name", "kueue.x-k8s.io/priority-class")
"""Labels with the priority of a gang: for Volcano (constant.go: RayPriorityClassName) and for Kueue."""

RESERVED = "system-"
"""Prefix of Kubernetes' own PriorityClasses, which are above all others."""

NO_CONTROLLER = {
    "name": "no-controller",
    "expression": f"!authorizer.group('{RAY_GROUP}').resource('rayclusters').subresource('finalizers')"
    ".namespace(request.namespace).check('update').allowed()",
}
"""The right that Kubernetes' own admission plugin OwnerReferencesPermissionEnforcement asks for. KubeRay's role has it
(ray-operator/config/rbac/role.yaml), and no persona."""

_OF_RAY = f"request.kind.group == '{RAY_GROUP}'"

RAY_CLUSTERS = f"authorizer.group('{RAY_GROUP}').resource('rayclusters')"

MAY_NOT_MAKE_ANY = f"!{RAY_CLUSTERS}.namespace(request.namespace).check('create').allowed()"
"""CEL: whether the author may not create RayClusters in the namespace."""

BY_AN_ACCOUNT = "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
"""CEL: whether the author is an account of the namespace, such as that of code on Ray."""


_RAY = "variables.ray[?0]"
_GROUPS = f"{_RAY}.?workerGroupSpecs.orValue([])"

_PODS = f"({_OF_RAY} || {BY_AN_ACCOUNT} ? variables.pods : [])"
"""Pods that a tenant decides about. Others of the namespace, such as those of a StatefulSet, have authors of their
own."""

_RAY_SERVICES = f"([?object.?spec.?serveService] + [?{_RAY}.?headGroupSpec.?headService])"
"""What KubeRay's Services are made from."""

_SERVICES = f"({_RAY_SERVICES} + (request.kind.kind == 'Service' && {BY_AN_ACCOUNT} ? [dyn(object)] : []))"

_LABELLED = ", ".join(f"string(object.metadata.?labels[?'{label}'].orValue(''))" for label in PRIORITY_LABELS)
_GANG = "request.kind.kind == 'PodGroup' ? string(object.?spec.?priorityClassName.orValue('')) : ''"
_CLASSES = f"variables.pods.map(pod, string(pod.spec.?priorityClassName.orValue(''))) + [{_GANG}, {_LABELLED}]"
"""PriorityClasses of all pods of an object, of a PodGroup, and of gangs."""

_RESTRICTED = f"namespaceObject.metadata.?labels[?'{POD_SECURITY_PREFIX}/enforce'].orValue('') == 'restricted'"


def _in_force(*steps: str) -> str:
    below = "".join(f".?{step}" for step in ("securityContext", *steps))
    return f"c{below}.or(spec{below})"


_MEETS_RESTRICTED = (
    "(spec.?initContainers.orValue([]) + spec.?containers.orValue([])).all(c,"
    " c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"
    " && 'ALL' in c.?securityContext.?capabilities.?drop.orValue([])"
    f" && {_in_force('runAsNonRoot')}.orValue(false) == true"
    f" && {_in_force('seccompProfile', 'type')}.orValue('') in {listed(PROFILES)})"
)
"""What Pod Security `restricted` requires of each container of a pod's `spec`."""

_CANNOT_SUBMIT = (
    f"[it].filter(job, {_RESTRICTED} && !(job.?submissionMode.orValue('K8sJobMode') == 'K8sJobMode'"
    " ? job.?submitterPodTemplate.?spec.hasValue()"
    f" && [job.submitterPodTemplate.spec].all(spec, {_MEETS_RESTRICTED})"
    " : job.submissionMode != 'SidecarMode')).map(job, job.?submissionMode.orValue('K8sJobMode'))"
)
"""KubeRay's own submitter has no securityContext (controllers/ray/common/job.go: GetDefaultSubmitterContainer). In
SidecarMode it is a container of the head."""


def neighbours(admitted: Restricted) -> Body:
    """The spec of the policy."""
    rules = _rules(admitted)
    return {
        "matchConstraints": {"resourceRules": _resource_rules()},
        "matchConditions": [NO_CONTROLLER, *_no_runs(admitted.templates)],
        "variables": defined(rules),
        "validations": [*(rule.validation for rule in rules), *_UNCHANGED],
    }


def _no_runs(templates: Sequence[str]) -> list[Body]:
    """Runs of job templates equal what was judged when the template was made (admission.py: _runs_of_templates)."""
    template = f"object.metadata.?labels[?'{TEMPLATE_LABEL}'].orValue('')"
    run = f"request.kind.kind == 'RayJob' && {template} in {listed(sorted(set(templates)))} && {MAY_NOT_MAKE_ANY}"
    return [{"name": "no-run", "expression": f"!({run})"}] if templates else []


def _resource_rules() -> list[Body]:
    found = (
        (RAY_GROUP, ALL_RAY_KINDS, ("CREATE", "UPDATE")),
        ("", ("services",), ("CREATE", "UPDATE")),
        ("", ("pods",), ("CREATE", "UPDATE")),
        ("apps", ("deployments",), ("CREATE", "UPDATE")),
        ("policy", ("poddisruptionbudgets",), ("CREATE", "UPDATE")),
        # Volcano creates PodGroups; people may patch them.
        ("scheduling.volcano.sh", ("podgroups",), ("UPDATE",)),
    )
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}
        for group, resources, operations in found
    ]


def _rules(admitted: Restricted) -> list[Listed]:
    return [
        _priority(admitted.classes),
        *_of_pods(admitted),
        *([_scheduled(admitted)] if admitted.schedulers else []),
        *_of_services(admitted),
        *_OF_OBJECTS,
        _gateways(admitted.gateways),
        *([_OWN_CLUSTER] if admitted.scheduler == "volcano" else []),
    ]


def _priority(classes: Sequence[str]) -> Listed:
    # Kubernetes gives a pod without a class the cluster's default one, whose name is not known.
    others = f"request.kind.kind in ['Pod', 'Deployment'] && !each.startsWith('{RESERVED}')"
    use = " or ".join(classes) or "none"
    return Listed(
        "classes",
        _CLASSES,
        f"[it].filter(each, !(each in {listed(['', *classes])} || {others}))",
        "'PriorityClass ' + item",
        f" may evict pods of other tenants: use {use}, or ask for it in priorityClasses.allowed of the stack file",
    )


VOLUMES = (
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "hostPath",
    "image",
    "persistentVolumeClaim",
    "projected",
)
"""Kinds of volumes that need no right, beside `secret`. Pod Security decides about `hostPath`."""

_CLAIMED = ("accessModes", "resources", "volumeMode")
"""Fields of a claim that a pod brings along: none that names a volume or a StorageClass."""

_SCHEDULERS = {"scheduler-plugins": "scheduler-plugins-scheduler"}
"""Schedulers' names in pods, where they differ from the setting (ray-operator/controllers/ray/batchscheduler)."""

_OF_NODES = tuple(
    f"node.kubernetes.io/{each}"
    for each in ("not-ready", "unreachable", "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")
)
"""Taints of a node's condition; Kubernetes itself gives pods tolerations of them."""


def _of_pods(admitted: Restricted) -> Sequence[Listed]:
    taints = sorted(set(admitted.taints))
    scheduler = admitted.scheduler and _SCHEDULERS.get(admitted.scheduler, admitted.scheduler)
    schedulers = ["default-scheduler", *([scheduler] if scheduler else [])]
    made = "v.?ephemeral.?volumeClaimTemplate"
    claim = (
        f"{made}.?spec.orValue({{}}).all(key, key in {listed(_CLAIMED)})"
        f" && {made}.?metadata.?annotations.orValue({{}}).all(key, {harmless('key')})"
    )
    terms = " + ".join(
        f"it.spec.?affinity.?{kind}.?requiredDuringSchedulingIgnoredDuringExecution.orValue([])"
        f" + it.spec.?affinity.?{kind}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])"
        ".map(each, each.?podAffinityTerm.orValue({}))"
        for kind in ("podAffinity", "podAntiAffinity")
    )
    return (
        Listed(
            "affine",
            _PODS,
            f"({terms}).filter(each, each.?namespaceSelector.hasValue()"
            " || each.?namespaces.orValue([]).exists(name, name != request.namespace))",
            "'affinity to pods of ' + (item.?namespaceSelector.hasValue() ? 'namespaces by their labels'"
            " : item.?namespaces.orValue([]).join(', '))",
            " would decide on which nodes pods of other tenants run: remove namespaces and namespaceSelector, which "
            "leaves the pods of this namespace",
        ),
        Listed(
            "placed",
            _PODS,
            "[it.spec.?nodeName.orValue('')].filter(each, each != '').map(each, 'nodeName ' + each)"
            f" + [it.spec.?schedulerName.orValue('')].filter(each, !(each in {listed(['', *schedulers])}))"
            ".map(each, 'schedulerName ' + each)"
            " + it.spec.?tolerations.orValue([]).map(each, each.?key.orValue(''))"
            f".filter(each, !(each in {listed([*_OF_NODES, *taints])}))"
            ".map(each, 'a toleration of ' + (each == '' ? 'all taints' : each))",
            "item",
            f" leaves the nodes or the queue of tenants: set no nodeName, schedulerName {' or '.join(schedulers)}, and "
            f"tolerations of {' or '.join(taints) or 'no taints'}. The stack file has the taints of pools in nodes",
        ),
        Listed(
            "mounted",
            _PODS,
            f"it.spec.?volumes.orValue([]).filter(v, !(v.all(key, key in {listed(['name', 'secret', *VOLUMES])})"
            f" && {claim}))",
            "'volume ' + string(item.?name.orValue('')) + ' (' + item.filter(key, key != 'name').join(', ') + ')'",
            " may have files of others: use storage of the stack file, a persistentVolumeClaim, or ephemeral with a "
            "new volume of the default StorageClass",
        ),
        Listed(
            "asked",
            f"{_PODS}.map(pod, pod.containers.map(c, {_HANDLERS}))",
            "it.map(handlers, handlers.map(h, h.?httpGet.?host.orValue('') + h.?tcpSocket.?host.orValue('')))"
            ".map(hosts, hosts.filter(host, host != '').join(', ')).filter(hosts, hosts != '')",
            "'a probe or lifecycle hook of ' + item",
            " lets the kubelet connect there, past NetworkPolicies: leave out the host, which is that of the pod",
        ),
        Listed(
            "stopped",
            _PODS,
            f"[it.spec.?terminationGracePeriodSeconds.orValue(0)].filter(each, int(each) > {LONGEST_STOP})",
            "'terminationGracePeriodSeconds ' + string(item)",
            f" keeps nodes from being drained, and the namespace from being deleted: use at most {LONGEST_STOP}",
        ),
        Listed(
            "noted",
            f"{_TEMPLATES}.map(metadata, metadata.?annotations.orValue({{}}))",
            f"it.filter(key, !({harmless('key')} || {listed(OF_PODS)}.exists(prefix, key.startsWith(prefix))"
            f" || key in {by_namespace(admitted.of_pods)})).map(key, key + '=' + string(it[key]))",
            "'annotation ' + item.split('=')[0]",
            " of a pod may give it addresses, networks or an identity of others: remove it, or ask for it in "
            "podAnnotations of the tenant in the stack file. Annotations without a prefix are allowed, and "
            f"{', '.join((*ANNOTATIONS, *OF_PODS))}",
        ),
    )


_HANDLERS = (
    "[?c.?livenessProbe, ?c.?readinessProbe, ?c.?startupProbe, ?c.?lifecycle.?postStart, ?c.?lifecycle.?preStop]"
)
"""What the kubelet asks. Pod Security refuses hosts from Kubernetes 1.34 on."""

OF_PODS = (
    *(
        "kueue.x-k8s.io/",
        "volcano.sh/",
        "scheduling.k8s.io/group-name",
        "container.apparmor.security.beta.kubernetes.io/",
    ),
    *("cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"),
)
"""Further annotations of pods, by their prefixes: for the scheduler, within the queue; what Pod Security judges; and
what keeps a node, as a PodDisruptionBudget does."""

_DEPLOYMENTS = f"(request.kind.kind == 'Deployment' && {BY_AN_ACCOUNT} ? [dyn(object)] : [])"

_RAY_TEMPLATES = (
    f"[?{_RAY}.?headGroupSpec.?template.?metadata] + {_GROUPS}.map(group, group.?template.?metadata.orValue({{}}))"
    " + [?variables.jobs[?0].?submitterPodTemplate.?metadata]"
)

RAY_LABELS = (
    f"(({_RAY_TEMPLATES}).map(metadata, metadata.?labels.orValue({{}}))"
    f" + [?{_RAY}.?headGroupSpec.?labels] + {_GROUPS}.map(group, group.?labels.orValue({{}})))"
)
"""CEL: labels of the pods that an object of KubeRay becomes, also of its groups (ray-operator/controllers/ray/common/
pod.go: mergeLabels)."""

_TEMPLATES = (
    f"({_RAY_TEMPLATES}"
    f" + (request.kind.kind == 'Pod' && {BY_AN_ACCOUNT} ? [dyn(object.metadata)] : [])"
    f" + {_DEPLOYMENTS}.map(deployment, deployment.?spec.?template.?metadata.orValue({{}})))"
)
"""Metadata of the pods that an object becomes."""


_LABELS = f"([dyn(object.metadata)] + {_TEMPLATES}).map(metadata, metadata.?labels.orValue({{}}))"


def _labelled(label: str) -> str:
    return f"{_LABELS}.exists(labels, '{label}' in labels)"


_QUEUED = f"request.kind.kind != 'RayCronJob' && '{KUEUE_QUEUE_LABEL}' in object.metadata.?labels.orValue({{}})"
"""CEL: whether Kueue holds back an object of Ray. The RayJobs of a RayCronJob have none of its labels
(controllers/ray/raycronjob_controller.go: constructRayJob)."""


def _scheduled(admitted: Restricted) -> Listed:
    """The schedulers that an object asks for. Without Kueue's label pods of Ray are the batch scheduler's, and others
    those of the scheduler that they name. Nobody of a tenant creates PodGroups."""
    named = f"{_PODS}.all(pod, pod.spec.?schedulerName.orValue('') == 'volcano')"
    of_volcano = f"{_OF_RAY} || {named}" if admitted.scheduler == "volcano" else named
    return Listed(
        "scheduled",
        f"[({_labelled(KUEUE_QUEUE_LABEL)} ? ['kueue'] : [])"
        f" + ({_labelled(QUEUE_LABEL)} ? ['volcano'] : [])"
        f" + ({_PODS}.size() > 0 && !({_QUEUED}) ? [{of_volcano} ? 'volcano' : 'kubernetes'] : [])]",
        f"it.filter(each, request.namespace in {listed(admitted.schedulers)}"
        f" && !(each in {by_namespace(admitted.schedulers)}))",
        "'scheduler ' + item",
        " is not for this namespace: name a queue of another scheduler, or none, or ask for it in scheduler of the "
        "tenant in the stack file, which has ",
        f"{by_namespace(admitted.schedulers)}.join(', ')",
    )


ANNOTATIONS = (
    *("kubectl.kubernetes.io/", "pulumi.com/", "meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"),
    *("app.kubernetes.io/", "prometheus.io/", "ray.io/", "ray-platform/"),
)
"""Prefixes of annotations that no controller takes for a host name, an address or its configuration."""


def harmless(key: str) -> str:
    """CEL: whether everybody may set the annotation `key`."""
    return f"(!{key}.contains('/') || {listed(ANNOTATIONS)}.exists(prefix, {key}.startsWith(prefix)))"


def _of_services(admitted: Restricted) -> Sequence[Listed]:
    own = "object.metadata.?name.orValue('')"
    derived = "['-head-svc', '-serve-svc']"
    return (
        Listed(
            "addresses",
            f"({_SERVICES} + (request.kind.kind == 'Service' ? [dyn(object)] : []))",
            "it.?spec.?externalIPs.orValue([])",
            "item + ' among'",
            " externalIPs take the traffic of other pods to these addresses (CVE-2020-8554): remove them",
        ),
        Listed(
            "types",
            f"{_SERVICES}.map(s, s.?spec.orValue({{}}))"
            ".map(spec, spec.?type.orValue('ClusterIP') + ' ' + spec.?externalName.orValue(''))"
            f" + [{_RAY}.?headGroupSpec.?serviceType.orValue('ClusterIP') + ' ']",
            f"[it].filter(each, !(each.split(' ')[0] in ['ClusterIP', ''] + {by_namespace(admitted.exposed)})"
            " || each.split(' ')[1] != '')",
            "'Service of type ' + item.split(' ')[0]",
            " leads to the outside, or to Services of others: use ClusterIP; quota.loadBalancers and quota.nodePorts "
            "of the tenant in the stack file allow LoadBalancer and NodePort",
        ),
        Listed(
            "annotated",
            f"{_SERVICES}.map(s, s.?metadata.?annotations.orValue({{}}))"
            f" + [{_RAY}.?headServiceAnnotations.orValue({{}})]",
            f"it.filter(key, !{harmless('key')}).map(key, key + '=' + string(it[key]))",
            "'annotation ' + item.split('=')[0]",
            " of a Service may be a controller's, such as one that gives host names: remove it. Annotations without "
            f"a prefix are allowed, and {', '.join(ANNOTATIONS)}",
        ),
        Listed(
            "named",
            _RAY_SERVICES,
            f"[it.?metadata.?name.orValue('')].filter(each, each != ''"
            f" && !({derived}.exists(end, each == {own} + end) || each.startsWith({own} + '-')"
            f" && !{derived}.exists(end, each.endsWith(end))))",
            "'Service ' + item",
            " may be that of another RayCluster: let its name begin with that of the object and a hyphen, and not end "
            "in -head-svc or -serve-svc, or leave it out",
        ),
    )


LONGEST_TEXT = 32 * 2**10
"""Characters of a text of a RayJob. etcd keeps several revisions, and API server and operator each object in memory."""

LONGEST_CONFIGURATION = 256 * 2**10
"""Characters of a RayService's configuration of Serve."""

LONGEST_LABELS = 16 * 2**10

MOST_WORKERS = 10_000
"""Workers of a RayCluster, in pods. The operator makes them without a limit of its own."""

_WORKER_PODS = (
    "[object.metadata.?name.orValue('') + '-' + string(it.?groupName.orValue(''))]"
    ".map(name, (name.size() > 50 ? name.substring(0, 50) : name).lowerAscii() + '-worker-')"
)
"""CEL: how the names of a group's pods begin, before five letters (ray-operator/controllers/ray/utils/util.go:
PodName)."""

_METADATA = (
    f"({_TEMPLATES} + {_RAY_SERVICES}.map(s, s.?metadata.orValue({{}}))"
    f" + (request.kind.kind in ['Service', 'Deployment'] && {BY_AN_ACCOUNT}"
    " || request.kind.kind in ['PodDisruptionBudget', 'PodGroup'] ? [dyn(object.metadata)] : []))"
)
"""Metadata of what an object becomes, and of what is no object of Ray."""

_SIZE = "map(each, size(each) + size(string({of}[each]))).sum()"

_OF_OBJECTS = (
    Listed(
        "opened",
        "variables.ray",
        "[?it.?headGroupSpec.?enableIngress].filter(each, each == true)",
        "'enableIngress'",
        ": KubeRay's Ingress is for all hosts, without TLS: remove enableIngress, and make an Ingress",
    ),
    Listed(
        "kept",
        _METADATA,
        "it.?finalizers.orValue([])",
        "'finalizer ' + item",
        " keeps the object, and with it the namespace, for ever: remove it",
    ),
    Listed(
        "deleted",
        _GROUPS,
        "it.?scaleStrategy.?workersToDelete.orValue([]).filter(pod, request.kind.kind != 'RayCluster'"
        f" || !{_WORKER_PODS}.exists(begins, pod.startsWith(begins) && pod.size() == begins.size() + 5))",
        "'pod ' + item",
        " among workersToDelete is no worker of this group, and KubeRay would delete it: name pods of the group",
    ),
    Listed(
        "numbers",
        f"[{_GROUPS}.map(group, [int(group.?replicas.orValue(0)), int(group.?minReplicas.orValue(0))].max()"
        " * int(group.?numOfHosts.orValue(1))).sum()]"
        f" + {_DEPLOYMENTS}.map(deployment, int(deployment.?spec.?replicas.orValue(1)))",
        f"[it].filter(each, each > {MOST_WORKERS})",
        "string(item)",
        f" pods are too many for one object, which would make them all: set at most {MOST_WORKERS}",
    ),
    Listed(
        "texts",
        "variables.jobs",
        f"it.filter(key, type(it[key]) == string && size(it[key]) > {LONGEST_TEXT})"
        ".map(key, key + ' of ' + string(size(it[key])))"
        f" + it.filter(key, key in ['metadata', 'clusterSelector'] && it[key].{_SIZE.format(of='it[key]')}"
        f" > {LONGEST_TEXT}).map(key, string(key))",
        "item",
        f" is too long, for all who share the API server: use at most {LONGEST_TEXT} characters, and put the rest into "
        "a file that the job reads",
    ),
    Listed(
        "configurations",
        "[?object.?spec.?serveConfigV2]",
        f"[size(it)].filter(each, each > {LONGEST_CONFIGURATION})",
        "'serveConfigV2 of ' + string(item)",
        f" characters is too long: use at most {LONGEST_CONFIGURATION}",
    ),
    Listed(
        "labels",
        f"[{_OF_RAY} ? object.metadata.?labels.orValue({{}}) : {{}}]",
        f"[it.{_SIZE.format(of='it')}].filter(each, each > {LONGEST_LABELS})",
        "'labels of ' + string(item)",
        f" characters are too long: use at most {LONGEST_LABELS}",
    ),
    Listed(
        "authors",
        "[request.kind.kind == 'RayJob' ? object.metadata.?annotations.orValue({}) : {}]",
        f"it.filter(key, key == '{AUTHOR_ANNOTATION}').map(key, string(it[key]))"
        ".filter(each, each != request.userInfo.username)",
        f"'annotation {AUTHOR_ANNOTATION} ' + item",
        ": it is the name of the user who creates it: leave it out",
    ),
    Listed(
        "submitters",
        "variables.jobs",
        _CANNOT_SUBMIT,
        "item",
        ": set submissionMode: HTTPMode. The namespace admits only pods that meet Pod Security restricted, and "
        "KubeRay's own submitter does not; in K8sJobMode a submitterPodTemplate may",
    ),
)


def _gateways(classes: Sequence[str]) -> Listed:
    return Listed(
        "gateways",
        "[?object.?spec.?upgradeStrategy.?clusterUpgradeOptions.?gatewayClassName]",
        f"[it].filter(each, !(each in {listed(classes)}))",
        "'gatewayClassName ' + item",
        f" may be a Gateway for all hosts, open to the outside: use {' or '.join(classes) or 'another strategy'}, or "
        "ask for it in the stack file",
    )


_OWN_CLUSTER = Listed(
    "selecting",
    "variables.jobs",
    "[it].filter(job, !job.?rayClusterSpec.hasValue()).map(job, job.?clusterSelector.orValue({}))",
    "'a selected RayCluster'",
    ": with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit to the jobs API of that RayCluster "
    "(`ray job submit`), or give the RayJob a rayClusterSpec",
)
"""controllers/ray/batchscheduler/volcano/volcano_scheduler.go: handleRayJob."""


def _unchanged(field: str, keeps: str, message: str) -> Body:
    """A list of the metadata is as before: empty in a new object. `keeps`: CEL for the entries that count."""
    now = f"object.metadata.?{field}.orValue([]){keeps}"
    return {"expression": f"!({_OF_RAY}) || {now} == (oldObject == null ? [] : {before(now)})", "message": message}


_UNCHANGED = (
    _unchanged(
        "ownerReferences",
        "",
        "ownerReferences are KubeRay's: with an owner that does not exist the object would be deleted. Leave them as "
        "they are",
    ),
    _unchanged(
        "finalizers",
        f".filter(each, each != '{IDLE_FINALIZER}')",
        "finalizers are KubeRay's: without them nothing is cleaned up. Leave them as they are",
    ),
)
