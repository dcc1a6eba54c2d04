"""What a page shows of a plan and of a status, in its order, and its HTML: one file without any other, with a
Content-Security-Policy that allows nothing else. Pure functions.

The plan is that of `ray-platform plan`, the status that of `ray-platform status`: both are only arranged here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from components.capacity.placement import Node
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_cluster.readiness import ENDED
from components.ray_job.manifests import SUBMITTER_LABEL
from components.rollout.pods import group, kind
from core.body import Body
from core.nodes import GPU_PRODUCT_LABEL, NodePool, gpu_names
from core.quantities import amount
from stacks.commands.plan.drawing import MOST_NODES, svg
from stacks.commands.plan.report import Report, Table
from stacks.commands.plan.report import report as report_of
from stacks.commands.status.budgets import QueueStatus
from stacks.commands.status.clusters import Gpus, phase, requested
from stacks.commands.status.cml import CmlStatus
from stacks.commands.status.report import CML, QUEUES, REMOTE_JOBS, Section, figures, sections
from stacks.commands.status.snapshot import Found
from stacks.commands.status.tenants import StackStatus, TenantStatus
from stacks.planning.plan import Plan

if TYPE_CHECKING:
    from stacks.commands.page.charts import Chart

COLOURS = 8
"""Colours of the page, which owners of pods share in turn."""


@dataclass(frozen=True)
class Pods:
    """Pods of one group on one node."""

    owner: str
    """`<namespace>/<name>` of the RayCluster, or of what else they belong to."""
    group: str
    """The worker group, or `head`."""
    number: int
    gpus: int
    """Of all of them."""
    colour: int
    """Of their owner, from 0."""


@dataclass(frozen=True)
class NodeShown:
    name: str
    gpus: int
    pods: tuple[Pods, ...]
    notes: tuple[str, ...] = ()
    """What keeps pods away from it: `not ready`, `cordoned`."""

    @property
    def held(self) -> int:
        return sum(each.gpus for each in self.pods)

    @property
    def cells(self) -> list[int | None]:
        """For each GPU the colour of its pod; None for a free one."""
        taken: list[int | None] = [each.colour for each in self.pods for _ in range(each.gpus)]
        return [*taken, *[None] * (self.gpus - len(taken))]


@dataclass(frozen=True)
class PoolShown:
    """Nodes of one shape."""

    title: str
    nodes: tuple[NodeShown, ...]
    """At most MOST_NODES, those with pods first if there are more."""
    number: int
    """All of them."""
    held: int
    gpus: int


def planned(plan: Plan) -> list[PoolShown]:
    """The nodes of the stack file with the pods that RayClusters start with."""
    every = plan.started.nodes
    colours = _colours_of(plan, ())
    pools = ((pool.pool, [_planned(node, colours) for node in every if node.pool == pool]) for pool in plan.pools)
    return [_pool(title, nodes) for title, nodes in pools]


def _planned(node: Node, colours: Mapping[str, int]) -> NodeShown:
    counted = Counter((each.owner, each.group, int(each.gpus)) for each in node.pods)
    return NodeShown(f"{node.pool.pool}-{node.number}", node.pool.gpus, tuple(_pods(counted, colours)))


def live(plan: Plan, found: Found, namespaces: Mapping[str, Found]) -> list[PoolShown]:
    """The nodes of the cluster with the tenants' pods. Without the right to read nodes, those that have pods."""
    placed: dict[str, Counter[tuple[str, str, int]]] = {}
    for namespace, objects in namespaces.items():
        for pod in objects.all("pods"):
            if (node := pod["spec"].get("nodeName")) and phase(pod) not in ENDED:
                owner, its_group = _owner(pod)
                placed.setdefault(node, Counter())[f"{namespace}/{owner}", its_group, requested(pod)] += 1
    colours = _colours_of(plan, (owner for counted in placed.values() for owner, _, _ in counted))
    bodies = {each["metadata"]["name"]: each for each in found.all("nodes")}
    unknown = "Nodes that this account must not read" if found.unreadable else "Nodes that do not exist any more"
    pools: dict[str, list[NodeShown]] = {pool.pool: [] for pool in plan.pools} if bodies else {}
    for name in sorted({*bodies, *placed}, key=_natural):
        pods = tuple(_pods(placed.get(name, Counter()), colours))
        body = bodies.get(name)
        gpus = _gpus(body) if body else sum(each.gpus for each in pods)
        title = _pool_of(body, plan.pools) if body else unknown
        pools.setdefault(title, []).append(NodeShown(name, gpus, pods, tuple(_notes(body or {}))))
    return [_pool(title, nodes) for title, nodes in pools.items()]


