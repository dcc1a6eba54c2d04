"""Prints the Grafana dashboards of Ray's wheel by name, or writes them to components/monitoring/grafana/.

Run it again when requirements-dev.txt has another Ray: `.venv/bin/python -m testbed.ray_dashboards --write`.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from ray.dashboard.modules.metrics import grafana_dashboard_factory as factory

from components.monitoring.dashboards import FOLDER, file_name, shortest
from components.monitoring.settings import Dashboard

MADE: dict[Dashboard, Callable[[], tuple[str, str]]] = {
    "default": factory.generate_default_grafana_dashboard,
    "serve": factory.generate_serve_grafana_dashboard,
    "serveLlm": factory.generate_serve_llm_grafana_dashboard,
    "data": factory.generate_data_grafana_dashboard,
    "train": factory.generate_train_grafana_dashboard,
}
"""How Ray generates each of its dashboards: its JSON, and its uid."""


def generated() -> dict[str, str]:
    """The files of all dashboards, by name."""
    return {file_name(name): shortest(json.loads(make()[0])) for name, make in MADE.items()}


def queries(name: Dashboard) -> list[str]:
    """The queries of a dashboard, as Grafana asks them for all values of its variables."""
    dashboard = json.loads((FOLDER / file_name(name)).read_text())
    values = {each["name"]: each.get("allValue") or ".*" for each in dashboard["templating"]["list"]}
    values |= dict.fromkeys(("__range", "__rate_interval", "interval", "window"), "5m")
    return [
        re.sub(r"\$(\w+)", lambda name: values[name[1]], target["expr"])
        for panel in _panels(dashboard["panels"])
        for target in panel.get("targets", ())
    ]


def _panels(panels: list[Any]) -> Iterator[Any]:
    for each in panels:
        yield each
        yield from _panels(each.get("panels", []))


def main(write: Annotated[bool, typer.Option("--write", help="Write the files.")] = False) -> None:
    """Print their names and sizes, or write them."""
    for name, text in generated().items():
        if write:
            (FOLDER / name).write_text(text)
        typer.echo(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    typer.run(main)
