"""What an edit does to a RayCluster and its pods, and to a RayService. Pure functions.

For a RayService it follows the operator: ray-operator/controllers/ray/rayservice_controller.go at v1.6.2,
shouldUpdateCluster and shouldPrepareNewCluster.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from components.ray_cluster.manifests import LABELS_OF_A_NEW_CLUSTER, SETTINGS_BY_LABEL
from components.ray_cluster.pods import OPTIONS
from components.ray_cluster.request import DIGEST, scales
from components.ray_service.applications import replace_it
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import unstamped
from core.body import ReadOnlyBody
from core.problems import few
from kuberay.edit_rules import rule_for
from kuberay.edits import Rule, Steps, Verdict, differences, normal
from kuberay.pods import Counts, groups_of, hashed, least_running
from kuberay.ray_service import INCREMENTAL
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from stacks.commands.impact.effects import Effect, ObjectImpact, Range, impact
from stacks.commands.impact.ray_pods import (
    BY_KUBERAY_ALONE,
    Known,
    all_running,
    as_suspended,
    beyond_most,
    in_kueue,
    of_pods,
    outdated_pods,
    range_of,
    reached,
    removed_group,
    sent,
    shown,
)

_SHOWN = 6
"""Number of fields that an effect names; for the rest it shows the count."""


def of_ray_cluster(
    name: str, before: Known | None, after: ReadOnlyBody | None, updates: UpdatesSettings = BY_KUBERAY_ALONE
) -> ObjectImpact:
    """What happens to the RayCluster `name` and its pods. None: the RayCluster does not exist before or after the edit.

    `updates`: how the edit reaches running pods.
    """
    return impact("RayCluster", name, _effects(before, after, updates))


def _effects(before: Known | None, after: ReadOnlyBody | None, updates: UpdatesSettings) -> Iterator[Effect]:
    if after is None:
        assert before is not None
        yield _deleted(before)
    elif before is None:
        made = _at_first(after["spec"])
        yield Effect(Verdict.CREATES, f"is created, with {made.pods()} at first", made=made)
    else:
        yield from _edited(before, after, updates)


def _at_first(spec: ReadOnlyBody) -> Range:
    """The pods with which a RayCluster starts."""
    number = sum(least_running(spec).values())
    return range_of(number, number)


def _edited(before: Known, after: ReadOnlyBody, updates: UpdatesSettings) -> Iterator[Effect]:
    if recreation := _recreated(before, after):
        yield recreation
        return
    after = as_suspended(before, after)
    changed = list(_changed(before.body, sent(before.body, after)))
    if not changed:
        yield from outdated_pods(before, after, updates, ())
        return
    if in_kueue(after) and not after["spec"].get("suspend"):
        updates = updates if scales(dict(after)) else BY_KUBERAY_ALONE
        if again := _queued_again(before, after["spec"]):
            yield again
            return
    pods = [removed_group(before, after, each, updates) for each in of_pods(before, after)]
    recreated = any(each.verdict is Verdict.RECREATES for each in pods)
    effects = [
        *pods,
        *beyond_most(before, after),
        *_by_rules(before, after, changed, updates, all_recreated=recreated),
    ]
    yield from effects
    yield from outdated_pods(before, after, updates, effects)


def _deleted(before: Known) -> Effect:
    ended = all_running(before)
    keeps = OPTIONS in before.body["spec"]
    tables = ", and the tables of its GCS in Redis" if keeps else ""
    return Effect(
        Verdict.DELETES,
        f"is deleted, with {ended.pods()}{tables}; what runs on it ends",
        "the stack file no longer has a RayCluster with this name and namespace",
        "end what runs on it first; to rename it, add the new name, move the work, then remove the old name",
        "docs/operations.md",
        ended=ended,
    )


def _recreated(before: Known, after: ReadOnlyBody) -> Effect | None:
    """RayClusters that the program deletes and recreates, because KubeRay would ignore an edit in place."""
    why = ""
    if OPTIONS in before.body["spec"] and OPTIONS not in after["spec"]:
        why = (
            "fault tolerance is switched off: KubeRay could never delete the RayCluster if it were edited in place; "
            "the tables of its GCS in Redis are deleted"
        )
    for label in LABELS_OF_A_NEW_CLUSTER:
        if _label(before.body, label) != _label(after, label):
            why = f"{SETTINGS_BY_LABEL[label]} only applies when a RayCluster is created"
    if in_kueue(after) and scales(dict(before.body)) != scales(dict(after)):
        why = "Kueue refuses another value of autoscaling"
    if not why:
        return None
    ended = all_running(before)
    return Effect(
        Verdict.REPLACES,
        f"is deleted and recreated: {ended.pods()} end, and what runs on them",
        why,
        "apply the edit when nothing runs; or add a second RayCluster with the new setting, move the work, and remove "
        "the first",
        "components/ray_cluster/component.py",
        ended=ended,
        made=_at_first(after["spec"]),
    )


def _queued_again(before: Known, spec: ReadOnlyBody) -> Effect | None:
    """An edit after which Kueue suspends the RayCluster, and puts it into its queue again. `spec`: after the edit."""
    if _pod_sets(before.body["spec"]) == _pod_sets(spec):
        return None
    ended = all_running(before)
    return Effect(
        Verdict.RECREATES,
        f"Kueue suspends it, which ends {ended.pods()}, and it waits in its queue again",
        "containers, or numbers of workers, differ from those that Kueue has admitted",
        "apply the edit when nothing runs on it",
        "kueue pkg/controller/jobframework/reconciler.go: ensureOneWorkload",
        ended=ended,
        made=_at_first(spec),
    )


def _pod_sets(spec: ReadOnlyBody) -> Any:
    """What Kueue compares with the Workload of a RayCluster (kueue, pkg/util/equality/podset.go), except the numbers of
    one that scales (pkg/workloadslicing/workloadslicing.go: EnsureWorkloadSlices)."""
    spec = normal(spec)
    groups = (spec["headGroupSpec"], *spec.get("workerGroupSpecs", ()))
    if scales({"spec": spec}):
        return [group.get("groupName") for group in groups]
    return [
        (
            *(group.get(key) for key in ("groupName", "replicas", "numOfHosts")),
            *(group["template"]["spec"].get(key) for key in ("containers", "initContainers")),
        )
        for group in groups
    ]


def _by_rules(
    before: Known, after: ReadOnlyBody, changed: Iterable[Steps], updates: UpdatesSettings, all_recreated: bool
) -> Iterator[Effect]:
    """The effects of the rules for all fields that differ; fields with the same effect are combined."""
    kept = groups_of(after["spec"]).keys() & groups_of(before.body["spec"]).keys()
    found: dict[Rule, list[Steps]] = {}
    for path in changed:
        below = path[1:]
        if path[0] == "metadata":
            yield _of_metadata(path)
        elif _of_added_or_removed_group(below, kept) or (all_recreated and not _service(below)):
            # The effect on the group's pods covers this.
            continue
        else:
            found.setdefault(rule_for(below, scales(dict(after)), before.release), []).append(below)
    head = any(rule.pods not in (None, "workers") for rule in found)
    for rule, paths in found.items():
        groups = list(dict.fromkeys(path[1] for path in paths if path[0] == "workerGroupSpecs" and len(path) > 1))
        effect = reached(before, after, rule, groups, updates, head=head)
        text = effect.text.format(groups=f"group{'s' if len(groups) > 1 else ''} {', '.join(map(shown, groups))}")
        namespace, own = before.body["metadata"].get("namespace", "NAMESPACE"), after["metadata"]["name"]
        safer = effect.safer.replace("-n NAMESPACE", f"-n {namespace}").replace("cluster=NAME", f"cluster={own}")
        yield replace(effect, text=f"{listed(paths)}: {text}", safer=safer)


def _of_added_or_removed_group(path: Steps, kept: Collection[str]) -> bool:
    return len(path) == 2 and path[0] == "workerGroupSpecs" and path[1] not in kept


def _of_metadata(path: Steps) -> Effect:
    field = ".".join(path[1:])
    if len(path) > 2 and path[2] in SETTINGS_BY_LABEL:
        text, why = "takes effect at once, and stops nothing", "the stack also changes the gang in its queue"
        return Effect(Verdict.IN_PLACE, f"{field}: {text}", why, source="components/dynamic/pod_group.py")
    return Effect(Verdict.IN_PLACE, f"{field}: changes on the RayCluster; this alone does not affect pods")


def _service(path: Steps) -> bool:
    """Whether a field belongs to the head's Service, which outlives the pods."""
    of_service = ("headServiceAnnotations",), ("headGroupSpec", "serviceType"), ("headGroupSpec", "headService")
    return any(path[: len(each)] == each for each in of_service) or "ports" in path


