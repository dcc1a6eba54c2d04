"""The usage of a quota by a RayCluster, as Kubernetes counts it, and RayClusters whose pods the tenant's quota or
limits would refuse. Pure functions on rendered bodies."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from components.tenant.settings import ENTRIES, Amounts, LimitSettings, QuotaSettings, hard
from core.body import ReadOnlyBody
from core.problems import Path, Problem, dotted
from core.quantities import amount, shown

Usage = dict[str, Decimal]
"""Amounts by the ResourceQuota's entries that count them: `requests.cpu`, `pods`."""

Given = Mapping[str, Mapping[str, str]]
"""Default `limits` and `requests` of cpu and memory for containers that set none."""

RESOURCES = ("cpu", "memory")
"""The resources of a LimitRange here."""

AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
"""KubeRay's default resources of the autoscaler's container, if `autoscalerOptions.resources` is not set
(ray-operator/controllers/ray/common/pod.go: BuildAutoscalerContainer)."""

CLEANING_UP = {"cpu": "200m", "memory": "256Mi"}
"""Resources of Ray's container in KubeRay's Job that deletes a cluster's keys from Redis after its head is deleted
(ray-operator/controllers/ray/raycluster_controller.go: buildRedisCleanupJob)."""

WAITING = {"cpu": "200m", "memory": "256Mi"}
"""Resources of KubeRay's init container `wait-gcs-ready` of each worker (pod.go: DefaultWorkerPodTemplate)."""


@dataclass(frozen=True)
class Container:
    path: Path
    """In the body of the RayCluster; for a container that KubeRay adds, where its settings are."""

    body: ReadOnlyBody

    runs_ray: bool = False
    """Whether it is Ray's container."""

    @property
    def name(self) -> str:
        return str(self.body.get("name"))

    @functools.cached_property
    def limits(self) -> dict[str, Decimal]:
        return self._amounts("limits")

    @functools.cached_property
    def requests(self) -> dict[str, Decimal]:
        """The configured requests. The API server sets a missing request to the limit."""
        return self.limits | self._amounts("requests")

    def _amounts(self, part: str) -> dict[str, Decimal]:
        configured = (self.body.get("resources") or {}).get(part) or {}
        return {resource: amount(str(value)) for resource, value in configured.items()}


@dataclass(frozen=True)
class Group:
    """The head, or the workers of a group."""

    path: Path
    """In the body of the RayCluster."""

    title: str

    containers: tuple[Container, ...]

    usage: Usage
    """Usage of one worker with all its pods, or of the head."""

    at_first: int
    """Initial workers, or 1 for a head."""

    most: int | None
    """Maximum workers; None: no limit."""

    least: int
    """Minimum workers, or 1 for a head."""


@dataclass(frozen=True)
class Demand:
    """The usage of a quota by a RayCluster."""

    name: str

    groups: tuple[Group, ...]

    objects: Usage
    """Objects other than pods."""

    scales: bool = False
    """Whether the autoscaler adds and removes workers."""

    @property
    def gang(self) -> Usage:
        """Usage of the gang (batchscheduler/volcano/volcano_scheduler.go: calculatePodGroupParams)."""
        return total(_times(group.usage, group.least if self.scales else group.at_first) for group in self.groups)

    @property
    def at_first(self) -> Usage:
        """Usage after the creation, before the autoscaler scales it."""
        return total([self.objects, *(_times(group.usage, group.at_first) for group in self.groups)])


def demand(body: ReadOnlyBody, limits: LimitSettings | None, beside: Sequence[Container] = ()) -> Demand:
    """The usage of a RayCluster in a namespace with that LimitRange. `beside`: further containers of the head."""
    name, spec, given = body["metadata"]["name"], body["spec"], defaults(limits)
    head = spec["headGroupSpec"]
    of_head = list(beside)
    if spec.get("enableInTreeAutoscaling"):
        options = spec.get("autoscalerOptions") or {}
        body = {"name": "autoscaler", "resources": options.get("resources") or _same(AUTOSCALER)}
        of_head.append(Container(("spec", "autoscalerOptions"), body))
    groups = [group_of(("spec", "headGroupSpec"), "the head", head, given, beside=of_head)]
    objects = {"count/rayclusters.ray.io": Decimal(1), **head_service(head), **_of_kuberay(spec)}
    if "gcsFaultToleranceOptions" in spec:
        groups = [_cleaned_up(groups[0], head, given)]
        # KubeRay creates it after the head is deleted. All clusters of a tenant may be deleted at once.
        objects |= {"count/jobs.batch": Decimal(1)}
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        path, title = ("spec", "workerGroupSpecs", index), f"worker group {group['groupName']!r}"
        waiting = Container(path, {"name": "wait-gcs-ready", "resources": _same(WAITING)})
        groups.append(group_of(path, title, group, given, before=[waiting]))
    runs = () if spec.get("suspend") else tuple(groups)
    return Demand(name, runs, objects, bool(spec.get("enableInTreeAutoscaling")))


