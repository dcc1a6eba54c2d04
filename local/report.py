"""The commands' tables of the cluster: parts, nodes, RayClusters, addresses."""

import json
import re
from http import HTTPStatus
from typing import Any, Literal

from kubernetes import client
from rich.table import Table

from components.ray_cluster.pods import CLUSTER_LABEL, NODE_TYPE_LABEL
from components.ray_cluster.readiness import OPERATOR_PODS, is_ready_pod
from core.nodes import GPU_PRODUCT_LABEL, gpu_names
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
from stacks.load import load


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
        gpus, product = ", ".join(map(capacity.get, gpu_names(capacity))) or "0", labels.get(GPU_PRODUCT_LABEL, "")
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
    pods = _live_pods(rehearsal)
    _operator(pods)
    heads = _heads(pods)
    table = Table("RayCluster", "state", "workers (ready/desired)", "GPUs", box=None, pad_edge=False)
    for item in found["items"]:
        state = item.get("status", {})
        workers = f"{state.get('readyWorkerReplicas', 0)}/{state.get('desiredWorkerReplicas', 0)}"
        name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        shown = _state(state.get("state", "pending"), name in heads)
        table.add_row(name, shown, workers, str(state.get("desiredGPU", 0)))
    console.print(table if table.row_count else "No RayClusters.")


def _live_pods(rehearsal: Rehearsal) -> list[Any]:
    api = rehearsal.client()
    found: Any = api.sanitize_for_serialization(client.CoreV1Api(api).list_pod_for_all_namespaces())
    return list(found["items"])


def _operator(pods: list[Any]) -> None:
    key, value = OPERATOR_PODS.split("=")
    if not any(pod["metadata"].get("labels", {}).get(key) == value and is_ready_pod(pod) for pod in pods):
        console.print("The KubeRay operator does not run: nothing below is kept current. `make up` creates it again.")


def _heads(pods: list[Any]) -> set[str]:
    """The RayClusters whose head has a Ready pod: NAMESPACE/NAME."""
    labels = ((pod, pod["metadata"].get("labels", {})) for pod in pods if is_ready_pod(pod))
    return {
        f"{pod['metadata']['namespace']}/{each[CLUSTER_LABEL]}"
        for pod, each in labels
        if each.get(NODE_TYPE_LABEL) == "head" and CLUSTER_LABEL in each
    }


def _state(reported: str, has_head: bool) -> str:
    """KubeRay's state is its last word: without a Ready head a RayCluster is not ready."""
    return "not ready: no head" if reported == "ready" and not has_head else reported


def pods(rehearsal: Rehearsal) -> None:
    """A table of the pods on the real node."""
    table = Table("pod", "state", "restarts", "address", box=None, pad_edge=False)
    for pod in _live_pods(rehearsal):
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
    pods = _live_pods(rehearsal)
    _operator(pods)
    heads = _heads(pods)
    outputs = json.loads(pulumi.output("stack", "output", "--json"))
    for name, cluster in outputs.get("clusters", {}).items():
        console.print()
        console.print(f"[bold]{name}[/bold]  {_state(cluster.get('state', 'unknown'), name in heads)}")
        groups = Table("worker group", "GPUs", "CPUs", "memory", "at most", box=None, pad_edge=False)
        for group in cluster["workerGroups"]:
            groups.add_row(*(str(group[key]) for key in ("name", "gpus", "cpu", "memory", "maxReplicas")))
        console.print(groups)
        for label, key in (("Ray", "rayAddress"), ("dashboard", "dashboardUrl"), ("jobs", "jobsUrl")):
            console.print(f"{label:<10} {cluster[key]}", soft_wrap=True)
    _others(pulumi, outputs)


def _others(pulumi: RehearsalStack, outputs: dict[str, Any]) -> None:
    """A line for each service, job and job template."""
    lines = [
        *(f"service {name}  {each.get('endpoint', '')}" for name, each in outputs.get("services", {}).items()),
        *(f"job {name}" for name in outputs.get("jobs", {})),
        *(
            f"job template {tenant.namespace_name}/{each.name}  ray-platform run {pulumi.name} {each.name}"
            for tenant in load(pulumi.file).tenants
            for each in tenant.job_templates
        ),
    ]
    if lines:
        console.print()
    for line in lines:
        console.print(line.rstrip(), soft_wrap=True)
    for name in pulumi.not_waited_for:
        console.print(f"`up` has not waited for {name}: on simulated nodes nothing runs.", soft_wrap=True)


def pages(rehearsal: Rehearsal, *stacks: str) -> None:
    """How to see all of these stacks in a browser."""
    console.print()
    for stack in stacks:
        console.print(f"In a browser: make page{'' if stack == 'dev' else f' STACK={stack}'}")
    if any(state.name == PROMETHEUS and state.running for state in rehearsal.states()):
        console.print(f"Prometheus:   {rehearsal.prometheus.url}")