def _changed(before: ReadOnlyBody, after: ReadOnlyBody) -> Iterator[Steps]:
    """The paths at which the new RayCluster differs from the old one."""
    for part in ("labels", "annotations"):
        was, will = (dict(body["metadata"].get(part) or {}) for body in (before, after))
        for metadata in (was, will):
            for key in (DIGEST, *(key for key in metadata if key.startswith("pulumi.com/"))):
                metadata.pop(key, None)
        yield from differences(was, will, ("metadata", part))
    if before["spec"] != after["spec"]:
        yield from differences(normal(unstamped(before["spec"])), normal(unstamped(after["spec"])), ("spec",))


def _label(body: ReadOnlyBody, label: str) -> str | None:
    value: str | None = (body["metadata"].get("labels") or {}).get(label)
    return value


def listed(paths: list[Steps]) -> str:
    """The fields, with one name for a field of several worker groups."""
    fields = [(path[0], "*", *path[2:]) if path[0] == "workerGroupSpecs" and len(path) > 2 else path for path in paths]
    return few(list(dict.fromkeys(".".join(each) for each in fields)), _SHOWN)


_CONTROLLER = "kuberay ray-operator/controllers/ray/rayservice_controller.go"
_CLUSTER = "rayClusterConfig"

_NEXT = "KubeRay applies it only to the next RayCluster; the running one stays as it is"

