"""Creates and deletes RayJobs, with the rights of the account that runs the command."""

from __future__ import annotations

from collections.abc import Sequence

from components.cluster import Cluster, ClusterUnreachableError, NoAnswerError, path_of
from components.job_template.manifests import OPTIONS_ANNOTATION, run_of
from components.ray_cluster.manifests import API_VERSION

_REVIEWS = "authentication.k8s.io/v1"

_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


class RefusedError(Exception):
    """The API server refuses to create or delete the RayJob, or there is none; the message has its reason."""


def start(cluster: Cluster, namespace: str, template: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Creates a run of a job template. Returns its name, and options that the template does not list: the API server
    refuses them to everybody but administrators.

    Raises RefusedError; BadArgumentsError; ClusterUnreachableError if the template cannot be read.
    """
    held = cluster.get(API_VERSION, "raycronjobs", namespace, template)
    if held is None:
        raise RefusedError(
            f"job template {namespace}/{template} is in the stack file and not in the cluster: `up` creates it"
        )
    body = run_of(held, arguments, _author(cluster))
    name = str(body["metadata"]["name"])
    try:
        cluster.request("POST", path_of(API_VERSION, "rayjobs", namespace), headers=_JSON, body=body)
    except ClusterUnreachableError as error:
        if not (isinstance(error, NoAnswerError) and _exists(cluster, namespace, name)):
            raise RefusedError(f"no run of job template {namespace}/{template} was created: {error}") from error
    listed = (held["metadata"].get("annotations") or {}).get(OPTIONS_ANNOTATION)
    given = [each.partition("=")[0] for each in arguments if each.startswith("-")]
    return name, [each for each in given if listed is not None and each not in listed.split()]


def _exists(cluster: Cluster, namespace: str, name: str) -> bool:
    """Whether a run exists whose creation was not answered. Raises RefusedError if that cannot be found out."""
    try:
        return cluster.get(API_VERSION, "rayjobs", namespace, name) is not None
    except ClusterUnreachableError as error:
        raise RefusedError(
            f"it is not known whether run {namespace}/{name} was created: {error}. Look for it with `ray-platform "
            "status`, or `cancel` it, before you run the template again"
        ) from error


def cancel(cluster: Cluster, namespace: str, name: str) -> None:
    """Deletes a RayJob. KubeRay stops its job and deletes its cluster. Raises RefusedError."""
    try:
        deleted = cluster.delete(API_VERSION, "rayjobs", namespace, name, {"propagationPolicy": "Background"})
    except ClusterUnreachableError as error:
        raise RefusedError(f"RayJob {namespace}/{name} was not deleted: {error}") from error
    if deleted is None:
        raise RefusedError(f"RayJob {namespace}/{name} does not exist any more")


def _author(cluster: Cluster) -> str:
    """The user of this account, as the API server knows it. Every account may ask."""
    review = {"apiVersion": _REVIEWS, "kind": "SelfSubjectReview"}
    path = path_of(_REVIEWS, "selfsubjectreviews")
    answer = cluster.request("POST", path, headers=_JSON, body=review) or {}
    return str(answer["status"]["userInfo"]["username"])
