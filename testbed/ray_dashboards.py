"""Prints the Grafana dashboards of Ray's wheel by name, or writes them to components/monitoring/grafana/.

Run it again when requirements-dev.txt has another Ray: `.venv/bin/python -m testbed.ray_dashboards --write`.
"""

import json
from collections.abc import Callable
from typing import Annotated

import typer
from ray.dashboard.modules.metrics import grafana_dashboard_factory as factory

from components.monitoring.dashboards import FOLDER, file_name, shortest
from components.monitoring.settings import Dashboard

_MADE: dict[Dashboard, Callable[[], tuple[str, str]]] = {
    "default": factory.generate_default_grafana_dashboard,
    "serve": factory.generate_serve_grafana_dashboard,
    "serveLlm": factory.generate_serve_llm_grafana_dashboard,
    "data": factory.generate_data_grafana_dashboard,
    "train": factory.generate_train_grafana_dashboard,
}


def generated() -> dict[str, str]:
    """The files of all dashboards, by name."""
    return {file_name(name): shortest(json.loads(make()[0])) for name, make in _MADE.items()}


def main(write: Annotated[bool, typer.Option("--write", help="Write the files.")] = False) -> None:
    """Print their names and sizes, or write them."""
    for name, text in generated().items():
        if write:
            (FOLDER / name).write_text(text)
        typer.echo(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    typer.run(main)
