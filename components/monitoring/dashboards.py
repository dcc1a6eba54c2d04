"""Grafana dashboards: the project's own (of the fleet, of one tenant, of queues and of Redis), and Ray's. The sidecar
of Grafana's Helm chart reads their ConfigMaps. Pure functions.

The project's own have only the metrics and records of the rules, so they need no other source than the Prometheus of
`monitoring`. The files in `grafana/` are those of Ray's wheel: `python -m testbed.ray_dashboards --write` generates
them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.monitoring.metrics import Gateway, Job, KubeRay, Kueue, Prometheus, Ray, Recorded, Redis, Volcano
from components.monitoring.settings import Dashboard
from core.body import Body

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TENANT = 'namespace=~"$tenant"'
_OF_TENANT = f"{{{_TENANT}}}"
_BY = "namespace, ray_io_cluster"
_CLUSTER = "{{namespace}}/{{ray_io_cluster}}"
_OF_REDIS = "{{namespace}}/{{pod}}"


@dataclass(frozen=True)
class Panel:
    """A panel. Fields: `title`; `query`: PromQL; `legend`: Grafana's name of each series; `now`: the present values as
    bars, not their course; `unit`: of Grafana, `bytes` or none."""

    title: str
    query: str
    legend: str
    now: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Board:
    """A dashboard. Fields: `uid`: never changes, because addresses contain it; `title`; `panels`; `tenant`: what its
    variable selects: `all` or some tenants, `one`, or empty: it has no such variable."""

    uid: str
    title: str
    panels: tuple[Panel, ...]
    tenant: str = ""

    @property
    def body(self) -> Body:
        """The dashboard as Grafana reads it (grafana.com, Dashboard JSON model)."""
        variables = [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["ray"],
            "schemaVersion": 39,
            "editable": False,
            "refresh": "1m",
            "time": {"from": "now-24h", "to": "now"},
            "templating": {"list": [*variables, *([_tenants(several=self.tenant == "all")] if self.tenant else [])]},
            "panels": [_panel(number, panel) for number, panel in enumerate(self.panels)],
        }


def _tenants(several: bool) -> Body:
    return {
        "name": "tenant",
        "label": "Tenant",
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values({KubeRay.CLUSTER_PROVISIONED}, namespace)",
        "includeAll": several,
        "multi": several,
        **({"current": {"text": "All", "value": "$__all"}} if several else {}),
        "refresh": 2,
    }


_WIDTH, _HEIGHT = 12, 8
"""Of a panel, in units of Grafana, whose rows have 24."""


def _panel(number: int, panel: Panel) -> Body:
    defaults = {"min": 0, "decimals": 1 if panel.now else 0, **({"unit": panel.unit} if panel.unit else {})}
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "bargauge" if panel.now else "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "expr": panel.query,
                "legendFormat": panel.legend,
                "instant": panel.now,
                "range": not panel.now,
            }
        ],
    }


_WASTED = Panel("GPUs held that no task uses", f"sum by ({_BY}) ({Recorded.WASTED}{_OF_TENANT}) > 0", _CLUSTER)

_COST = Panel("Cost per hour", f"{Recorded.COST}{_OF_TENANT}", "{{namespace}}")

_GPUS = (
    Panel("GPUs held", f"sum by (namespace) ({Recorded.HELD}{_OF_TENANT})", "{{namespace}}"),
    Panel("GPUs used", f"sum by (namespace) ({Recorded.USED}{_OF_TENANT})", "{{namespace}}"),
    _WASTED,
    _COST,
    *(
        Panel(f"GPU-hours {what} in 24 hours", f"sort_desc({record}{_OF_TENANT})", "{{namespace}}", now=True)
        for what, record in (
            ("held", Recorded.HOURS_HELD),
            ("used", Recorded.HOURS_USED),
            ("wasted", Recorded.HOURS_WASTED),
        )
    ),
)

_WAITS = (
    Panel(
        "Alerts",
        f'sum by (alertname, {_BY}) ({Prometheus.ALERTS}{{alertstate="firing",{_TENANT}}})',
        f"{{{{alertname}}}} {_CLUSTER}",
        now=True,
    ),
    Panel("Workers requested that have not joined", f"sum by ({_BY}) ({Ray.PENDING_NODES}{_OF_TENANT})", _CLUSTER),
    Panel(
        "Tasks and actors that wait",
        f"sum by ({_BY}, Reason) ({Ray.UNSCHEDULABLE_TASKS}{_OF_TENANT})",
        f"{_CLUSTER} {{{{Reason}}}}",
    ),
    Panel(
        "RayClusters that are not ready",
        f'sum by ({_BY}) ({KubeRay.CLUSTER_PROVISIONED}{{condition="false",{_TENANT}}})',
        _CLUSTER,
    ),
    Panel(
        "RayJobs",
        f"count by (namespace, deployment_status) ({KubeRay.JOB_STATUS}{_OF_TENANT})",
        "{{namespace}} {{deployment_status}}",
    ),
)

FLEET = Board("ray-platform-fleet", "Ray platform: fleet and tenants", (*_GPUS, *_WAITS), tenant="all")

TENANT = Board(
    "ray-platform-tenant",
    "Ray platform: a tenant's RayClusters",
    (
        Panel(
            "GPUs held, by RayCluster and group",
            f"sum by (ray_io_cluster, ray_io_group) ({Recorded.HELD}{_OF_TENANT})",
            "{{ray_io_cluster}} {{ray_io_group}}",
        ),
        Panel(
            "GPUs used, by RayCluster and group",
            f"sum by (ray_io_cluster, ray_io_group) ({Recorded.USED}{_OF_TENANT})",
            "{{ray_io_cluster}} {{ray_io_group}}",
        ),
        _WASTED,
        _COST,
        Panel("Cost of 24 hours", f"{Recorded.COST_OF_DAY}{_OF_TENANT}", "{{namespace}}", now=True),
        Panel("Memory used", f"sum by (ray_io_cluster) ({Ray.MEMORY}{_OF_TENANT})", "{{ray_io_cluster}}", unit="bytes"),
        Panel(
            "Tasks that run",
            f'sum by (ray_io_cluster) ({Ray.TASKS}{{State=~"RUNNING.*",{_TENANT}}})',
            "{{ray_io_cluster}}",
        ),
        Panel(
            "Requests per second",
            f"sum by (ray_io_cluster, application, deployment) (rate({Ray.REQUESTS}{_OF_TENANT}[5m]))",
            "{{ray_io_cluster}} {{application}} {{deployment}}",
        ),
        Panel(
            "Spilled objects",
            f'sum by (ray_io_cluster) ({Ray.OBJECT_STORE}{{Location="SPILLED",{_TENANT}}})',
            "{{ray_io_cluster}}",
            unit="bytes",
        ),
        Panel(
            "Disk of the fullest pod, in percent",
            f"max by (ray_io_cluster) ({Ray.DISK_PERCENT}{_OF_TENANT})",
            "{{ray_io_cluster}}",
        ),
        *_WAITS,
    ),
    tenant="one",
)

QUEUES = Board(
    "ray-platform-queues",
    "Ray platform: queues",
    (
        *(
            Panel(f"{what}, by queue of Volcano", f"{metric} / 1000", "{{queue_name}} {{resource}}")
            for what, metric in (
                ("Requested", Volcano.REQUESTED),
                ("Allocated", Volcano.ALLOCATED),
                ("Deserved", Volcano.DESERVED),
            )
        ),
        Panel(
            "Gangs that wait, by queue of Volcano",
            f"sum by (queue_name) ({Volcano.PENDING}) + on (queue_name) sum by (queue_name) ({Volcano.ENQUEUED})",
            "{{queue_name}}",
        ),
        Panel(
            "Workloads that wait, by queue of Kueue", f"sum by (cluster_queue) ({Kueue.PENDING})", "{{cluster_queue}}"
        ),
        Panel(
            "Workloads that are admitted, by queue of Kueue",
            f"sum by (cluster_queue) ({Kueue.ADMITTED})",
            "{{cluster_queue}}",
        ),
    ),
)

REDIS = Board(
    "ray-platform-redis",
    "Ray platform: Redis and its gateways",
    (
        Panel("Nodes that answer", f'{Redis.UP}{{job="{Job.REDIS}"}}', _OF_REDIS, now=True),
        Panel("Memory used, of its limit", f"{Redis.USED} / ({Redis.MOST} > 0)", _OF_REDIS),
        Panel("Changes of the master in 24 hours", f"increase({Gateway.MASTERS}[24h])", _CLUSTER, now=True),
        Panel("Writes lost by failovers in 24 hours", f"increase({Gateway.LOST}[24h])", _CLUSTER, now=True),
        Panel("Connections of Ray", Gateway.CLIENTS.value, _CLUSTER),
        Panel("Connections that have a master", Gateway.CONNECTED.value, _CLUSTER),
    ),
)


BOARDS: Mapping[str, Board] = {"fleet": FLEET, "tenant": TENANT, "queues": QUEUES, "redis": REDIS}
"""The project's own dashboards by their names in the stack file."""

FOLDER = Path(__file__).with_name("grafana")


def file_name(dashboard: Dashboard) -> str:
    """The name of a dashboard's file, in `grafana/` and in Grafana."""
    return f"ray-{dashboard.lower()}.json"


def content(dashboard: Dashboard) -> str:
    if board := BOARDS.get(dashboard):
        return shortest(board.body)
    return (FOLDER / file_name(dashboard)).read_text()


def shortest(body: Any) -> str:
    """JSON without spaces, on one line: a ConfigMap has at most 1 MiB, and the state of the stack contains it."""
    return f"{json.dumps(body, separators=(',', ':'))}\n"
