"""Sizes of the applications of a cluster on Cloudera ML."""

from typing import Annotated

from pydantic import Field, Strict, StringConstraints

from core.types import Env, Gpus, NonEmptyText, Settings, dns_1035_label

MOST_APPLICATIONS = 500
"""Workers of a group: a bound for typing errors. Cloudera ML's own limits are quotas."""

Cpus = Annotated[float, Field(gt=0, le=1024)]
Gigabytes = Annotated[float, Field(gt=0, le=65536)]
Count = Annotated[int, Strict(), Field(ge=0, le=MOST_APPLICATIONS)]

ProjectId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$", max_length=128)]
"""The id of a project in the API, the last part of its address there; not its name."""

RayStartParams = dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")], NonEmptyText]


class CmlResources(Settings):
    """Resources of an application."""

    cpu: Cpus
    """CPUs: `16`."""

    memory: Gigabytes
    """Memory in GB, as Cloudera ML counts: `64`."""

    gpus: Gpus = 0
    """GPUs."""


class CmlHeadResources(Settings):
    """Resources of the head, which never has GPUs."""

    cpu: Cpus
    """CPUs."""

    memory: Gigabytes
    """Memory in GB."""


class CmlWorkerGroupSettings(Settings):
    """Workers of one size."""

    name: Annotated[str, dns_1035_label(30)]
    """Name of the group."""

    replicas: Count
    """Number of its workers; each is an application."""

    resources: CmlResources
    """Resources of each."""

    project: ProjectId | None = None
    """Id of the project of its applications. Default: the cluster's."""

    runtime_identifier: NonEmptyText | None = None
    """Runtime of its applications. Default: the cluster's."""

    env: Env = Field(default_factory=dict)
    """Environment variables, beside and before the cluster's."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further parameters of `ray start`, as in KubeRay: `{object-store-memory: "1000000000"}`."""
