"""What applying a stack file does to live RayServices and RayJobs, and to tenants that it no longer has. Pure
functions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from components.in_use import has_ended, named, runs
from components.queues.admitted import as_admitted
from components.ray_cluster.manifests import SETTINGS_BY_LABEL
from core.body import ReadOnlyBody
from core.stack_file import PROJECT
from kuberay.edits import Verdict
from kuberay.pods import Counts
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from stacks.commands.impact.effects import Effect, ObjectImpact, impact
from stacks.commands.impact.kinds import KINDS
from stacks.commands.impact.other_objects import of_job
from stacks.commands.impact.ray_cluster import of_ray_service
from stacks.commands.impact.ray_pods import Known, all_running
from stacks.objects.stack import Key, render
from stacks.settings import StackSettings

OWNERS = {"RayService": "rayservices", "RayJob": "rayjobs"}
"""Kinds whose RayClusters KubeRay creates, with their plurals."""

_CONFIG = {"RayService": "rayClusterConfig", "RayJob": "rayClusterSpec"}


@dataclass(frozen=True)
class Owner:
    """A live RayService or RayJob."""

    body: ReadOnlyBody
    """With its `kind`."""

    running: Counts = field(default_factory=dict)
    """The pods of its RayClusters, by group."""

    unanswered: str | None = None
    """A RayService's pending RayCluster that KubeRay does not compare (`ray_service.applications`)."""


@dataclass(frozen=True)
class Others:
    """What was read of the cluster besides RayClusters."""

    owners: Mapping[Key, Owner] = field(default_factory=dict)

    removed: Mapping[str, Sequence[ReadOnlyBody]] = field(default_factory=dict)
    """The namespaces of tenants that the stack has made and its file no longer has, with KubeRay's objects there."""

    notes: tuple[str, ...] = ()
    """What could not be read."""


def of_owners(owners: Mapping[Key, Owner], after: StackSettings, stack: str) -> Iterator[ObjectImpact]:
    """The effects on each. `stack`: the name of the stack; what others have made stays."""
    will = {key: each.body for key, each in render(after).items() if key[0] in OWNERS}
    for key in dict.fromkeys([*owners, *will]):
        if key in will or made_by(owners[key].body, stack):
            yield impact(*key, _effects(key[0], owners.get(key), will.get(key)))


def of_removed(removed: Mapping[str, Sequence[ReadOnlyBody]]) -> Iterator[ObjectImpact]:
    """The namespaces of tenants that the file no longer has."""
    gone = KINDS["Namespace"]
    for namespace, objects in removed.items():
        if running := [each for each in objects if runs(each)]:
            refused = (
                f"`pulumi up` refuses to remove the tenant while there is {named(running)}; only if its allowDelete "
                "was true in the last `up`, it is deleted with all of it"
            )
            yield impact("Namespace", namespace, [Effect(Verdict.REFUSED, refused, safer=SAFER_REMOVAL)])
        else:
            text = f"{gone.gone}; nothing of KubeRay runs there now"
            yield impact("Namespace", namespace, [Effect(gone.losing, text)])


SAFER_REMOVAL = (
    "end what runs there first. Or set allowDelete: true, run `pulumi up`, and remove the tenant then: it is deleted "
    "with all RayClusters, their pods, Secrets, tokens and volumes"
)


def with_refused(objects: Iterable[ObjectImpact], namespaces: Collection[str]) -> Iterator[ObjectImpact]:
    """With what `up` refuses: what runs in these namespaces of removed tenants. Suspended or ended, it is deleted."""
    refused = "; while it runs, `pulumi up` refuses to remove its tenant, and deletes nothing"
    for each in objects:
        if each.kind in ("RayCluster", *OWNERS) and each.name.rpartition("/")[0] in namespaces:
            yield impact(each.kind, each.name, [replace(one, text=f"{one.text}{refused}") for one in each.effects])
        else:
            yield each


def made_by(body: ReadOnlyBody, stack: str) -> bool:
    """Whether a stack of this name created the object, by its field manager."""
    managers = body["metadata"].get("managedFields") or ()
    return any(each.get("manager") == f"pulumi-{PROJECT}-{stack}" for each in managers)


def with_external_metadata(before: ReadOnlyBody, after: ReadOnlyBody) -> ReadOnlyBody:
    """An object with the labels and annotations of other managers, which an update keeps."""
    metadata = dict(after["metadata"])
    for part in ("labels", "annotations"):
        existing = before["metadata"].get(part) or {}
        kept = {key: value for key, value in existing.items() if key not in SETTINGS_BY_LABEL}
        if both := {**kept, **(metadata.get(part) or {})}:
            metadata[part] = both
    return {**after, "metadata": metadata}


def _effects(kind: str, before: Owner | None, after: ReadOnlyBody | None) -> Iterator[Effect]:
    means = KINDS[kind]
    if before is None:
        yield Effect(Verdict.CREATES, means.made)
    elif after is None and has_ended(before.body):
        yield Effect(Verdict.REMOVES, "is deleted with its status and its cluster; its job has ended")
    elif after is None:
        ended = all_running(Known(before.body, before.running))
        yield Effect(means.losing, means.gone, safer=means.safer, ended=ended)
    else:
        will = _as_queued(kind, before.body, with_external_metadata(before.body, after))
        if kind == "RayService":
            yield from of_ray_service(before.body, will, before.running, before.unanswered)
        else:
            for each in of_job(means, before.body, will):
                yield _of_ended(each) if has_ended(before.body) else each


def _as_queued(kind: str, before: ReadOnlyBody, after: ReadOnlyBody) -> ReadOnlyBody:
    """With what Kueue has written, which an update keeps."""
    if KUEUE_QUEUE_LABEL not in (before["metadata"].get("labels") or {}):
        return after
    spec, live, config = dict(after["spec"]), before["spec"], _CONFIG[kind]
    if "suspend" in live:
        spec.setdefault("suspend", live["suspend"])
    if config in spec and config in live:
        spec[config] = as_admitted(spec[config], live[config])
    return {**after, "spec": spec}


def _of_ended(effect: Effect) -> Effect:
    if effect.verdict is not Verdict.REPLACES:
        return effect
    text = "its settings or its runId change: its job, which has ended, runs again from the beginning"
    return Effect(Verdict.IN_PLACE, text, effect.reason, source=effect.source)
