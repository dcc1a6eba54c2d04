"""What a page shows of a plan and of a status, in its order. Pure functions.

The plan is that of `python -m stacks plan`, the status that of `python -m stacks status`: both are only arranged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from stacks.commands.page.nodes import PoolShown, live, planned
from stacks.commands.plan.report import Report, Table
from stacks.commands.plan.report import report as report_of
from stacks.commands.status.budgets import QueueStatus
from stacks.commands.status.clusters import Gpus
from stacks.commands.status.cml import CmlStatus
from stacks.commands.status.report import CML, QUEUES, Section, figures, sections
from stacks.commands.status.snapshot import Found
from stacks.commands.status.tenants import StackStatus, TenantStatus
from stacks.planning.plan import Plan

_FEW = 4
"""So many tenants are all shown open."""


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
        """The same in words."""
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
    """A tenant with everything in its namespace."""

    title: str
    ok: bool
    bar: Bar | None
    """None if its GPUs are not known, or have no limit."""
    tables: tuple[Marked, ...]
    reasons: tuple[Reasons, ...]
    open: bool
    """Whether its tables are shown at first."""


@dataclass(frozen=True)
class LiveShown:
    """What runs now."""

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
    """The page of a plan alone."""
    return View(name, report_of(name, plan), tuple(planned(plan)))


def of_status(status: StackStatus, plan: Plan, nodes: Found) -> LiveShown:
    """What runs now. `nodes`: those of the cluster."""
    shown = sections(status)
    shared = {each.title: each for each in shown[len(status.tenants) :]}
    cml, queues = shared.get(CML), shared.get(QUEUES)
    unreadable = [line for each in shared.values() if each not in (cml, queues) for line in each.reasons]
    unreadable += [f"whole cluster: nodes: {why}" for why in nodes.unreadable.values()]
    few = len(status.tenants) <= _FEW
    return LiveShown(
        at=status.live.at.isoformat(timespec="seconds"),
        ok=status.ok,
        figures=tuple(figures(status)),
        bar=_bar(status.gpus),
        pools=tuple(live(plan, nodes, status.live.namespaces)),
        tenants=tuple(
            _tenant(tenant, section, few=few) for tenant, section in zip(status.tenants, shown, strict=False)
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


def _tenant(tenant: TenantStatus, section: Section, *, few: bool) -> TenantShown:
    bad = set(_not_as_desired(tenant))
    tables = tuple(
        Marked(table, tuple((table.columns[0], row[0]) in bad for row in table.rows)) for table in section.tables
    )
    return TenantShown(
        section.title, tenant.ok, _bar(tenant.gpus), tables, _by_subject(section.reasons), few or not tenant.ok
    )


def _by_subject(lines: Iterable[str]) -> tuple[Reasons, ...]:
    """The lines of a section, which begin with their subject."""
    parted = (line.partition(": ") for line in lines)
    return tuple(
        Reasons(subject, tuple(why for _, _, why in alike))
        for subject, alike in groupby(parted, key=lambda parts: parts[0])
    )


def _not_as_desired(tenant: TenantStatus) -> Iterator[tuple[str, str]]:
    """The kind, as it heads a table, and the name of each object."""
    for kind, objects in (
        ("RayCluster", tenant.clusters),
        ("External cluster", tenant.external),
        ("RayJob", tenant.jobs),
        ("RayService", tenant.services),
    ):
        yield from ((kind, each.name) for each in objects if not each.ok)


def _marked(table: Table, objects: Iterable[CmlStatus | QueueStatus]) -> Marked:
    return Marked(table, tuple(not each.ok for each in objects))
