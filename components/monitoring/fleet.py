"""The Grafana dashboard of the fleet, and of a tenant by its variable: who holds GPUs, what waits, what it costs.

It has only the metrics and records of the rules, so it needs no other source than the Prometheus of `monitoring`.
"""

from typing import Any

from .metrics import KubeRay, Prometheus, Ray, Recorded

Body = dict[str, Any]

UID = "ray-platform-fleet"
"""Never changes: addresses of the dashboard contain it."""

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TENANT = 'namespace=~"$tenant"'
_OF_TENANT = f"{{{_TENANT}}}"
_BY = "namespace, ray_io_cluster"
_CLUSTER = "{{namespace}}/{{ray_io_cluster}}"

_PANELS: tuple[tuple[str, str, str, str], ...] = (
    ("GPUs held", f"sum by (namespace) ({Recorded.HELD}{_OF_TENANT})", "{{namespace}}", "timeseries"),
    ("GPUs used", f"sum by (namespace) ({Recorded.USED}{_OF_TENANT})", "{{namespace}}", "timeseries"),
    ("GPUs held that no task uses", f"sum by ({_BY}) ({Recorded.WASTED}{_OF_TENANT}) > 0", _CLUSTER, "timeseries"),
    ("Cost per hour", f"{Recorded.COST}{_OF_TENANT}", "{{namespace}}", "timeseries"),
    *(
        (f"GPU-hours {what} in 24 hours", f"sort_desc({record}{_OF_TENANT})", "{{namespace}}", "bargauge")
        for what, record in (
            ("held", Recorded.HOURS_HELD),
            ("used", Recorded.HOURS_USED),
            ("wasted", Recorded.HOURS_WASTED),
        )
    ),
    (
        "Alerts",
        f'sum by (alertname, {_BY}) ({Prometheus.ALERTS}{{alertstate="firing",{_TENANT}}})',
        f"{{{{alertname}}}} {_CLUSTER}",
        "bargauge",
    ),
    (
        "Workers requested that have not joined",
        f"sum by ({_BY}) ({Ray.PENDING_NODES}{_OF_TENANT})",
        _CLUSTER,
        "timeseries",
    ),
    (
        "Tasks and actors that wait",
        f"sum by ({_BY}, Reason) ({Ray.UNSCHEDULABLE_TASKS}{_OF_TENANT})",
        f"{_CLUSTER} {{{{Reason}}}}",
        "timeseries",
    ),
    (
        "RayClusters that are not ready",
        f'sum by ({_BY}) ({KubeRay.CLUSTER_PROVISIONED}{{condition="false",{_TENANT}}})',
        _CLUSTER,
        "timeseries",
    ),
    (
        "RayJobs",
        f"count by (namespace, deployment_status) ({KubeRay.JOB_STATUS}{_OF_TENANT})",
        "{{namespace}} {{deployment_status}}",
        "timeseries",
    ),
)
"""Each panel's title, query, legend and kind."""

_WIDTH, _HEIGHT = 12, 8
"""Of a panel, in units of Grafana, whose rows have 24."""


def queries() -> list[str]:
    """The queries of all panels."""
    return [query for _, query, _, _ in _PANELS]


def fleet_dashboard() -> Body:
    """The dashboard as Grafana reads it (grafana.com, Dashboard JSON model)."""
    return {
        "uid": UID,
        "title": "Ray platform: fleet and tenants",
        "tags": ["ray"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                {
                    "name": "tenant",
                    "label": "Tenant",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": f"label_values({KubeRay.CLUSTER_PROVISIONED}, namespace)",
                    "includeAll": True,
                    "multi": True,
                    "current": {"text": "All", "value": "$__all"},
                    "refresh": 2,
                },
            ]
        },
        "panels": [_panel(number, *panel) for number, panel in enumerate(_PANELS)],
    }


def _panel(number: int, title: str, query: str, legend: str, kind: str) -> Body:
    now = kind == "bargauge"
    return {
        "id": number + 1,
        "title": title,
        "type": kind,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"min": 0, "decimals": 1 if now else 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": query, "legendFormat": legend, "instant": now, "range": not now}],
    }
