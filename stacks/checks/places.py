"""Where problems of the bodies of RayClusters, RayJobs and RayServices come from. Pure functions."""

from dataclasses import replace

from components.ray_cluster.origin import setting_at
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import job_setting_at
from components.ray_job.settings import RayJobSettings
from components.ray_service.manifests import service_setting_at
from components.ray_service.settings import RayServiceSettings
from core.body import Body
from core.nodes import NodePool
from core.problems import Problem, place

Owner = RayJobSettings | RayServiceSettings
"""What has a RayCluster of its own."""

_CLUSTERS = (("spec", "rayClusterSpec"), ("spec", "rayClusterConfig"))
"""Paths of the RayCluster in a RayJob and in a RayService."""


def of_owner(owner: Owner, body: Body, problem: Problem) -> Problem:
    """A problem of the body of a RayJob or RayService, at its setting."""
    if isinstance(owner, RayJobSettings):
        return replace(problem, path=job_setting_at(owner, body, problem.path))
    return replace(problem, path=service_setting_at(owner, problem.path))


def is_in_cluster(problem: Problem) -> bool:
    """Whether a problem of the body of a RayJob or RayService is one of its RayCluster."""
    return problem.path[:2] in _CLUSTERS


def in_cluster(problem: Problem) -> Problem:
    """Such a problem, as of a RayCluster."""
    return replace(problem, path=("spec", *problem.path[2:]))


def where_set(cluster: RayClusterSettings, pools: tuple[NodePool, ...], body: Body, problem: Problem) -> Problem:
    """Maps a problem of a body to the cluster's setting that causes it."""
    path = setting_at(cluster, pools, body["spec"], problem.path)
    # If the refused value is derived from the setting, the message also names the refused field.
    derived = path[-1:] != problem.path[-1:]
    rendered = f"RayCluster {place(problem.path)}: " if derived else ""
    return replace(problem, path=path, message=f"{rendered}{problem.message}", rendered=rendered)