_IN_PLACE = {
    "serveConfigV2": "Serve applies it to the running RayCluster: replicas of changed deployments are replaced one "
    "after the other, so one with a single replica answers nothing until the next runs; no pod ends",
    "upgradeStrategy": "applies to the next change of the RayCluster",
    "rayClusterDeletionDelaySeconds": "applies to the next RayCluster that is replaced",
    "excludeHeadPodFromServeSvc": "the head takes requests, or no longer takes any, within seconds",
}


def of_ray_service(
    before: ReadOnlyBody, after: ReadOnlyBody, running: Counts | None = None, unanswered: str | None = None
) -> Iterator[Effect]:
    """What happens to a RayService. `running`: its pods by group; None: the cluster was not read. `unanswered`: its
    pending RayCluster that KubeRay does not compare (`ray_service.applications`)."""
    was, will = before["spec"], after["spec"]
    there = Known({"metadata": before["metadata"], "spec": was[_CLUSTER]}, running)
    if _label(before, KUEUE_QUEUE_LABEL) != _label(after, KUEUE_QUEUE_LABEL):
        yield _of_another_queue(there, will[_CLUSTER])
        return
    replaced = _of_cluster(there, will)
    if unanswered and replaced and replaced.verdict is Verdict.ROLLING:
        replaced = _not_compared(replaced, before["metadata"]["namespace"], unanswered)
    if in_kueue(after):
        replaced = _queued_again(there, will[_CLUSTER]) or replaced
    for field, text in _IN_PLACE.items():
        if was.get(field) != will.get(field) and not (field == "serveConfigV2" and replaced and replaced.made):
            yield Effect(Verdict.IN_PLACE, f"{field}: {text}", source=f"{_CONTROLLER}: reconcileServe")
    if replaced:
        yield replaced
    # These reach the RayCluster with any other change of it.
    for part in ("labels", "annotations") if replaced is None or replaced.verdict is Verdict.IGNORED else ():
        if (before["metadata"].get(part) or {}) != (after["metadata"].get(part) or {}):
            copied = "KubeRay copies them when it creates a RayCluster"
            yield Effect(Verdict.IGNORED, f"{part}: {_NEXT}", copied, source=f"{_CONTROLLER}: createRayClusterInstance")