def of_stateful_set(body: ReadOnlyBody, limits: LimitSettings | None) -> Demand:
    """The usage of a StatefulSet with its volumes in a namespace with that LimitRange."""
    name, spec = body["metadata"]["name"], body["spec"]
    group = group_of(("spec",), name, spec, defaults(limits))
    number = int(spec["replicas"])
    storage = [
        amount(claim["spec"]["resources"]["requests"]["storage"]) for claim in spec.get("volumeClaimTemplates") or ()
    ]
    volumes = {"requests.storage": sum(storage, Decimal(0)), "persistentvolumeclaims": Decimal(len(storage))}
    return Demand(name, (replace(group, at_first=number, most=number, least=number),), _times(volumes, number))


def inside(groups: Iterable[Group], path: Path) -> tuple[Group, ...]:
    """The groups of a RayCluster in the body of the RayJob or RayService that has its spec at `path`."""
    return tuple(
        replace(
            group,
            path=(*path, *group.path[1:]),
            containers=tuple(replace(each, path=(*path, *each.path[1:])) for each in group.containers),
        )
        for group in groups
    )


def of_claim(body: ReadOnlyBody) -> Demand:
    """The usage of a PersistentVolumeClaim (kubernetes, pkg/quota/v1/evaluator/core/persistent_volume_claims.go)."""
    spec = body["spec"]
    each = {"persistentvolumeclaims": Decimal(1), "requests.storage": amount(spec["resources"]["requests"]["storage"])}
    of_class = f"{spec['storageClassName']}.storageclass.storage.k8s.io/" if spec.get("storageClassName") else None
    by_class = {f"{of_class}{entry}": value for entry, value in each.items()} if of_class else {}
    counts = {"count/persistentvolumeclaims": Decimal(1)}
    return Demand(f"storage {body['metadata']['name']}", (), {**each, **by_class, **counts})


def defaults(limits: LimitSettings | None) -> Given:
    """The defaults of containers without `limits` and `requests` of cpu and memory.

    They are those with which the API server completes a LimitRange (kubernetes, pkg/apis/core/v1/defaults.go:
    SetDefaults_LimitRangeItem).
    """
    if limits is None:
        return {"limits": {}, "requests": {}}
    of_limits = {**_configured(limits.max), **_configured(limits.default)}
    return {
        "limits": of_limits,
        "requests": {**_configured(limits.min), **of_limits, **_configured(limits.default_request)},
    }


def total(usages: Iterable[Usage]) -> Usage:
    summed: Usage = {}
    for usage in usages:
        # Most sums have one part that is not empty. A copy takes a tenth of the time of additions.
        if not summed:
            summed = dict(usage)
            continue
        for entry, value in usage.items():
            summed[entry] = summed[entry] + value if entry in summed else value
    return summed


def _configured(amounts: Amounts) -> dict[str, str]:
    return {resource: value for resource in RESOURCES if (value := getattr(amounts, resource)) is not None}


def _same(amounts: Mapping[str, str]) -> ReadOnlyBody:
    return {"limits": amounts, "requests": amounts}


def _times(usage: Usage, number: int) -> Usage:
    return {entry: value * number for entry, value in usage.items()}


def group_of(
    path: Path,
    title: str,
    group: ReadOnlyBody,
    given: Given,
    beside: Iterable[Container] = (),
    before: Iterable[Container] = (),
) -> Group:
    """The pods of a template, which is in `group`. `beside`, `before`: containers and init containers that KubeRay
    adds."""
    pod = group["template"]["spec"]
    containers = [*_containers(path, pod, "containers"), *beside]
    initial = [*before, *_containers(path, pod, "initContainers")]
    usage = {**_pod(containers, initial, given), "pods": Decimal(1), "count/pods": Decimal(1)}
    each = _times(usage, group.get("numOfHosts") or 1)
    return Group(path, title, (*containers, *initial), each, *_numbers(group))


