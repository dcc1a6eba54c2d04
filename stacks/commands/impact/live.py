"""The live RayClusters, RayServices and RayJobs of namespaces, their pods, and which of the pods that an edit stops are
busy. Changes nothing.

Ray in each head reports which pods are busy, as for an update (components/rollout). Ray's dashboard would answer
without a command in a pod, but it only reports whether nodes are alive, not whether they are idle (Ray:
dashboard/modules/node/node_head.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain

from components.cluster import Cluster, ClusterUnreachableError
from components.in_use import KINDS_OF_KUBERAY, kuberay_objects
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_service.applications import clusters_of, unanswered
from components.rollout.pods import Pod, Pods, UnknownRayError, group, kind, leaves
from components.tenant.settings import TENANT_LABEL
from core.body import Body
from core.versions import release_of
from stacks.commands.impact.comparison import Impact
from stacks.commands.impact.effects import Effect, ObjectImpact, Range
from stacks.commands.impact.owners import OWNERS, Others, Owner, made_by
from stacks.commands.impact.ray_pods import Known
from stacks.commands.impact.sources import NoSuchSourceError
from stacks.objects.stack import Key
from stacks.settings import StackSettings

_OF_RAY = ("head", "worker")
"""Not the pod of the cleanup Job for Redis (ray-operator/apis/ray/v1/raycluster_types.go: RayNodeType)."""


def running(cluster: Cluster, stack: StackSettings) -> dict[str, Known]:
    """The live RayClusters in the namespaces of a stack's tenants, by `<namespace>/<name>`. Raises NoSuchSourceError if
    they cannot be read."""
    release = release_of(stack.operator.version)
    with _readable(cluster):
        found = (in_namespace(cluster, tenant.namespace_name, release) for tenant in stack.tenants)
        return dict(chain.from_iterable(found))


def others(cluster: Cluster, stack: StackSettings, name: str) -> Others:
    """The live RayServices and RayJobs of the stack's tenants, and the namespaces that the stack of this name has made
    for tenants which its file no longer has. Raises NoSuchSourceError if they cannot be read."""
    namespaces = [tenant.namespace_name for tenant in stack.tenants]
    with _readable(cluster):
        owners = dict(chain.from_iterable(_owners(cluster, each) for each in namespaces))
    if stack.platform:
        return Others(owners)
    try:
        found = cluster.list("v1", "namespaces", labels=TENANT_LABEL) or ()
        gone = [each["metadata"]["name"] for each in found if made_by(each, name)]
        removed = {each: kuberay_objects(cluster, KINDS_OF_KUBERAY, each) for each in gone if each not in namespaces}
    except ClusterUnreachableError as error:
        return Others(owners, notes=(f"Whether the file removes a tenant is unknown: {error}.",))
    return Others(owners, removed)


@contextmanager
def _readable(cluster: Cluster) -> Iterator[None]:
    try:
        yield
    except ClusterUnreachableError as error:
        raise NoSuchSourceError(f"the cluster cannot be read with {cluster.connection}: {error}") from error


def _owners(cluster: Cluster, namespace: str) -> Iterator[tuple[Key, Owner]]:
    found = [{**body, "kind": kind} for kind, plural in OWNERS.items() for body in _listed(cluster, plural, namespace)]
    if not found:
        return
    clusters = {each["metadata"]["name"]: each for each in _listed(cluster, "rayclusters", namespace)}
    pods = cluster.list("v1", "pods", namespace, labels=CLUSTER_LABEL) or ()
    for body in found:
        status = body.get("status") or {}
        own = {*clusters_of(status).values(), status.get("rayClusterName")}
        groups = Counter(str(group(pod) or "") for pod in pods for name in own if name and _is_pod_of(name, pod))
        silent = unanswered(body, clusters) if body["kind"] == "RayService" else None
        yield (body["kind"], f"{namespace}/{body['metadata']['name']}"), Owner(body, groups, silent)


def _listed(cluster: Cluster, plural: str, namespace: str) -> Sequence[Body]:
    return cluster.list("ray.io/v1", plural, namespace) or ()


def in_namespace(cluster: Cluster, namespace: str, release: str) -> Iterator[tuple[str, Known]]:
    """The RayClusters of one namespace, without those of a RayJob or RayService. `release`: minor version of the
    operator. Raises ClusterUnreachableError if the API server does not answer or refuses."""
    pods = cluster.list("v1", "pods", namespace, labels=CLUSTER_LABEL) or ()
    for body in cluster.list("ray.io/v1", "rayclusters", namespace) or ():
        if not body["metadata"].get("ownerReferences"):
            name = body["metadata"]["name"]
            running = [pod for pod in pods if _is_pod_of(name, pod)]
            groups = Counter(str(group(pod) or "") for pod in running)
            yield f"{namespace}/{name}", Known(body, groups, release, running)


def _is_pod_of(cluster: str, pod: Pod) -> bool:
    """Whether it is a pod of that RayCluster, and is not being deleted."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get(CLUSTER_LABEL) == cluster and kind(pod) in _OF_RAY and not leaves(pod)