def _of_another_queue(before: Known, spec: ReadOnlyBody) -> Effect:
    ended = all_running(before)
    return Effect(
        Verdict.REPLACES,
        f"is deleted and recreated: {ended.pods()} end, and nothing serves until its queue has room",
        "queue only applies when a RayService is created",
        "add a second service in the other queue, move its clients, and remove the first",
        "components/ray_service/component.py",
        ended=ended,
        made=_at_first(spec),
    )


def _not_compared(replaced: Effect, namespace: str, pending: str) -> Effect:
    fields = replaced.text.partition(": ")[0]
    return Effect(
        Verdict.IGNORED,
        f"{fields}: RayCluster {pending} keeps its pods: its head is Ready, but Ray there reports no application, and "
        "before that KubeRay does not compare it with the spec",
        "the service has not served yet, and Ray does not answer or refuses serveConfigV2; on simulated nodes this is "
        "always so",
        f"after the `up`, {replace_it(namespace, pending)}",
        f"{_CONTROLLER}: Reconcile",
    )


def _of_cluster(there: Known, spec: ReadOnlyBody) -> Effect | None:
    """What a change of its RayCluster does. `there`: the RayCluster before it; `spec`: of the RayService after it."""
    was = there.body["spec"]
    will, strategy = spec[_CLUSTER], spec.get("upgradeStrategy") or {}
    paths = list(differences(normal(was), normal(will)))
    if not paths:
        return None
    fields = listed(paths)
    if bool(was.get("suspend")) != bool(will.get("suspend")):
        return _suspended(there, will)
    if hashed(was) == hashed(will):
        return Effect(
            Verdict.IGNORED,
            f"{fields}: {_NEXT}",
            "KubeRay does not compare numbers of workers and tolerations of a service's RayCluster",
            "for the running one, change the RayCluster itself with kubectl; or change a label of the cluster in the "
            "same edit, so that it is replaced",
            "kuberay ray-operator/controllers/ray/utils/util.go: GenerateHashWithoutReplicasAndWorkersToDelete",
        )
    groups = len(was.get("workerGroupSpecs") or ())
    if hashed(was) == hashed({**will, "workerGroupSpecs": (will.get("workerGroupSpecs") or [])[:groups]}):
        return Effect(
            Verdict.IN_PLACE,
            f"{fields}: the worker groups are added to the running RayCluster; numbers of workers are those of the "
            "stack file again",
            "KubeRay writes the whole spec to the RayCluster",
            source=f"{_CONTROLLER}: shouldUpdateCluster",
        )
    if strategy.get("type") == "None":
        return Effect(
            Verdict.IGNORED,
            f"{fields}: {_NEXT}",
            "upgradeStrategy is None",
            "set upgradeStrategy to NewCluster in the same edit, if there is room for a second RayCluster",
            f"{_CONTROLLER}: isZeroDowntimeUpgradeEnabled",
        )
    return _replaced(fields, there, will, strategy)


def _replaced(fields: str, there: Known, will: ReadOnlyBody, strategy: ReadOnlyBody) -> Effect:
    ended, made = all_running(there), _at_first(will)
    unknown = (
        ". A service that has not served yet may stay as it is: `--from live` looks" if there.running is None else ""
    )
    if strategy.get("type") == INCREMENTAL:
        moves = f"requests move to it in steps of {strategy['clusterUpgradeOptions']['stepSizePercent']} %"
    else:
        moves = "all requests go to it once its applications run"
    return Effect(
        Verdict.ROLLING,
        f"{fields}: a second RayCluster starts beside the first, with {made.pods()} at first; {moves}; then the first "
        f"is deleted, with its {ended.pods()}",
        "KubeRay replaces the RayCluster of a service when its spec changes; if the second one never serves, the first "
        f"stays{unknown}",
        "leave room for both, in nodes, quota and queue",
        f"{_CONTROLLER}: shouldPrepareNewCluster",
        ended=ended,
        made=made,
    )


def _suspended(there: Known, will: ReadOnlyBody) -> Effect:
    if will.get("suspend"):
        ended = all_running(there)
        text = f"suspend: {ended.pods()} end, and nothing serves"
        return Effect(Verdict.DELETES, text, source=f"{_CONTROLLER}: shouldUpdateCluster", ended=ended)
    return Effect(Verdict.IN_PLACE, "suspend: the pods are created again", source=f"{_CONTROLLER}: shouldUpdateCluster")