def _colours_of(plan: Plan, others: Iterable[str]) -> dict[str, int]:
    """A colour for each owner of pods: RayClusters in the order of the stack file, then the others by name."""
    own = [cluster.name for cluster in plan.clusters]
    return {name: place % COLOURS for place, name in enumerate(dict.fromkeys([*own, *sorted(set(others))]))}


def _pool(title: str, nodes: Sequence[NodeShown]) -> PoolShown:
    shown = nodes if len(nodes) <= MOST_NODES else sorted(nodes, key=lambda node: not node.pods)[:MOST_NODES]
    held, gpus = sum(each.held for each in nodes), sum(each.gpus for each in nodes)
    return PoolShown(title, tuple(shown), len(nodes), held, gpus)


def _pods(counted: Mapping[tuple[str, str, int], int], colours: Mapping[str, int]) -> Iterator[Pods]:
    """Those with the most GPUs first."""
    for (owner, its_group, gpus), number in sorted(counted.items(), key=lambda item: (-item[0][2], item[0])):
        yield Pods(owner, its_group, number, gpus * number, colours.get(owner, len(colours) % COLOURS))


def _owner(pod: Body) -> tuple[str, str]:
    """Name of the RayCluster, RayJob or whatever else a pod belongs to, and its group."""
    metadata: Any = pod["metadata"]
    labels = metadata.get("labels") or {}
    if cluster := labels.get(CLUSTER_LABEL):
        return cluster, "head" if kind(pod) == "head" else group(pod) or "worker"
    if job := labels.get(SUBMITTER_LABEL):
        return job, "submitter"
    owners = metadata.get("ownerReferences") or ()
    return (owners[0]["name"], "pod") if owners else (metadata["name"], "pod")


def _gpus(node: Body) -> int:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return int(sum(amount(str(allocatable[name])) for name in gpu_names(allocatable)))


def _pool_of(node: Body, pools: Iterable[NodePool]) -> str:
    """The pool of the stack file whose labels, product and GPUs a node has; of several the one with the most labels."""
    labels = node["metadata"].get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    meant = [
        pool
        for pool in pools
        if amount(str(allocatable.get(pool.gpu_resource, 0))) == pool.gpus
        and pool.labels.items() <= labels.items()
        and (pool.gpu_product is None or labels.get(GPU_PRODUCT_LABEL) == pool.gpu_product)
    ]
    named = max(meant, key=lambda pool: (len(pool.labels), pool.gpu_product is not None), default=None)
    return named.pool if named else "Nodes of no pool of the stack file"


def _notes(node: Body) -> Iterator[str]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    if any(each["type"] == "Ready" and each["status"] != "True" for each in conditions):
        yield "not ready"
    if (node.get("spec") or {}).get("unschedulable"):
        yield "cordoned"


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which node-2 comes before node-10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


FEW = 4
"""So many tenants are all shown open, with their charts."""


@dataclass(frozen=True)
class Bar:
    """GPUs as parts of a bar."""

    held: int
    waiting: int
    most: int

    @property
    def whole(self) -> int:
        """What the whole bar stands for; more than `most` if more is held and waits."""
        return max(self.most, self.held + self.waiting, 1)

    @property
    def words(self) -> str:
        waits = f", {self.waiting} wait" if self.waiting else ""
        return f"{self.held} of {self.most} GPUs held{waits}"


@dataclass(frozen=True)
class Marked:
    """A table, and the rows whose objects are not as desired."""

    table: Table
    bad: tuple[bool, ...]


@dataclass(frozen=True)
class Reasons:
    """Why an object is not as desired, or what of it waits."""

    subject: str
    """`RayCluster training`."""
    lines: tuple[str, ...]


@dataclass(frozen=True)
class TenantShown:
    title: str
    ok: bool
    bar: Bar | None
    """None if its GPUs are not known, or have no limit."""
    tables: tuple[Marked, ...]
    reasons: tuple[Reasons, ...]
    open: bool
    """Whether its tables are shown at first."""
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class LiveShown:
    at: str
    ok: bool
    figures: tuple[str, ...]
    bar: Bar | None
    pools: tuple[PoolShown, ...]
    tenants: tuple[TenantShown, ...]
    cml: Marked | None
    """Ray clusters on Cloudera ML."""
    cml_reasons: tuple[Reasons, ...]
    queues: Marked | None
    queue_reasons: tuple[Reasons, ...]
    unreadable: tuple[Reasons, ...]
    """What this account must not read, and why."""

    @property
    def waits(self) -> list[tuple[str, tuple[Reasons, ...]]]:
        """What waits and what is not as desired, by tenant, and of the queues."""
        of_tenants = [(each.title, each.reasons) for each in self.tenants]
        shared = [(CML, self.cml_reasons), (QUEUES, self.queue_reasons)]
        return [(title, reasons) for title, reasons in (*of_tenants, *shared) if reasons]


