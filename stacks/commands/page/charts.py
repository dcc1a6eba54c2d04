"""Charts of a tenant's last seven days: the panels of Grafana's dashboard for tenants, from the stack's own Prometheus,
with the rights of the account that serves the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from components.cluster import Cluster, ClusterUnreachableError
from components.monitoring.dashboards import TENANT, Panel
from components.monitoring.prometheus import service_of
from components.workloads import path_of

HOURS = 7 * 24

SECONDS = 300.0
"""Between two readings: a chart has one value for each hour."""

_HEIGHT = 32
"""Of a chart, where an hour is one wide."""

_AT_ONCE = 4
"""Queries to one Prometheus at the same time."""

Values = Mapping[int, float]
"""The highest value of an hour, by the hour: 0 is the first."""


@dataclass(frozen=True)
class Line:
    name: str
    path: str
    """As SVG draws it, with a gap where Prometheus has no value."""
    now: str
    """The value of the last hour; empty: there is none."""
    most: str


@dataclass(frozen=True)
class Chart:
    title: str
    lines: tuple[Line, ...]
    """Those with the highest values, each in a colour of its own."""
    more: int
    """Lines that are left out."""
    hours: ClassVar = HOURS
    height: ClassVar = _HEIGHT


def charts(cluster: Cluster, prometheus: str, tenant: str, now: float, lines: int) -> tuple[Chart, ...]:
    """The charts that have a value above zero; none if this account may not read the tenant's metrics, or Prometheus
    does not answer. `prometheus`: the namespace of the stack's own; `tenant`: a namespace; `now`: seconds since 1970;
    `lines`: at most so many in a chart.
    """
    panels = [panel for panel in TENANT.panels if not panel.now]
    with suppress(ClusterUnreachableError), ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda panel: _series(cluster, prometheus, tenant, panel, now), panels)
        drawn = [_chart(panel, series, lines) for panel, series in zip(panels, found, strict=True)]
        return tuple(each for each in drawn if each.lines)
    return ()


def _series(cluster: Cluster, prometheus: str, tenant: str, panel: Panel, now: float) -> dict[str, Values]:
    """The values of a panel by the names of its series."""
    path = f"{path_of(prometheus, service_of(tenant))}/api/v1/query_range"
    start = now - (HOURS - 1) * 3600
    query = panel.query.replace("$tenant", tenant)
    # Prometheus looks at each five minutes of an hour, which may all be before a first value.
    highest = f"max_over_time(({query})[1h:5m]) or {query}"
    range_ = {"query": highest, "start": f"{start:.0f}", "end": f"{now:.0f}", "step": "3600"}
    answer = cluster.request("GET", path, query=range_)
    series: Sequence[Any] = answer["data"]["result"] if answer else ()
    return {
        _name(panel, each["metric"]): {
            round((at - start) / 3600): float(value) for at, value in each["values"] if math.isfinite(float(value))
        }
        for each in series
    }


def _name(panel: Panel, labels: Mapping[str, str]) -> str:
    """As Grafana writes its legend."""
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), panel.legend).strip()


def _chart(panel: Panel, series: Mapping[str, Values], most: int) -> Chart:
    above = {name: values for name, values in series.items() if max(values.values(), default=0) > 0}
    highest = sorted(above, key=lambda name: (-max(above[name].values()), name))
    top = max(above[highest[0]].values()) if highest else 1.0
    lines = (_line(panel, name, above[name], top) for name in highest[:most])
    return Chart(panel.title, tuple(lines), len(highest[most:]))


def _line(panel: Panel, name: str, values: Values, top: float) -> Line:
    now = values.get(HOURS - 1)
    text = "" if now is None else _text(panel, now)
    return Line(name, " ".join(_steps(values, top)), text, _text(panel, max(values.values())))


def _steps(values: Values, top: float) -> Iterator[str]:
    """An hour is a step, so that one of a single hour is seen, too."""
    for hour in sorted(values):
        height = f"{_HEIGHT - values[hour] / top * _HEIGHT:.1f}"
        yield f"{'V' if hour - 1 in values else f'M{hour} '}{height}H{hour + 1}"


def _text(panel: Panel, value: float) -> str:
    if panel.unit == "bytes":
        return f"{value / 2**30:.3g} GiB"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