def _cleaned_up(head: Group, body: ReadOnlyBody, given: Given) -> Group:
    """The head with the maximum usage of the head and the later clean-up pod, which has the head's init containers."""
    job = Container(head.path, {"name": "redis-cleanup", "resources": _same(CLEANING_UP)})
    initial = list(_containers(head.path, body["template"]["spec"], "initContainers"))
    usage = _pod([job], initial, given)
    most = {entry: max(value, usage.get(entry, Decimal(0))) for entry, value in (usage | head.usage).items()}
    return replace(head, containers=(*head.containers, job), usage=most)


def _numbers(group: ReadOnlyBody) -> tuple[int, int | None, int]:
    """Initial, maximum and minimum workers (controllers/ray/utils/util.go: GetWorkerGroupDesiredReplicas)."""
    if "groupName" not in group:
        return 1, 1, 1
    if group.get("suspend"):
        return 0, 0, 0
    least, most = group.get("minReplicas") or 0, group.get("maxReplicas")
    at_first = max(least, group.get("replicas") or 0)
    return (at_first if most is None else min(at_first, most)), most, least


def _containers(path: Path, pod: ReadOnlyBody, key: str) -> Iterator[Container]:
    for index, body in enumerate(pod.get(key) or ()):
        runs_ray = key == "containers" and index == 0
        yield Container((*path, "template", "spec", key, index), body, runs_ray)


def _pod(containers: Iterable[Container], initial: Iterable[Container], given: Given) -> Usage:
    """Usage of a pod: that of all containers, or of the largest init container if it is more.

    The same as in k8s.io/component-helpers, resource/helpers.go: AggregateContainerRequests.
    """
    running = total(_usage(each, given) for each in containers)
    aside: Usage = {}
    largest: Usage = {}
    for each in initial:
        usage = _usage(each, given)
        if each.body.get("restartPolicy") == "Always":
            aside = usage = total([aside, usage])
        else:
            usage = total([aside, usage])
        largest = {
            entry: max(usage.get(entry, Decimal(0)), largest.get(entry, Decimal(0))) for entry in usage | largest
        }
    running = total([running, aside])
    return {entry: max(running.get(entry, Decimal(0)), largest.get(entry, Decimal(0))) for entry in running | largest}


def _usage(container: Container, given: Given) -> Usage:
    usage: Usage = {}
    for part, configured in (("requests", container.requests), ("limits", container.limits)):
        amounts = {resource: amount(value) for resource, value in given[part].items()} | configured
        usage |= {f"{part}.{resource}": value for resource, value in amounts.items()}
        if part == "requests":
            # A ResourceQuota's `cpu` is `requests.cpu`.
            usage |= amounts
    return usage


def _of_kuberay(spec: ReadOnlyBody) -> Usage:
    """Usage of what KubeRay creates beside the pods of a RayCluster: the head's Service, the Secret with its token, and
    the autoscaler's account, Role and RoleBinding (ray-operator/controllers/ray/raycluster_controller.go)."""
    made = ["services", "count/services"]
    options = spec.get("authOptions") or {}
    if options.get("mode") == "token" and not options.get("secretName"):
        made += ["secrets", "count/secrets"]
    if spec.get("enableInTreeAutoscaling"):
        made += [f"count/{kind}.rbac.authorization.k8s.io" for kind in ("roles", "rolebindings")]
        if not spec["headGroupSpec"]["template"]["spec"].get("serviceAccountName"):
            made.append("count/serviceaccounts")
    return dict.fromkeys(made, Decimal(1))


def head_service(head: ReadOnlyBody) -> Usage:
    """Usage of the head's Service (controllers/ray/common/service.go: getServicePorts)."""
    return service_usage(head, len(head["template"]["spec"]["containers"][0].get("ports") or ()))


def service_usage(head: ReadOnlyBody, ports: int) -> Usage:
    """Usage of a Service of the head's type with that number of ports."""
    kind = head.get("serviceType")
    usage = {"services.loadbalancers": Decimal(1)} if kind == "LoadBalancer" else {}
    return {**usage, "services.nodeports": Decimal(ports)} if kind in ("LoadBalancer", "NodePort") else usage


_KEYS = {entry: key for key, entries in ENTRIES.items() for entry in entries}


@dataclass(frozen=True)
class TenantProblem:
    cluster: int | None
    """Index of the cluster in whose body the path is; None: the path is in the quota."""
    problem: Problem


def beyond_limits(demands: Sequence[Demand], limits: LimitSettings | None) -> Iterator[TenantProblem]:
    """Containers of RayClusters that the LimitRange would refuse, or give too few resources."""
    if limits is None:
        return
    given = defaults(limits)
    for index, demand in enumerate(demands):
        for group in demand.groups:
            for container in group.containers:
                yield from (TenantProblem(index, problem) for problem in _of_container(container, limits, given))


