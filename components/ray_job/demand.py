"""The usage of a quota by a RayJob, as Kubernetes counts it. Pure functions on rendered bodies."""

from dataclasses import replace
from decimal import Decimal

from components.tenant.demand import Body, Demand, Group, Usage, defaults, demand, group_of, inside
from components.tenant.settings import LimitSettings
from core.problems import Path

SUBMITTER = "submitter"
"""Name of the group with the pod that submits the job."""


def demand_of_job(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of a RayJob with its cluster, if that is its own; paths are in the body of the RayJob.

    The pod that submits the job counts beside it: Volcano adds its resources to those of the gang
    (batchscheduler/volcano/volcano_scheduler.go: handleRayJob).
    """
    name, spec, template = body["metadata"]["name"], body["spec"], body["spec"].get("submitterPodTemplate")
    groups: tuple[Group, ...] = ()
    objects: Usage = {"count/rayjobs.ray.io": Decimal(1)}
    scales = False
    if own := spec.get("rayClusterSpec"):
        of_cluster = demand({"metadata": body["metadata"], "spec": own}, limits)
        scales, objects = of_cluster.scales, objects | of_cluster.objects
        groups = inside(of_cluster.groups, ("spec", "rayClusterSpec"))
    if template and spec.get("submissionMode") == "K8sJobMode":
        submitter = group_of(
            ("spec", "submitterPodTemplate"), f"the {SUBMITTER}", {"template": template}, defaults(limits)
        )
        containers = tuple(replace(each, path=_without_template(each.path)) for each in submitter.containers)
        groups = (*groups, replace(submitter, containers=containers))
        objects |= {"count/jobs.batch": Decimal(1)}
    return Demand(name, () if spec.get("suspend") else groups, objects, scales)


def _without_template(path: Path) -> Path:
    """A path in a pod template that stands alone."""
    return tuple(step for step in path if step != "template")
