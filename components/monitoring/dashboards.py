"""Grafana dashboards: the project's own (boards), and Ray's. The sidecar of Grafana's Helm chart reads their
ConfigMaps.

The files in `grafana/` are those of Ray's wheel: `python -m testbed.ray_dashboards --write` generates them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.monitoring.boards import FLEET, QUEUES, REDIS, TENANT, Board
from components.monitoring.settings import Dashboard

BOARDS: Mapping[str, Board] = {"fleet": FLEET, "tenant": TENANT, "queues": QUEUES, "redis": REDIS}
"""The project's own dashboards by their names in the stack file."""

FOLDER = Path(__file__).with_name("grafana")


def file_name(dashboard: Dashboard) -> str:
    """The name of a dashboard's file, in `grafana/` and in Grafana."""
    return f"ray-{dashboard.lower()}.json"


def content(dashboard: Dashboard) -> str:
    """A dashboard as Grafana reads it."""
    if board := BOARDS.get(dashboard):
        return shortest(board.body)
    return (FOLDER / file_name(dashboard)).read_text()


def shortest(body: Any) -> str:
    """JSON without spaces, on one line: a ConfigMap has at most 1 MiB, and the state of the stack contains it."""
    return f"{json.dumps(body, separators=(',', ':'))}\n"
