"""Objects that contain others: lists, objects from which an operator creates others, and kinds with pod templates."""

import copy
from collections.abc import Callable

import yaml

from core.body import Body
from core.problems import Path
from testbed.policies.bodies import body, ray_spec, template


def listed(made: Body) -> Body:
    """A List of one object."""
    return {"apiVersion": "v1", "kind": "List", "items": [made]}


def app_wrapper(made: Body) -> Body:
    """An AppWrapper of CodeFlare."""
    return body("workload.codeflare.dev/v1beta2", "AppWrapper", spec={"components": [{"template": made}]})


def manifest_work(made: Body) -> Body:
    """A ManifestWork of Open Cluster Management, for the cluster whose name is its namespace."""
    fields = {"workload": {"manifests": [made]}}
    return body("work.open-cluster-management.io/v1", "ManifestWork", "cluster-1", spec=fields)


def workflow(made: Body) -> Body:
    """A Workflow of Argo, with the object as text."""
    text = yaml.dump(made, Dumper=yaml.CSafeDumper, sort_keys=False)
    return body("argoproj.io/v1alpha1", "Workflow", spec={"templates": [{"resource": {"manifest": text}}]})


def bundle(made: Body) -> Body:
    """A Bundle of Fleet, with an AppWrapper as text."""
    text = yaml.dump(app_wrapper(made), Dumper=yaml.CSafeDumper, sort_keys=False)
    return body("fleet.cattle.io/v1alpha1", "Bundle", spec={"resources": [{"content": text}]})


WRAPPERS: dict[str, Callable[[Body], Body]] = {
    "alone": copy.deepcopy,
    "List": listed,
    "List in a List": lambda made: listed(listed(made)),
    "AppWrapper": app_wrapper,
    "AppWrapper in a List": lambda made: listed(app_wrapper(made)),
    "ManifestWork": manifest_work,
    "Workflow": workflow,
    "Bundle with an AppWrapper": bundle,
}
"""What an object may be in."""


def job_set() -> Body:
    """A JobSet of one job."""
    jobs = [{"name": "job", "template": {"spec": {"template": template()}}}]
    return body("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": jobs})


def leader_worker_set() -> Body:
    """A LeaderWorkerSet."""
    templates = {"leaderTemplate": template(), "workerTemplate": template()}
    return body("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"leaderWorkerTemplate": templates})


def ray_cluster_fleet() -> Body:
    """A RayClusterFleet of AIBrix."""
    spec = {"template": {"metadata": {"labels": {"app": "it"}}, "spec": ray_spec()}}
    return body("orchestration.aibrix.ai/v1alpha1", "RayClusterFleet", spec=spec)


def steps(at: str) -> Path:
    """Keys and indexes that are separated by spaces."""
    return tuple(int(step) if step.isdigit() else step for step in at.split())
