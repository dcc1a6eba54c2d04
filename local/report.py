"""The commands' tables of the cluster: parts, nodes, RayClusters, addresses."""

import json
import re
from http import HTTPStatus
from typing import Any, Literal

from kubernetes import client
from rich.table import Table

from core.nodes import GPU_PRODUCT_LABEL, GPU_RESOURCE
from local.host_pods.states import read_states
from local.monitoring.prometheus import NAME as PROMETHEUS
from local.nodes import POOL_LABEL, live
from local.plugins import Selection
from local.progress import console
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal
from local.rehearse.report import Rehearsed, as_object
from local.rehearse.report import report as of_rehearsed
from local.tools import KUBERNETES_PROVIDER
from stacks.commands.plan.text import markdown, show


def parts(selection: Selection) -> None:
    """Which of Pulumi's plugins are the user's and which are ours."""
    ours = {
        "stand-in": "stand-in, see docs/tools.md",
        "built": f"Pulumi's own {KUBERNETES_PROVIDER}, see docs/tools.md",
    }
    for plugin in selection.plugins:
        where = ours.get(plugin.kind) or f"Pulumi's own, {plugin.path}"
        console.print(f"Pulumi plugin {plugin.name}: {where}", soft_wrap=True)


def processes(rehearsal: Rehearsal) -> None:
    """A table of the processes, the operator among them."""
    table = Table("process", "state", "pid", "", box=None, pad_edge=False)
    for state in rehearsal.states():
        pid, description = str(state.pid or ""), state.description
        if rehearsal.kind == "real":  # numbers inside the box mean nothing outside
            pid, description = "", re.sub(r"^pid \d+, ", "", description)
        table.add_row(state.name, state.state.lower(), pid, description)
    for pod in read_states(rehearsal.run) if rehearsal.states() else []:
        restarts = f"restarts {pod.restarts}" if pod.restarts else ""
        detail = "  ".join(part for part in (pod.image, restarts, pod.reason) if part)
        table.add_row(pod.deployment, pod.state.lower(), str(pod.pid or ""), detail)
    if table.row_count:
        console.print(table)
    else:
        console.print("The rehearsal does not run. Start it with `make up`.")


def nodes(rehearsal: Rehearsal) -> None:
    """A table of the nodes, a row per pool."""
    pools: dict[str, list[Any]] = {}
    for node in live(rehearsal.client()):
        pools.setdefault(node["metadata"]["labels"][POOL_LABEL], []).append(node)
    table = Table("pool", "nodes", "CPUs", "memory", "GPUs", "GPU product", box=None, pad_edge=False)
    for name, members in sorted(pools.items()):
        capacity, labels = members[0]["status"]["capacity"], members[0]["metadata"]["labels"]
        gpus, product = capacity.get(GPU_RESOURCE, "0"), labels.get(GPU_PRODUCT_LABEL, "")
        table.add_row(name, str(len(members)), capacity["cpu"], capacity["memory"], gpus, product)
    console.print(table)


def clusters(rehearsal: Rehearsal) -> None:
    """A table of the RayClusters as the operator reports them."""
    found: Any = {"items": []}
    try:
        found = client.CustomObjectsApi(rehearsal.client()).list_cluster_custom_object("ray.io", "v1", "rayclusters")
    except client.ApiException as error:
        # Before the first `pulumi up` the cluster has no CRD of RayClusters.
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    table = Table("RayCluster", "state", "workers (ready/desired)", "GPUs", box=None, pad_edge=False)
    for item in found["items"]:
        state = item.get("status", {})
        workers = f"{state.get('readyWorkerReplicas', 0)}/{state.get('desiredWorkerReplicas', 0)}"
        name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        table.add_row(name, state.get("state", "pending"), workers, str(state.get("desiredGPU", 0)))
    console.print(table if table.row_count else "No RayClusters.")


def pods(rehearsal: Rehearsal) -> None:
    """A table of the pods on the real node."""
    table = Table("pod", "state", "restarts", "address", box=None, pad_edge=False)
    api = rehearsal.client()
    found: Any = api.sanitize_for_serialization(client.CoreV1Api(api).list_pod_for_all_namespaces())
    for pod in found["items"]:
        containers = pod["status"].get("containerStatuses", [])
        waiting = [each["state"]["waiting"]["reason"] for each in containers if "waiting" in each["state"]]
        ready = f"{sum(each['ready'] for each in containers)}/{len(pod['spec']['containers'])} ready"
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        state = f"{waiting[0] if waiting else pod['status']['phase']}, {ready}"
        restarts = str(sum(each["restartCount"] for each in containers))
        table.add_row(name, state, restarts, pod["status"].get("podIP", ""))
    if table.row_count:
        console.print(table)


def rehearsed(outcome: Rehearsed, output: Literal["text", "json", "markdown"]) -> None:
    """The result of a rehearsal, on standard output."""
    if output == "json":
        print(json.dumps(as_object(outcome), indent=2))
    elif output == "markdown":
        print(markdown([of_rehearsed(outcome)]), end="")
    else:
        show([of_rehearsed(outcome)])


def result(rehearsal: Rehearsal, pulumi: RehearsalStack) -> None:
    """The last lines of `make up`: nodes, and for each cluster its state, worker groups and addresses."""
    console.print()
    nodes(rehearsal)
    for name, cluster in json.loads(pulumi.output("stack", "output", "--json")).get("clusters", {}).items():
        console.print()
        console.print(f"[bold]{name}[/bold]  {cluster['state']}")
        groups = Table("worker group", "GPUs", "CPUs", "memory", "at most", box=None, pad_edge=False)
        for group in cluster["workerGroups"]:
            groups.add_row(*(str(group[key]) for key in ("name", "gpus", "cpu", "memory", "maxReplicas")))
        console.print(groups)
        for label, key in (("Ray", "rayAddress"), ("dashboard", "dashboardUrl"), ("jobs", "jobsUrl")):
            console.print(f"{label:<10} {cluster[key]}", soft_wrap=True)


def pages(rehearsal: Rehearsal, stack: str | None = None) -> None:
    """How to see all of it in a browser. `stack`: None if it is not known, because several may run."""
    named = {None: " STACK=...", "dev": ""}.get(stack, f" STACK={stack}")
    console.print(f"\nIn a browser: make page{named}")
    if any(state.name == PROMETHEUS and state.running for state in rehearsal.states()):
        console.print(f"Prometheus:   {rehearsal.prometheus.url}")
