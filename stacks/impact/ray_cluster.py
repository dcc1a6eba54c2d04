"""What an edit does to a RayCluster and its pods. Pure functions."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.queues.admission import KUEUE_QUEUE_LABEL
from components.ray_cluster.fault_tolerance import OPTIONS
from components.ray_cluster.scaled import DIGEST, OWNED, Scaled, as_scaled, scales
from components.ray_cluster.scheduling import LABELS_OF_A_NEW_CLUSTER, SETTINGS_BY_LABEL

from .differences import Steps, differences, normal
from .effects import Effect, ObjectImpact, Range, Verdict, impact
from .kuberay_rules import Rule, rule_for
from .pods import (
    HEAD,
    UNLIMITED,
    Counts,
    PodChange,
    as_running,
    change_of_pods,
    groups_of,
    least_running,
    most_running,
)

Body = Mapping[str, Any]

_OPERATOR = "kuberay ray-operator/controllers/ray/raycluster_controller.go: reconcilePods"
_SHOWN = 6
"""Fields that an effect names; of more it says how many."""


@dataclass(frozen=True)
class Known:
    """A RayCluster before the edit."""

    body: Body

    running: Counts | None = None
    """Its pods by group, where the cluster was read; None: what the stack file says of their number."""

    release: str = "1.6"
    """Minor version of the operator."""


def of_ray_cluster(name: str, before: Known | None, after: Body | None) -> ObjectImpact:
    """What becomes of the RayCluster `name` and its pods. None: it was, or will be, not there."""
    return impact("RayCluster", name, _effects(before, after))


def _effects(before: Known | None, after: Body | None) -> Iterator[Effect]:
    if after is None:
        assert before is not None
        yield _deleted(before)
    elif before is None:
        least = least_running(after["spec"])
        made = _range(sum(least.values()), sum(least.values()))
        yield Effect(Verdict.CREATES, f"is made, with {made.pods()} at first", made=made)
    else:
        yield from _edited(before, after)


def _edited(before: Known, after: Body) -> Iterator[Effect]:
    if anew := _made_anew(before, after):
        yield anew
        return
    changed = list(_changed(before.body, sent(before.body, after)))
    if not changed:
        return
    if KUEUE_QUEUE_LABEL in (after["metadata"].get("labels") or {}) and not after["spec"].get("suspend"):
        yield _kept_by_kueue()
    pods = _pods(before, after)
    yield from pods
    yield from _beyond_most(before, after)
    yield from _by_rules(before, after, changed, all_anew=any(each.verdict is Verdict.RECREATES for each in pods))


# --- the object as a whole


def _deleted(before: Known) -> Effect:
    ended = _all_running(before)
    keeps = OPTIONS in before.body["spec"]
    tables = ", and what its GCS keeps in Redis" if keeps else ""
    return Effect(
        Verdict.DELETES,
        f"is deleted, with {ended.pods()}{tables}; what runs on it ends",
        "the stack file has it no more under this name and namespace",
        "end what runs on it first; to rename it, add the new name, move the work, and then remove the old one",
        "docs/operations.md",
        ended=ended,
    )


def _made_anew(before: Known, after: Body) -> Effect | None:
    """RayClusters that the program deletes and makes again, because an edit in place would not be heeded."""
    why = ""
    if OPTIONS in before.body["spec"] and OPTIONS not in after["spec"]:
        why = (
            "fault tolerance is switched off: KubeRay could never delete the RayCluster if it were edited in place, "
            "and what its GCS keeps in Redis goes"
        )
    for label in LABELS_OF_A_NEW_CLUSTER:
        if _label(before.body, label) != _label(after, label):
            why = f"{SETTINGS_BY_LABEL[label]} is only heeded when a RayCluster is made"
    if not why:
        return None
    ended, least = _all_running(before), least_running(after["spec"])
    return Effect(
        Verdict.REPLACES,
        f"is deleted and made anew: {ended.pods()} end, and what runs on it",
        why,
        "do it when nothing runs; or add a second RayCluster with the new setting, move the work, and remove the first",
        "components/ray_cluster/component.py",
        ended=ended,
        made=_range(sum(least.values()), sum(least.values())),
    )


def _kept_by_kueue() -> Effect:
    return Effect(
        Verdict.REFUSED,
        "`pulumi up` ends with a conflict once Kueue has let the RayCluster in; nothing is changed then",
        "Kueue writes into the list of worker groups, which is one value to the API server",
        "delete the RayCluster when nothing runs on it, and run `pulumi up` again",
        "docs/operations.md, What does not work yet",
    )


# --- its pods


def _pods(before: Known, after: Body) -> list[Effect]:
    """What KubeRay does to pods, at the least and at the most that may run."""
    few, many = (_change(before, after, counts) for counts in _bounds(before))
    if many.recreated:
        return [_recreated(before, few, many)]
    running = _bounds(before)
    found = []
    for group in dict.fromkeys([*few.deleted, *many.deleted]):
        found.append(_ended(after, group, _of(few.deleted, many.deleted, group), _of(*running, group)))
    for group in dict.fromkeys([*few.orphaned, *many.orphaned]):
        found.append(_orphaned(after, group, _of(few.orphaned, many.orphaned, group)))
    for group in dict.fromkeys([*few.created, *many.created]):
        made = _of(few.created, many.created, group)
        found.append(Effect(Verdict.CREATES, f"makes {made.pods()} {_called(group)}", source=_OPERATOR, made=made))
    return [each for each in found if each.ended or each.made or each.verdict is Verdict.ORPHANS]


def _recreated(before: Known, few: PodChange, many: PodChange) -> Effect:
    ended = _all_running(before)
    return Effect(
        Verdict.RECREATES,
        f"deletes all {ended.pods()} at once, the head as well, and makes them anew: what runs on them is lost",
        "upgradeStrategy is Recreate, which does so at each edit of the spec but for numbers of replicas and "
        "tolerations, also when a worker group is added or an idle timeout changed",
        "do it when nothing runs; or leave upgradeStrategy out in the same edit, and only new pods are as edited",
        "kuberay ray-operator/controllers/ray/utils/util.go: GenerateHashWithoutReplicasAndWorkersToDelete",
        ended=ended,
        made=_range(sum(few.created.values()), sum(many.created.values())),
    )


def _ended(after: Body, group: str, ended: Range, of: Range) -> Effect:
    if after["spec"].get("suspend"):
        why, safer = "the RayCluster is suspended", "wait until nothing runs"
    elif groups_of(after["spec"]).get(group, {}).get("suspend"):
        why, safer = "the worker group is suspended", "wait until nothing runs"
    elif groups_of(after["spec"]).get(group, {}).get("numOfHosts", 1) > 1:
        why = "numOfHosts: workers that have not as many hosts as they should are deleted whole"
        safer = "add a worker group with the new numOfHosts under another name, and retire the old one when it is idle"
    else:
        why = (
            "without the autoscaler KubeRay deletes any pods that are too many, whether they are busy or not; what the "
            "autoscaler had added beyond replicas is too many, too"
        )
        safer = "set replicas to what runs, and lower it when workers are idle; or let the autoscaler end idle workers"
    return Effect(Verdict.ENDS, f"deletes {ended} of {of.pods()} {_called(group)}", why, safer, _OPERATOR, ended=ended)


def _orphaned(after: Body, group: str, pods: Range) -> Effect:
    name = _name(group)
    if group in groups_of(after["spec"]):
        return Effect(
            Verdict.ORPHANS,
            f"orphans {pods.pods()} of group {name}: they run on, and KubeRay makes as many workers besides",
            "workers of several hosts are told by labels that pods of the old numOfHosts do not have",
            "add a worker group with the new numOfHosts under another name, and retire the old one when it is idle",
            "kuberay ray-operator/controllers/ray/raycluster_controller.go: reconcileMultiHostWorkerGroup",
        )
    breaks = (
        " Ray's autoscaler does not know them either: it fails while one is there, and the whole RayCluster scales no "
        "more"
        if scales(dict(after))
        else ""
    )
    return Effect(
        Verdict.ORPHANS,
        f"orphans group {name}: {pods.pods()} run on with their GPUs, and nobody ends them",
        f"KubeRay goes through the worker groups that the RayCluster has, and looks at no others.{breaks}",
        "give the group `maxReplicas: 0`, wait until it has no pods, and then remove it; a renamed group is one that "
        f"is removed. Afterwards: `kubectl delete pod -l ray.io/cluster={after['metadata']['name']},ray.io/group={group}`"
        " in its namespace",
        f"{_OPERATOR}; kuberay#1739",
    )


def _beyond_most(before: Known, after: Body) -> Iterator[Effect]:
    """Workers that the autoscaler, not KubeRay, ends because a group may have fewer now."""
    if not (scales(dict(after)) and scales(dict(before.body))):
        return
    least, most = _bounds(before)
    was = groups_of(before.body["spec"])
    for name, group in groups_of(after["spec"]).items():
        limit = group["maxReplicas"] * group["numOfHosts"]
        if name not in was or limit >= was[name]["maxReplicas"] * was[name]["numOfHosts"]:
            continue
        ended = _of({name: max(least.get(name, 0) - limit, 0)}, {name: _less(most.get(name, 0), limit)}, name)
        if ended:
            yield Effect(
                Verdict.ENDS,
                f"the autoscaler ends {ended} of {_of(least, most, name).pods()} {_called(name)}, idle ones first, and "
                "then busy ones",
                f"maxReplicas is {group['maxReplicas']} now, and the autoscaler keeps to it at once",
                "wait until no more than that run",
                "ray python/ray/autoscaler/v2/scheduler.py: _enforce_max_workers_per_type",
                ended=ended,
            )


def _change(before: Known, after: Body, counts: Counts) -> PodChange:
    """What KubeRay does if so many pods run."""
    was = before.body
    if before.running is None:
        was = {**was, "spec": as_running(was["spec"], counts)}
    return change_of_pods(was["spec"], sent(was, after)["spec"], counts)


def sent(before: Body, after: Body) -> Body:
    """The RayCluster as an update sends it: with what the autoscaler has made of it."""
    if not scales(dict(after)):
        return after
    alive = {
        group["groupName"]: {key: group[key] for key in OWNED if key in group}
        for group in before["spec"].get("workerGroupSpecs") or ()
    }
    return as_scaled(dict(after), Scaled(None, alive))[0]


# --- its fields


def _by_rules(before: Known, after: Body, changed: Iterable[Steps], all_anew: bool) -> Iterator[Effect]:
    """What the rules say of the fields that differ, put together where they say the same."""
    kept = groups_of(after["spec"]).keys() & groups_of(before.body["spec"]).keys()
    found: dict[Rule, list[Steps]] = {}
    for path in changed:
        below = path[1:]
        if path[0] == "metadata":
            yield _of_metadata(path)
        elif _of_group_that_comes_or_goes(below, kept) or (all_anew and not _service(below)):
            # That is said of its pods.
            continue
        else:
            found.setdefault(rule_for(below, scales(dict(after)), before.release), []).append(below)
    for rule, paths in found.items():
        groups = dict.fromkeys(_name(path[1]) for path in paths if path[0] == "workerGroupSpecs" and len(path) > 1)
        says = rule.says.format(groups=f"group{'s' if len(groups) > 1 else ''} {', '.join(groups)}")
        yield Effect(rule.verdict, f"{_listed(paths)}: {says}", rule.reason, rule.safer, rule.source)


def _of_group_that_comes_or_goes(path: Steps, kept: Collection[str]) -> bool:
    return len(path) == 2 and path[0] == "workerGroupSpecs" and path[1] not in kept


def _of_metadata(path: Steps) -> Effect:
    field = ".".join(path[1:])
    if len(path) > 2 and path[2] in SETTINGS_BY_LABEL:
        says, why = "takes effect at once, and stops nothing", "the stack changes the gang in its queue, too"
        return Effect(Verdict.IN_PLACE, f"{field}: {says}", why, source="components/ray_cluster/pod_group.py")
    return Effect(Verdict.IN_PLACE, f"{field}: is changed on the RayCluster; pods are not touched by this alone")


def _service(path: Steps) -> bool:
    """Whether a field is of the head's Service, which outlives the pods."""
    of_service = ("headServiceAnnotations",), ("headGroupSpec", "serviceType"), ("headGroupSpec", "headService")
    return any(path[: len(each)] == each for each in of_service) or "ports" in path


