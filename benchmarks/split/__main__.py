"""Measures the first `ray-platform up` of environments of several Pulumi stacks, and the preview after it.

Each environment has a separate control plane with simulated nodes. For comparison kubectl applies the same objects on
another control plane with a running operator. Both end when all RayClusters are ready. CPU seconds are those of all
processes that the command starts, without the control plane.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, cast

import typer
import yaml
from kubernetes import client

from benchmarks.cpu import children_cpu
from benchmarks.page import write_tables
from components.tenant.settings import COUNTS
from core.body import Body
from core.nodes import NodePool
from local import paths
from local.plugins import Mode, Selection, select
from local.pulumi import PROJECT
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl
from testbed.platform_stack import DEV, Stack, install_operator, rehearsing

PAGE = paths.ROOT / "docs" / "measurements" / "split.md"

HEADS_ON_A_NODE = 8

STEPS = {"Namespace": 0, "PriorityClass": 0, "RayCluster": 2}
"""In which step kubectl applies an object of the kind; 1 for others."""

LIMIT = 3600.0
"""Seconds after which RayClusters that are not ready are an error."""


@dataclass(frozen=True)
class Row:
    """One environment. Times are in seconds."""

    tenants: int
    stacks: int
    resources: int

    largest_state: int
    """Bytes."""

    up: float
    up_cpu: float
    preview: float
    preview_cpu: float
    kubectl: float


def environment(file: Path, tenants: int, stacks: int) -> NodePool:
    """Writes the stack file of an environment. Returns the nodes that it needs."""
    config = yaml.safe_load(DEV.read_text())["config"]
    [nodes], [tenant] = config[f"{PROJECT}:nodes"], config[f"{PROJECT}:tenants"]
    nodes["count"] = max(nodes["count"], -(-tenants // HEADS_ON_A_NODE))
    own = {"admins": ["group:leads"], "users": ["group:people"], "quota": {"gpus": 8, "pods": 40}}
    config[f"{PROJECT}:tenants"] = [{**tenant, **own, "name": f"team-{number:04}"} for number in range(tenants)]
    config[f"{PROJECT}:split"] = {"stacks": stacks}
    file.write_text(yaml.safe_dump({"config": config}))
    return NodePool.model_validate(nodes)


def measure(folder: Path, plugins: Selection, tenants: int, stacks: int) -> Row:
    """Measures one row of the table."""
    file = folder / "environment.yaml"
    pool = environment(file, tenants, stacks)
    with rehearsing(folder / "run", pool) as cluster:
        (folder / "stack").mkdir()
        stack = Stack("wide", folder / "stack", cluster, plugins, original=file)
        up, up_cpu = _run(stack, "up", "--yes")
        preview, preview_cpu = _run(stack, "preview")
        states = [_state(stack, name) for name in _stacks(stack)]
    rows = [row for state in states for row in state["deployment"]["resources"]]
    bodies = [row["inputs"] for row in rows if _applied_by_kubectl(row)]
    with rehearsing(folder / "peer", pool) as cluster:
        with_kubectl = _with_kubectl(cluster, bodies, tenants)
    largest = max(len(json.dumps(state)) for state in states)
    return Row(tenants, stacks, len(rows), largest, up, up_cpu, preview, preview_cpu, with_kubectl)


def _run(stack: Stack, command: str, *arguments: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    before, begun = children_cpu(), time.perf_counter()
    process = [sys.executable, "-m", "stacks", command, stack.name, *arguments]
    subprocess.run(process, cwd=paths.ROOT, env=stack.environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun, children_cpu() - before


def _stacks(stack: Stack) -> list[str]:
    return [each["name"] for each in json.loads(stack.pulumi("stack", "ls", "--json").output)]


def _state(stack: Stack, name: str) -> dict[str, Any]:
    return dict(json.loads(stack.pulumi("stack", "export", "--stack", name).output))


def _applied_by_kubectl(row: dict[str, Any]) -> bool:
    """Whether it is an object of a tenant, or a PriorityClass, which their pods name."""
    body = row.get("inputs") or {}
    in_tenant_namespace = str((body.get("metadata") or {}).get("namespace") or "").startswith("team-")
    return str(row["type"]).startswith("kubernetes:") and (
        in_tenant_namespace
        or body.get("kind") == "PriorityClass"
        or (body.get("kind") == "Namespace" and "team-" in row["urn"])
    )


def _with_kubectl(cluster: Rehearsal, bodies: list[Body], tenants: int) -> float:
    """Seconds until all RayClusters are ready."""
    install_operator(cluster)
    begun = time.perf_counter()
    kubectl, apply = Kubectl(cluster), ("apply", "--server-side", "--filename=-")
    for step in range(4):
        kubectl.does(*apply, bodies=[body for body in bodies if _step(body) == step])
    rays = client.CustomObjectsApi(cluster.client())
    while (ready := _ready(rays)) < tenants:
        if time.perf_counter() - begun > LIMIT:
            raise TimeoutError(f"{ready} of {tenants} RayClusters are ready after {LIMIT:.0f} s")
        time.sleep(1.0)
    return time.perf_counter() - begun


def _step(body: Body) -> int:
    """As with `up`, the quota of objects is last: while no controller has counted, RayClusters are refused."""
    return 3 if body["metadata"]["name"] == COUNTS else STEPS.get(body["kind"], 1)


def _ready(rays: client.CustomObjectsApi) -> int:
    found: Any = rays.list_cluster_custom_object("ray.io", "v1", "rayclusters")
    return sum((each.get("status") or {}).get("state") == "ready" for each in found["items"])


def tables(rows: list[Row]) -> Iterator[str]:
    """The measurements, ratios and the plot."""
    yield f"On {os.cpu_count()} cores:\n"
    columns = ("Tenants", "Stacks of tenants", "Resources", "Largest state", "`up`", "its CPU", "CPU per tenant")
    yield f"| {' | '.join([*columns, 'Preview', 'its CPU', 'kubectl'])} |"
    yield f"| {' | '.join(['---:'] * 10)} |"
    for row in rows:
        cells = [str(row.tenants), str(row.stacks), str(row.resources), f"{row.largest_state / 1e6:.2f} MB"]
        cells += [f"{row.up:.0f} s", f"{row.up_cpu:.0f} s", f"{row.up_cpu / row.tenants:.2f} s"]
        yield f"| {' | '.join([*cells, f'{row.preview:.0f} s', f'{row.preview_cpu:.0f} s', f'{row.kubectl:.0f} s'])} |"
    yield "\n| Ratio | |\n| --- | ---: |"
    for small, large in pairwise(rows):
        more = large.tenants / small.tenants
        sizes = f"{large.tenants} tenants / {small.tenants}"
        yield f"| Seconds of `up` for each tenant, {sizes} | {large.up / small.up / more:.2f} |"
        yield f"| CPU of `up` for each tenant, {sizes} | {large.up_cpu / small.up_cpu / more:.2f} |"
    for row in rows:
        yield f"| All RayClusters of {row.tenants} tenants ready, `up` / kubectl alone | {row.up / row.kubectl:.1f} |"
    bars = ", ".join(f'"{row.tenants} tenants"' for row in rows)
    yield f'\n```mermaid\nxychart-beta\n    title "CPU seconds of up for each tenant"\n    x-axis [{bars}]'
    yield f"    bar [{', '.join(f'{row.up_cpu / row.tenants:.2f}' for row in rows)}]\n```"


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of tenants, with commas between.")] = "100,1000",
    in_a_stack: Annotated[int, typer.Option(min=1, help="Tenants in a stack, on average.")] = 10,
    write: Annotated[bool, typer.Option("--write", help="Write the tables into docs/measurements/split.md.")] = False,
) -> None:
    """Print or write the tables."""
    plugins, rows = select(cast("Mode", os.environ.get("PLUGINS", "auto"))), []
    for tenants in sorted(int(each) for each in sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder), plugins, tenants, -(-tenants // in_a_stack)))
        typer.echo(rows[-1], err=True)
    text = "\n".join(tables(rows))
    typer.echo(text)
    if write:
        write_tables(PAGE, "split", text)


if __name__ == "__main__":
    typer.run(main)
