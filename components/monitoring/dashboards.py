"""Grafana dashboards: that of the fleet, and Ray's own. The sidecar of Grafana's Helm chart reads their ConfigMaps.

The files in `grafana/` are those of Ray's wheel: `python -m testbed.ray_dashboards --write` generates them.
"""

import json
from pathlib import Path
from typing import Any

from .fleet import fleet_dashboard
from .settings import Dashboard

FOLDER = Path(__file__).with_name("grafana")


def file_name(dashboard: Dashboard) -> str:
    """The name of a dashboard's file, in `grafana/` and in Grafana."""
    return f"ray-{dashboard.lower()}.json"


def content(dashboard: Dashboard) -> str:
    """A dashboard as Grafana reads it."""
    if dashboard == "fleet":
        return shortest(fleet_dashboard())
    return (FOLDER / file_name(dashboard)).read_text()


def shortest(body: Any) -> str:
    """JSON without spaces, on one line: a ConfigMap has at most 1 MiB, and the state of the stack contains it."""
    return f"{json.dumps(body, separators=(',', ':'))}\n"