def _changed(before: Body, after: Body) -> Iterator[Steps]:
    """The paths at which what the stack says of a RayCluster differs from what it was."""
    for part in ("labels", "annotations"):
        was, will = (dict(body["metadata"].get(part) or {}) for body in (before, after))
        for said in (was, will):
            for key in (DIGEST, *(key for key in said if key.startswith("pulumi.com/"))):
                said.pop(key, None)
        yield from differences(was, will, ("metadata", part))
    yield from differences(normal(before["spec"]), normal(after["spec"]), ("spec",))


# --- words and figures


def _bounds(before: Known) -> tuple[Counts, Counts]:
    if before.running is not None:
        return before.running, before.running
    return least_running(before.body["spec"]), most_running(before.body["spec"])


def _all_running(before: Known) -> Range:
    least, most = _bounds(before)
    return _range(sum(least.values()), sum(most.values()))


def _range(least: int, most: int) -> Range:
    return Range(least, None if most >= UNLIMITED else most)


def _of(least: Counts, most: Counts, group: str) -> Range:
    few, many = sorted((least.get(group, 0), most.get(group, 0)))
    return _range(few, many)


def _less(number: int, by: int) -> int:
    return number if number >= UNLIMITED else max(number - by, 0)


def _called(group: str) -> str:
    return "of the head" if group == HEAD else f"of worker group {_name(group)}"


def _name(group: str) -> str:
    return group if group.isprintable() else repr(group)


def _label(body: Body, label: str) -> str | None:
    value: str | None = (body["metadata"].get("labels") or {}).get(label)
    return value


def _listed(paths: list[Steps]) -> str:
    """The fields, with one name for those that several worker groups have."""
    fields = [(path[0], "*", *path[2:]) if path[0] == "workerGroupSpecs" and len(path) > 2 else path for path in paths]
    named = list(dict.fromkeys(".".join(each) for each in fields))
    more = len(named) - _SHOWN
    return ", ".join(named[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
