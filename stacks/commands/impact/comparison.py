"""What an edit of a stack file does to all objects of the stack, and to its GPUs, cost and promises. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from components.ray_cluster.pods import OPTIONS
from components.rollout.settings import UpdatesSettings
from components.tenant.demand import Usage
from components.tls.manifests import secret_name
from core.body import ReadOnlyBody
from core.nodes import GPU_RESOURCE
from core.versions import release_of
from kuberay.edit_rules import RULES
from kuberay.edits import Verdict
from stacks.commands.impact.cml import of_cml
from stacks.commands.impact.effects import Effect, ObjectImpact, worst
from stacks.commands.impact.other_objects import of_objects, of_rights
from stacks.commands.impact.owners import (
    SAFER_REMOVAL,
    Others,
    made_by,
    of_owners,
    of_removed,
    with_external_metadata,
    with_refused,
)
from stacks.commands.impact.programs import of_programs
from stacks.commands.impact.ray_cluster import of_ray_cluster
from stacks.commands.impact.ray_pods import BY_KUBERAY_ALONE, Known
from stacks.commands.impact.remote_jobs import of_remote_jobs
from stacks.commands.impact.sources import ray_clusters, updates
from stacks.commands.plan.report import figure, money
from stacks.objects.stack import render
from stacks.planning.overcommitment import overcommitments
from stacks.planning.plan import Plan, plan_of
from stacks.settings import StackSettings

KEYS = "externalStorageNamespace"

ALL = "all tenants"


@dataclass(frozen=True)
class Amounts:
    always: str
    most: str
    cost: str
    """Per hour, from the GPUs that always run to the most; `-` if no price is set."""


@dataclass(frozen=True)
class Figures:
    """The figures of one tenant, or of all together, before and after. None: the tenant does not exist then."""

    whose: str
    before: Amounts | None
    after: Amounts | None


@dataclass(frozen=True)
class Budget:
    """The figures that differ."""

    rows: tuple[Figures, ...] = ()

    promises: tuple[str, ...] = ()
    """What the nodes could provide before the edit, but not after it."""


NO_BUDGET = Budget()

NOT_COUNTED = (
    "How many pods run and how many of them are busy is unknown without the cluster. The numbers are what the stack "
    "file allows; `--from live` counts the pods."
)
ONLY_KUBERAY = (
    "RayClusters, RayServices, RayJobs and the tenants that the file no longer has were compared with the cluster. All "
    "other objects, such as quotas and rights, are only compared between two files."
)


@dataclass(frozen=True)
class Impact:
    objects: tuple[ObjectImpact, ...]
    """The affected objects, the worst effect first."""

    budget: Budget = NO_BUDGET

    notes: tuple[str, ...] = ()
    """What a reader has to know about these results."""

    @property
    def verdict(self) -> Verdict:
        """The worst effect."""
        return worst(each.verdict for each in self.objects)


def impact_of(before: StackSettings | None, after: StackSettings, price: float | None = None) -> Impact:
    """The impact of changing the stack file from `before` to `after`. None: the stack is new.

    `price`: of a GPU in an hour, for pools that set none.
    """
    old = before or StackSettings()
    had, release = updates(old), _release(old)
    was = {name: Known(body, None, release, updates=had[name]) for name, body in ray_clusters(old).items()}
    objects = render(old) if before else {}, render(after)
    refused = _refused(old, after)
    work = [
        *_of_ray_clusters(was, ray_clusters(after), updates(after)),
        *(refused.get((each.kind, each.name), each) for each in of_objects(*objects, _authorities(old))),
    ]
    objects_impact = [
        *with_refused(work, {namespace for _, namespace in refused}),
        *of_rights(*objects),
        *of_programs(before, after),
        *of_cml(before, after),
        *of_remote_jobs(before, after),
    ]
    return _sorted(objects_impact, [*_of_release(old), NOT_COUNTED], budget(old, after, price))


def _refused(before: StackSettings, after: StackSettings) -> dict[tuple[str, str], ObjectImpact]:
    """The Namespaces of tenants that `up` does not remove while something runs there, by kind and name."""
    stay = {tenant.name for tenant in after.tenants}
    effect = Effect(
        Verdict.REFUSED,
        "`pulumi up` refuses to remove the tenant while something runs there, because its allowDelete is false, and "
        "deletes nothing of it then",
        safer=SAFER_REMOVAL,
    )
    return {
        ("Namespace", tenant.namespace_name): ObjectImpact("Namespace", tenant.namespace_name, (effect,))
        for tenant in before.tenants
        if tenant.name not in stay and not tenant.allow_delete
    }


NO_OTHERS = Others()


def impact_on(running: Mapping[str, Known], after: StackSettings, stack: str, others: Others = NO_OTHERS) -> Impact:
    """The impact on live RayClusters, RayServices, RayJobs and tenants when the stack file `after` is applied.
    `stack`: its name."""
    will = dict(ray_clusters(after))
    was = {name: known for name, known in running.items() if name in will or made_by(known.body, stack)}
    for name, known in was.items():
        if name in will:
            will[name] = with_external_metadata(known.body, _with_known_keys(known.body, will[name]))
    removed = list(of_removed(others.removed))
    work = [*_of_ray_clusters(was, will, updates(after)), *of_owners(others.owners, after, stack)]
    found = _sorted([*removed, *work], _of_release(after))
    return replace(found, notes=(*found.notes, *others.notes, ONLY_KUBERAY))


def _with_known_keys(before: ReadOnlyBody, after: ReadOnlyBody) -> ReadOnlyBody:
    """A RayCluster with the prefix of its keys in Redis, which only an update knows."""
    known, options = (body["spec"].get(OPTIONS) or {} for body in (before, after))
    if not options or KEYS in options or KEYS not in known:
        return after
    return {**after, "spec": {**after["spec"], OPTIONS: {**options, KEYS: known[KEYS]}}}


def _of_ray_clusters(
    before: Mapping[str, Known], after: Mapping[str, ReadOnlyBody], settings: Mapping[str, UpdatesSettings]
) -> Iterator[ObjectImpact]:
    for name in dict.fromkeys([*before, *after]):
        yield of_ray_cluster(name, before.get(name), after.get(name), settings.get(name, BY_KUBERAY_ALONE))


def _authorities(stack: StackSettings) -> frozenset[str]:
    """The Secrets with the authorities that the stack itself creates, by `<namespace>/<name>`."""
    return frozenset(
        f"{tenant.namespace_name}/{secret_name(cluster.name)}"
        for tenant in stack.tenants
        for cluster in tenant.all_clusters
        if cluster.tls and not cluster.tls.issuer
    )


def _sorted(objects: Iterable[ObjectImpact], notes: Iterable[str], figures: Budget = NO_BUDGET) -> Impact:
    found = [each for each in objects if each.effects]
    return Impact(tuple(sorted(found, key=lambda each: -each.verdict.harm)), figures, tuple(notes) if found else ())


def _release(stack: StackSettings) -> str:
    return release_of(stack.operator.version)


def _of_release(stack: StackSettings) -> Iterator[str]:
    if (release := _release(stack)) not in RULES:
        yield f"The rules are those of KubeRay {next(iter(RULES))}; this stack has {release}, which may differ."


def budget(before: StackSettings, after: StackSettings, price: float | None = None) -> Budget:
    """The figures that differ, tenant by tenant. `price`: of a GPU in an hour, for pools that set none."""
    was, will = plan_of(before, price), plan_of(after, price)
    had, has = dict(_amounts(was)), dict(_amounts(will))
    rows = (Figures(whose, had.get(whose), has.get(whose)) for whose in dict.fromkeys([*had, *has]))
    known = {problem.message for problem in overcommitments(was)}
    new = (problem.message for problem in overcommitments(will) if problem.message not in known)
    return Budget(tuple(row for row in rows if row.before != row.after), tuple(new))


def _amounts(plan: Plan) -> Iterator[tuple[str, Amounts]]:
    for tenant in plan.tenants:
        yield tenant.settings.name, Amounts(_gpus(tenant.starts), _gpus(tenant.maximum), money(tenant.cost))
    if plan.tenants:
        yield ALL, Amounts(_gpus(plan.started.taken()), _gpus(plan.promised), money(plan.cost))


def _gpus(usage: Usage) -> str:
    return figure(usage, GPU_RESOURCE)