@dataclass(frozen=True)
class View:
    """A page. `live` is None for a page of the plan alone."""

    name: str
    plan: Report
    planned: tuple[PoolShown, ...]
    live: LiveShown | None = None
    error: str = ""
    """Why the cluster could not be read again."""


def of_plan(name: str, plan: Plan) -> View:
    return View(name, report_of(name, plan), tuple(planned(plan)))


def of_status(status: StackStatus, plan: Plan, nodes: Found, charts: Mapping[str, tuple[Chart, ...]]) -> LiveShown:
    """What runs now. `nodes`: those of the cluster; `charts`: by the tenant's namespace."""
    shown = sections(status)
    shared = {each.title: each for each in shown[len(status.tenants) :]}
    cml, queues = shared.get(CML), shared.get(QUEUES)
    others = [each for title, each in shared.items() if title not in (CML, REMOTE_JOBS, QUEUES)]
    unreadable = [line for each in others for line in each.reasons]
    unreadable += [f"whole cluster: nodes: {why}" for why in nodes.unreadable.values()]
    few = len(status.tenants) <= FEW
    return LiveShown(
        at=status.live.at.isoformat(timespec="seconds"),
        ok=status.ok,
        figures=tuple(figures(status)),
        bar=_bar(status.gpus),
        pools=tuple(live(plan, nodes, status.live.namespaces)),
        tenants=tuple(
            _tenant(tenant, section, charts.get(tenant.namespace, ()), few=few)
            for tenant, section in zip(status.tenants, shown, strict=False)
        ),
        cml=_marked(cml.tables[0], status.cml) if cml else None,
        cml_reasons=_by_subject(cml.reasons if cml else ()),
        queues=_marked(queues.tables[0], status.queues) if queues else None,
        queue_reasons=_by_subject(queues.reasons if queues else ()),
        unreadable=_by_subject(unreadable),
    )


def _bar(gpus: Gpus) -> Bar | None:
    if gpus.held is None or gpus.most is None:
        return None
    return Bar(gpus.held, gpus.waiting or 0, gpus.most)


def _tenant(tenant: TenantStatus, section: Section, charts: tuple[Chart, ...], *, few: bool) -> TenantShown:
    bad = set(_not_as_desired(tenant))
    tables = tuple(
        Marked(table, tuple((table.columns[0], row[0]) in bad for row in table.rows)) for table in section.tables
    )
    reasons, opened = _by_subject(section.reasons), few or not tenant.ok
    return TenantShown(section.title, tenant.ok, _bar(tenant.gpus), tables, reasons, opened, charts)


def _by_subject(lines: Iterable[str]) -> tuple[Reasons, ...]:
    """The lines of a section, which begin with their subject."""
    parted = (line.partition(": ") for line in lines)
    return tuple(
        Reasons(subject, tuple(why for _, _, why in alike))
        for subject, alike in groupby(parted, key=lambda parts: parts[0])
    )


def _not_as_desired(tenant: TenantStatus) -> Iterator[tuple[str, str]]:
    """The kind, as it heads a table, and the name of each object."""
    for heading, objects in (
        ("RayCluster", tenant.clusters),
        ("External cluster", tenant.external),
        ("RayJob", tenant.jobs),
        ("RayService", tenant.services),
    ):
        yield from ((heading, each.name) for each in objects if not each.ok)


def _marked(table: Table, objects: Iterable[CmlStatus | QueueStatus]) -> Marked:
    return Marked(table, tuple(not each.ok for each in objects))


def html(view: View) -> str:
    return _template("page.html.jinja").render(view=view, policy=policy(live=view.live is not None))


def html_of_reports(reports: Iterable[Report]) -> str:
    """A page of plans with their drawings, as `ray-platform plan --format html` writes it."""
    return _template("reports.html.jinja").render(reports=list(reports), svg=svg)


@cache
def policy(*, live: bool) -> str:
    """The Content-Security-Policy: the page's own style, and for a live page its own script and server.

    `frame-ancestors`, which a browser ignores in a file, is added by the server.
    """
    directives = ["default-src 'none'", f"style-src {_digest('style')}", "base-uri 'none'", "form-action 'none'"]
    if live:
        directives += [f"script-src {_digest('script')}", "connect-src 'self'"]
    return "; ".join(directives)


@cache
def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)


def _digest(block: str) -> str:
    """The source expression of an inline element (w3.org/TR/CSP3, Hash source)."""
    template = _template("page.html.jinja")
    content = "".join(template.blocks[block](template.new_context()))
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