def beyond_quota(
    demands: Sequence[Demand], quota: QuotaSettings, beside: Sequence[Demand] = (), *, a_size: bool = False
) -> Iterator[TenantProblem]:
    """Quota entries below the initial usage, and worker groups that could never start in addition to it.

    `demands`: all clusters of the tenant in the stack. `beside`: StatefulSets that the stack creates in the namespace.
    Other objects of the namespace are not known here. `a_size`: the one demand is a size of a job template, at which
    its problems are then reported.
    """
    starting = [(each.name, each.at_first) for each in (*beside, *demands)]
    at_first = total(usage for _, usage in starting)
    for entry, most in hard(quota).items():
        path = (_KEYS[entry],) if entry in _KEYS else ("hard", entry)
        taken = at_first.get(entry, Decimal(0))
        if taken > amount(most):
            if a_size:
                yield TenantProblem(0, _size_too_large(path, entry, most, demands[0].at_first.get(entry), taken))
            else:
                yield TenantProblem(None, _too_small(path, entry, most, taken, starting))
            continue
        for index, each in enumerate(demands):
            yield from (
                TenantProblem(index, problem) for problem in _cannot_start(each.groups, path, entry, most, taken)
            )


def _too_small(path: Path, entry: str, most: str, taken: Decimal, starting: Sequence[tuple[str, Usage]]) -> Problem:
    parts = [f"{name} {shown(entry, part)}" for name, usage in starting if (part := usage.get(entry))]
    message = (
        f"{entry} is limited to {most}, and the stack's clusters start with {shown(entry, taken)} "
        f"({', '.join(parts)}): raise it, or let them start with less"
    )
    return Problem(path, most, message, "quota-fits-clusters")


def _size_too_large(path: Path, entry: str, most: str, own: Decimal | None, taken: Decimal) -> Problem:
    own = own or Decimal(0)
    others = taken - own
    beside = f" beside the {shown(entry, others)} that the stack's clusters start with" if others else ""
    message = (
        f"a run of this size starts with {entry} {shown(entry, own)}{beside}, and quota.{dotted(path)} is {most}, so "
        "that it would never start: lower its counts or resources, or raise the quota"
    )
    return Problem((), None, message, "quota-fits-clusters")


def _cannot_start(groups: Iterable[Group], path: Path, entry: str, most: str, taken: Decimal) -> Iterator[Problem]:
    for group in groups:
        one = group.usage.get(entry, Decimal(0))
        if group.at_first == 0 and group.most != 0 and taken + one > amount(most):
            message = (
                f"quota.{dotted(path)} is {most}, and a worker of {group.title} takes {entry} {shown(entry, one)} "
                f"beside the {shown(entry, taken)} that the stack's clusters start with, so none could start: raise "
                "the quota, or remove the group"
            )
            yield Problem(group.path, None, message, "quota-fits-worker")


def _of_container(container: Container, limits: LimitSettings, given: Given) -> Iterator[Problem]:
    for resource in RESOURCES:
        request, limit = container.requests.get(resource), container.limits.get(resource)
        if request is None:
            if container.runs_ray and (gets := given["requests"].get(resource)):
                fault = f"sets no {resource}, and the tenant's limits would give it {gets}, which is meant for sidecars"
                yield _fault(container, "limits", resource, f"{fault}: set its {resource}", "ray-without-amounts")
            continue
        if limit is None and (gets := given["limits"].get(resource)) and request > amount(gets):
            fault = (
                f"requests {resource} {shown(resource, request)} without a limit, and the tenant's limits give it "
                f"{gets}, which is less: set its limit"
            )
            yield _fault(container, "requests", resource, fault, "limit-below-request")
        most, least = getattr(limits.max, resource), getattr(limits.min, resource)
        if limit is not None and most and limit > amount(most):
            fault = f"has {resource} {shown(resource, limit)}, more than the tenant's limits.max.{resource} of {most}"
            yield _fault(container, "limits", resource, f"{fault}: lower it, or raise the maximum", "within-limits")
        if least and request < amount(least):
            fault = (
                f"requests {resource} {shown(resource, request)}, less than the tenant's limits.min.{resource} of "
                f"{least}: raise it, or lower the minimum"
            )
            yield _fault(container, "requests", resource, fault, "within-limits")


def _fault(container: Container, part: str, resource: str, message: str, rule: str) -> Problem:
    path = (*container.path, "resources", part, resource)
    return Problem(path, None, f"container {container.name!r} {message}", rule)
