"""Recording rules: GPUs and GPU-hours that tenants hold, use and waste, what these cost, when heads began,
and which RayClusters have been ready.

GPUs are Ray's logical ones: a worker holds as many as its pod requests, and a task or an actor uses as many as it
requests. How busy a device itself is, is not counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from components.monitoring.metrics import Job, KubeRay, Ray, Recorded

Body = dict[str, Any]

INTERVAL = 60
"""Seconds between two evaluations. Sums over time divide by it."""

_BY = "namespace, ray_io_cluster, ray_io_group"


def records(prices: Mapping[float, Sequence[str]]) -> list[Body]:
    """The recording rules.

    `prices`: of a GPU for an hour, each with the worker groups that have it; empty: no cost is recorded.
    """
    gpus = f'{Ray.RESOURCES}{{Name="GPU"}}'
    used = f'{Ray.RESOURCES}{{Name="GPU",State="USED"}}'
    expressions = {
        Recorded.HEAD_STARTED: f'max by (namespace, ray_io_cluster) ({Ray.STARTED}{{job="{Job.HEAD}"}})',
        Recorded.WAS_READY: _was_ready(),
        Recorded.HELD: f"sum by ({_BY}) ({gpus})",
        Recorded.USED: f"sum by ({_BY}) ({used})",
        Recorded.WASTED: f"{Recorded.HELD} - {Recorded.USED}",
        Recorded.HOURS_HELD: _over_a_day(Recorded.HELD),
        Recorded.HOURS_USED: _over_a_day(Recorded.USED),
        Recorded.HOURS_WASTED: _over_a_day(Recorded.WASTED),
        **({Recorded.COST: _cost(prices), Recorded.COST_OF_DAY: _over_a_day(Recorded.COST)} if prices else {}),
    }
    return [{"record": str(name), "expr": expression} for name, expression in expressions.items()]


def _was_ready() -> str:
    """It remembers by its own last value, over a day in which the operator or Prometheus may be down."""
    now, ever = f'{KubeRay.CLUSTER_PROVISIONED}{{condition="true"}}', f"last_over_time({Recorded.WAS_READY}[1d])"
    exists = f'{KubeRay.CLUSTER_PROVISIONED}{{condition="false"}}'
    return f"group by (namespace, ray_io_cluster, uid) ({now} or {exists} and on (uid) {ever})"


def _cost(prices: Mapping[float, Sequence[str]]) -> str:
    priced = (f'{Recorded.HELD}{{ray_io_group=~"{"|".join(groups)}"}} * {price}' for price, groups in prices.items())
    return f"sum by (namespace) ({' or '.join(priced)})"


def _over_a_day(record: Recorded) -> str:
    return f"sum by (namespace) (sum_over_time({record}[1d])) / {3600 // INTERVAL}"