AT_THIS_MOMENT = "Busy is what Ray in the heads reports now; it may differ when the edit is applied."

_BUSY = ("RUNNING", "DRAINING")
"""States of busy nodes of Ray (rollout_in_head.py). A draining node still has something to finish."""

_AT_ONCE = 8
"""RayClusters that are asked at the same time. Importing Ray takes some seconds in each head."""


@dataclass(frozen=True)
class Answer:
    """What the Ray of a RayCluster reports."""

    busy: Collection[str] = ()
    """Names of the pods on which something runs."""

    unknown: str = ""
    """Why it reports nothing."""


def ask(cluster: Cluster, impact: Impact, running: Mapping[str, Known]) -> dict[str, Answer]:
    """The answers of the RayClusters whose pods are stopped, or stay until they are idle, by their names.

    Changes nothing, but runs Python with Ray in each of these heads for seconds.
    """
    stopped = [each for each in impact.objects if any(effect.ended for effect in each.effects)]
    asked = [each.name for each in stopped if each.kind == "RayCluster" and each.name in running]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return dict(zip(asked, threads.map(lambda name: _answer(cluster, name, running[name]), asked), strict=True))


def with_busy(impact: Impact, running: Mapping[str, Known], answers: Mapping[str, Answer]) -> Impact:
    """The impact with the known busy pods; unchanged for RayClusters that were not asked."""
    objects = tuple(
        _with_answer(each, running[each.name], answers[each.name])
        if each.kind == "RayCluster" and each.name in answers
        else each
        for each in impact.objects
    )
    unknown = [
        f"RayCluster {name}: busy: unknown, each pod may be busy: {answer.unknown}."
        for name, answer in answers.items()
        if answer.unknown
    ]
    known = [AT_THIS_MOMENT] if len(unknown) < len(answers) else []
    return replace(impact, objects=objects, notes=(*impact.notes, *known, *unknown))


def _answer(cluster: Cluster, name: str, known: Known) -> Answer:
    namespace, _, own = name.partition("/")
    try:
        nodes = Pods(cluster, namespace, own).ask(known.pods, {})["nodes"] if known.pods else {}
    except (UnknownRayError, ClusterUnreachableError) as error:
        return Answer(unknown=str(error))
    return Answer(busy_pods(nodes))


def busy_pods(nodes: Mapping[str, str]) -> frozenset[str]:
    """The busy pods. `nodes`: states by pod, as rollout_in_head.py reports them."""
    return frozenset(pod for pod, state in nodes.items() if state in _BUSY)


def _with_answer(each: ObjectImpact, known: Known, answer: Answer) -> ObjectImpact:
    if answer.unknown:
        return replace(each, busy_unknown=answer.unknown)
    return replace(each, effects=tuple(_counted(effect, known, answer.busy) for effect in each.effects))


def _counted(effect: Effect, known: Known, busy: Collection[str]) -> Effect:
    """The effect with its busy pods. This is a range if only some of the pods are stopped, because which ones is
    unknown."""
    if not effect.ended:
        return effect
    pods = [pod for pod in known.pods if not effect.groups or group(pod) in effect.groups]
    there = sum(pod["metadata"]["name"] in busy for pod in pods)
    text = f"{effect.text}; busy now: {there} of {len(pods)}"
    if not effect.verdict.hurts:
        return replace(effect, text=text)
    least = max(effect.ended.least - (len(pods) - there), 0)
    most = there if effect.ended.most is None else min(effect.ended.most, there)
    return replace(effect, text=text, busy=Range(least, most))
