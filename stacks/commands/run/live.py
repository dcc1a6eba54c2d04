"""Creates and deletes RayJobs, with the rights of the account that runs the command."""

from __future__ import annotations

from collections.abc import Sequence

from components.cluster import Cluster, ClusterUnreachableError, NoAnswerError, path_of
from components.job_template.manifests import OPTIONS_ANNOTATION, brings_code, code_of, run_of, size_name
from components.ray_cluster.manifests import API_VERSION
from core.body import Body
from stacks.commands.run.package import Package

_REVIEWS = "authentication.k8s.io/v1"

_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


class RefusedError(Exception):
    """The API server refuses to create or delete the RayJob, or there is none; the message has its reason."""


def start(
    cluster: Cluster,
    namespace: str,
    template: str,
    arguments: Sequence[str],
    package: Package | None = None,
    size: str | None = None,
) -> tuple[str, list[str]]:
    """Creates a run of a job template. Returns its name, and options that the template does not list: the API server
    refuses them to everybody but administrators. `package`: the code that the run brings. `size`: one of the
    template's sizes; None: its own cluster.

    Raises RefusedError; BadArgumentsError; ClusterUnreachableError if the template cannot be read.
    """
    held = cluster.get(API_VERSION, "raycronjobs", namespace, size_name(template, size))
    if held is None:
        what = f"size {size!r} of job template" if size else "job template"
        raise RefusedError(
            f"{what} {namespace}/{template} is in the stack file and not in the cluster: `up` creates it"
        )
    if brings_code(held) and not package:
        raise RefusedError(
            f"runs of job template {namespace}/{template} bring their code: add `--working-dir FOLDER`, before `--`"
        )
    if package and not brings_code(held):
        raise RefusedError(
            f"job template {namespace}/{template} runs its own code: leave out --working-dir. `localCode: true` in the "
            "stack file would allow yours"
        )
    body = run_of(held, arguments, _author(cluster), package.uri if package else None)
    name = str(body["metadata"]["name"])
    try:
        made = cluster.request("POST", path_of(API_VERSION, "rayjobs", namespace), headers=_JSON, body=body)
    except ClusterUnreachableError as error:
        made = _found(cluster, namespace, name) if isinstance(error, NoAnswerError) else None
        if made is None:
            raise RefusedError(f"no run of job template {namespace}/{template} was created: {error}") from error
    if package:
        _bring(cluster, made or {}, package)
    listed = (held["metadata"].get("annotations") or {}).get(OPTIONS_ANNOTATION)
    given = [each.partition("=")[0] for each in arguments if each.startswith("-")]
    return name, [each for each in given if listed is not None and each not in listed.split()]


def _bring(cluster: Cluster, run: Body, package: Package) -> None:
    """Stores the code of a run. The pod that submits the run waits for it. Raises RefusedError."""
    namespace, name = str(run["metadata"]["namespace"]), str(run["metadata"]["name"])
    try:
        body = code_of(run, package.content)
        cluster.request("POST", path_of("v1", "configmaps", namespace), headers=_JSON, body=body)
    except KeyboardInterrupt:
        cancel(cluster, namespace, name)
        raise
    except ClusterUnreachableError as error:
        cancel(cluster, namespace, name)
        raise RefusedError(f"run {namespace}/{name} was deleted, because its code was not stored: {error}") from error


def _found(cluster: Cluster, namespace: str, name: str) -> Body | None:
    """A run whose creation was not answered; None if it does not exist. Raises RefusedError if that cannot be found
    out."""
    try:
        return cluster.get(API_VERSION, "rayjobs", namespace, name)
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
