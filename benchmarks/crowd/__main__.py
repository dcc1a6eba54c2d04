"""Measures commands for the dev stack in its own cluster, and again beside thousands of objects of others: a tenth of
them in the tenant's namespace, the rest in namespaces that the stack does not know.

Both are measured in one run on one control plane, so the ratio shows what the objects of others cost.
"""

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import psutil
import typer

from benchmarks.cpu import children_cpu
from benchmarks.page import write_tables
from components.cluster import Connection, path_of
from components.kubernetes_cluster import KubernetesCluster
from core.body import Body
from core.nodes import NodePool
from local import paths
from local.host_pods.states import read_states
from local.plugins import select
from local.rehearsal import Rehearsal
from testbed.platform_stack import Stack, rehearsing
from testbed.policies.bodies import body

PAGE = paths.ROOT / "docs" / "measurements" / "crowded-cluster.md"

POOL = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")

TENANT = "team-a"
"""Namespace of the dev stack's tenant."""

OTHERS = tuple(f"others-{number}" for number in range(9))

THREADS = 16
"""Number of requests at a time."""

IMAGE = "rayproject/ray:2.60.0"

_POD_SPEC: Body = {
    "schedulerName": "none",
    "containers": [{"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
}

_RAY_CLUSTER: Body = {
    "rayVersion": "2.60.0",
    "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head", "image": IMAGE}]}}},
}

_RAY_JOB: Body = {"suspend": True, "entrypoint": "true", "rayClusterSpec": _RAY_CLUSTER}

_FAILED = {"reason": "FailedScheduling", "message": "0/4 nodes are available", "type": "Warning"}

OBJECTS: Mapping[str, tuple[int, Body]] = MappingProxyType(
    {
        "configmaps": (40, {"data": {"text": "x" * 1000}}),
        "secrets": (20, {"stringData": {"text": "x" * 300}}),
        "events": (12, {"involvedObject": {"kind": "Pod", "name": "main"}, **_FAILED}),
        "pods": (16, {"spec": _POD_SPEC}),
        "rayjobs": (10, body("ray.io/v1", "RayJob", spec=_RAY_JOB)),
        "rayclusters": (2, body("ray.io/v1", "RayCluster", spec={"suspend": True, **_RAY_CLUSTER})),
    }
)
"""Percent of the objects by kind, and the content of each. No scheduler takes the pods, and what is Ray's is
suspended."""


def main(
    objects: Annotated[int, typer.Option(help="Number of objects of others.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Runs of each command, of which the best counts.")] = 3,
    write: Annotated[
        bool, typer.Option("--write", help="Write the table into docs/measurements/crowded-cluster.md.")
    ] = False,
) -> None:
    """Print a table of the commands' CPU seconds, and of the memory of API server and operator."""
    with tempfile.TemporaryDirectory() as folder, rehearsing(Path(folder) / "run", POOL) as cluster:
        stack = Stack("dev", Path(folder), cluster, select("auto"))
        stack.up()
        before = _measured(stack, cluster, runs)
        crowd(cluster, objects)
        after = _measured(stack, cluster, runs)
    text = "\n".join(_table(objects, before, after))
    typer.echo(text)
    if write:
        write_tables(PAGE, "crowd", text)


def crowd(cluster: Rehearsal, count: int) -> None:
    """Creates the objects of others."""
    session = KubernetesCluster(Connection(kubeconfig=cluster.kubeconfig.read_text()))
    post = partial(session.request, "POST", headers={"Content-Type": "application/json"})

    for namespace in OTHERS:
        post(path_of("v1", "namespaces"), body={"metadata": {"name": namespace}})

    def create(plural: str, content: Body, number: int) -> None:
        # The tenant's quota has room for few pods and objects of Ray.
        shared = (TENANT, *OTHERS) if plural in ("configmaps", "secrets", "events") else OTHERS
        namespace = shared[number % len(shared)]
        made: Body = {**content, "metadata": {"name": f"other-{number}"}}
        if plural == "events":
            made["involvedObject"] = {**content["involvedObject"], "namespace": namespace}
        post(path_of(content.get("apiVersion", "v1"), plural, namespace), body=made)

    with ThreadPoolExecutor(THREADS) as threads:
        for plural, (percent, content) in OBJECTS.items():
            list(threads.map(partial(create, plural, content), range(count * percent // 100)))


def _measured(stack: Stack, cluster: Rehearsal, runs: int) -> dict[str, float]:
    file = str(stack.file)
    commands: Mapping[str, Callable[[], object]] = {
        "`pulumi preview`, CPU s": lambda: stack.pulumi("preview"),
        "`pulumi up` without a change, CPU s": stack.up,
        "`pulumi refresh`, CPU s": lambda: stack.pulumi("refresh", "--yes", "--skip-preview"),
        "`recover` without a fault, CPU s": lambda: stack.recover("--state-only"),
        "`status`, CPU s": lambda: stack.ray_platform("status", file),
        "`impact --from live`, CPU s": lambda: stack.ray_platform("impact", "--from", "live", "--to", file),
    }
    found = {title: min(_cpu_seconds(command) for _ in range(runs)) for title, command in commands.items()}
    [server] = [each.pid for each in cluster.states() if each.name == "kube-apiserver"]
    [operator] = [each.pid for each in read_states(cluster.run) if each.deployment.endswith("kuberay-operator")]
    for title, pid in (("API server, MiB", server), ("Operator, MiB", operator)):
        found[title] = psutil.Process(pid).memory_info().rss / 2**20
    return found


def _cpu_seconds(command: Callable[[], object]) -> float:
    """User and system CPU seconds of a command and its child processes."""
    before = children_cpu()
    command()
    return children_cpu() - before


def _table(objects: int, before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    rows = [
        f"| {title} | {alone:.1f} | {after[title]:.1f} | {after[title] / alone:.2f} |"
        for title, alone in before.items()
    ]
    return [f"| | alone | beside {objects:,} objects | ratio |", "| --- | ---: | ---: | ---: |", *rows]


if __name__ == "__main__":
    typer.run(main)
