"""A stack of which some parts run and others wait, and its page."""

from dataclasses import replace
from typing import Any

from core.body import Body
from core.nodes import GPU_PRODUCT_LABEL, GPU_RESOURCE
from stacks.commands.page.charts import Chart, Line
from stacks.commands.page.view import View, html, of_plan, of_status
from stacks.commands.status.snapshot import Found, Live
from stacks.commands.status.tenants import stack_status
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings
from tests.unit.planning.stacks import cluster, stack, tenant
from tests.unit.status.live import MADE, NOW, OPERATOR, READY, STARTING, found, metadata, owned, pod, ray_cluster

HOSTILE = "<img src=x onerror=alert(1)>'\"&amp;{{7*7}}</script>"
"""A text that is HTML, and a template."""


def node(name: str, gpus: int = 8, **more: Any) -> Body:
    """A Ready node of the pool a100."""
    status = {"allocatable": {GPU_RESOURCE: str(gpus)}, "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {GPU_PRODUCT_LABEL: "NVIDIA-A100-SXM4-80GB"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status, **more}


NODES = found(nodes=[node(f"a100-{number}") for number in range(4)])


def settings() -> StackSettings:
    queues = [{"name": "research", "deserved": {"gpus": 24}}, {"name": "products", "deserved": {"gpus": 8}}]
    return stack(
        tenant("team-a", cluster("training"), cluster("tuning"), queue={"name": "research"}),
        tenant("team-b", cluster("serving"), queue={"name": "products"}),
        scheduler={"volcano": {}},
        queues=queues,
    )


def gang(name: str, phase: str, message: str = "") -> Body:
    """A PodGroup of a RayCluster."""
    conditions = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    about = metadata(f"ray-{name}-pg", ownerReferences=owned("RayCluster", name))
    return {"metadata": about, "spec": {"queue": "research"}, "status": {"phase": phase, "conditions": conditions}}


def team_a(message: str = "it refuses") -> Found:
    job_status = {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": message}
    return found(
        rayclusters=[ray_cluster("training", *READY, replicas=2, most=4), ray_cluster("tuning", *STARTING)],
        pods=[
            pod("training-head"),
            pod("training-0", gpus=8, node="a100-0"),
            pod("training-1", gpus=4, node="a100-1"),
            pod("training-2", gpus=2, node="a100-1"),
            pod("tuning-head", "tuning", node=None),
            pod("tuning-0", "tuning", gpus=8, node=None),
        ],
        podgroups=[gang("training", "Running"), gang("tuning", "Inqueue", "2/2 tasks in gang unschedulable")],
        rayjobs=[{"metadata": metadata("nightly", creationTimestamp=MADE), "spec": {}, "status": job_status}],
    )


def team_b() -> Found:
    return found(
        rayclusters=[ray_cluster("serving", *READY, most=1)],
        pods=[pod("serving-head", "serving", node="a100-2"), pod("serving-0", "serving", gpus=8, node="a100-2")],
        resourcequotas=[
            {
                "metadata": metadata("ray-platform"),
                "spec": {"hard": {"requests.nvidia.com/gpu": "8"}},
                "status": {"hard": {"requests.nvidia.com/gpu": "8"}, "used": {"requests.nvidia.com/gpu": "8"}},
            }
        ],
    )


def queues() -> Found:
    states = {"research": "14", "products": "8"}
    return found(
        queues=[
            {
                "metadata": {"name": name},
                "spec": {"deserved": {GPU_RESOURCE: "24"}},
                "status": {"state": "Open", "allocated": {GPU_RESOURCE: held}},
            }
            for name, held in states.items()
        ]
    )


def view(message: str = "it refuses", nodes: Found = NODES, **namespaces: Found) -> View:
    """The page's view. `message`: of a failed RayJob, and the name of a series; `namespaces`: instead of those of the
    sample."""
    known = settings()
    plan = plan_of(known)
    existing = {"team-a": team_a(message), "team-b": team_b()} | {
        name.replace("_", "-"): each for name, each in namespaces.items()
    }
    status = stack_status(known, known.tenants, Live(NOW, existing, queues(), OPERATOR))
    lines = (Line("training", "M10 0.0H11V16.0H14", "", "8"), Line(message, "M167 16.0H168", "4", "4"))
    charts = {"team-a": (Chart("GPUs held", lines, 1),)}
    return replace(of_plan("sample", plan), live=of_status(status, plan, nodes, charts))


def page(message: str = "it refuses") -> str:
    return html(view(message))
