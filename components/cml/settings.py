"""Settings of Ray clusters on Cloudera ML."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from components.cml.resources import (
    CmlHeadResources,
    CmlResources,
    CmlWorkerGroupSettings,
    Count,
    ProjectId,
    RayStartParams,
)
from components.cml.serving import SERVE_PORT, problems_of_serving
from components.external_cluster.settings import parse
from components.ray_cluster.settings import ClusterName
from components.ray_service.llm import LanguageModelSettings
from core.problems import Path, Problem, raise_problems, repeats
from core.types import CheckedSettings, Duration, Env, GpuHourPrice, NonEmptyText, Settings, Timeout, Version
from core.versions import version_tuple
from kuberay.ports import CLIENT_PORT
from kuberay.ray_start import problems_of_params
from kuberay.releases import FIRST_RAY_WITH_TOKENS
from kuberay.serve_config import ServeConfigSettings

_DECIDED = {
    "port": "port",
    "dashboard-port": "dashboardPort",
    "dashboard-host": "dashboardPort",
    "node-ip-address": "the application",
}
"""Parameters of `ray start` that other settings decide."""

GROUP = "workers"
"""Name of the only group, if no groups are set."""

HEAD = "head"

Port = Annotated[int, Strict(), Field(ge=1024, le=65535)]


def _host(text: str) -> str:
    usual = "write https://HOST, as the browser shows it, without a path"
    scheme, _, name = text.partition("://")
    if scheme != "https":
        raise ValueError(f"{text!r} is not an address with https, and the API key must not be sent otherwise: {usual}")
    if ":" in name:
        raise ValueError(f"{text!r} has a port, and applications are served at 443 alone: {usual}")
    try:
        parse(f"{text}:443", ("https",), 443)
    except ValueError:
        raise ValueError(f"{text!r} is not the address of a workspace of Cloudera ML: {usual}") from None
    return text


class Encrypted(Settings):
    """A value that Pulumi has encrypted: `pulumi config set --secret` writes it."""

    secure: NonEmptyText
    """The encrypted text."""


class CmlRayClusterSettings(CheckedSettings):
    """A Ray cluster whose nodes are Applications of Cloudera ML."""

    name: ClusterName
    """Name of the cluster. The names of its applications are `ray.STACK.NAME.head` and `ray.STACK.NAME.GROUP-NUMBER`;
    another name is another cluster."""

    project: ProjectId
    """Id of the project of its applications."""

    ray_version: Version
    """Version of Ray in the runtime."""

    runtime_identifier: NonEmptyText | None = None
    """Runtime of head and workers. Default: the project's."""

    num_workers: Count | None = None
    """Number of workers, of the size of `resources`. Default: 1, or none with `workerGroups`."""

    resources: CmlResources | None = None
    """Resources of a worker. GPUs are for workers alone."""

    head_resources: CmlHeadResources | None = None
    """Resources of the head. Default: CPUs and memory of `resources`, or of the first worker group."""

    worker_groups: tuple[CmlWorkerGroupSettings, ...] = ()
    """Workers of several sizes, instead of `numWorkers` and `resources`."""

    env: Env = Field(default_factory=dict)
    """Environment variables of head and workers."""

    head_ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further parameters of the head's `ray start`."""

    worker_ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further parameters of the workers' `ray start`, before those of their group."""

    port: Port = 6379
    """Port of the GCS at the head."""

    dashboard_port: Port = 8265
    """Port of the dashboard inside the head; from outside it is reached at the head's subdomain."""

    serve_config_v2: ServeConfigSettings | None = None
    """What is served, in the words of Ray Serve, at `https://SUBDOMAIN.HOST/serve` with the key of `cmlServeKeys`. A
    change is applied to the running cluster; no node ends. Default: nothing is served by the stack."""

    llm: LanguageModelSettings | None = None
    """A language model with OpenAI's API, in place of `serveConfigV2`. Its replicas run on the workers."""

    token_generation: Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)] = 1
    """Number of Ray's token. Another number makes a new token: head and workers are replaced, once all are idle."""

    suspend: bool = False
    """True: no application runs, also no head. Busy workers end their tasks first."""

    ready_timeout: Timeout = "20m"
    """Time for applications to start and to join, and again for what is served to run. `up` waits for it."""

    drain_timeout: Duration = "30m"
    """Time for workers that are removed to end their tasks. `up` waits for it, and fails if they are still busy: it
    never ends a running task."""

    @property
    def groups(self) -> tuple[CmlWorkerGroupSettings, ...]:
        """Its worker groups, also the one of `numWorkers`."""
        if self.worker_groups or self.resources is None:
            return self.worker_groups
        replicas = 1 if self.num_workers is None else self.num_workers
        return (CmlWorkerGroupSettings(name=GROUP, replicas=replicas, resources=self.resources),)

    @property
    def workers(self) -> int:
        """How many it should have: none while it is suspended."""
        return 0 if self.suspend else sum(group.replicas for group in self.groups)

    @property
    def resources_of_head(self) -> CmlHeadResources:
        """`headResources`, or the workers' without GPUs."""
        if self.head_resources:
            return self.head_resources
        return CmlHeadResources(cpu=self.groups[0].resources.cpu, memory=self.groups[0].resources.memory)

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that its applications are in, the head's first."""
        return tuple(dict.fromkeys((self.project, *(group.project or self.project for group in self.groups))))

    def problems(self) -> Iterator[Problem]:
        if version_tuple(self.ray_version) < version_tuple(FIRST_RAY_WITH_TOKENS):
            message = (
                f"has no tokens, without which everybody who sees the head's subdomain could run code on it: use "
                f"{FIRST_RAY_WITH_TOKENS} or later"
            )
            yield Problem(("rayVersion",), self.ray_version, message, "token-needs-ray")
        if self.port == self.dashboard_port:
            message = f"{self.port} is also the GCS's port, and both listen in the head: set a different port"
            yield Problem(("dashboardPort",), self.dashboard_port, message, "cml-ports")
        if self.serve_config_v2 or self.llm:
            for key, port in (("port", self.port), ("dashboardPort", self.dashboard_port)):
                if port == SERVE_PORT:
                    message = f"{port} is also the port of Ray Serve, and both listen in the head: set a different port"
                    yield Problem((key,), port, message, "cml-ports")
        if self.worker_groups and (self.resources or self.num_workers is not None):
            field = "resources" if self.resources else "numWorkers"
            message = "workerGroups are set, and they have numbers and resources: remove one of them"
            yield Problem((field,), None, message, "cml-groups")
        elif not self.worker_groups and self.resources is None:
            message = "the size of a worker is not set: set resources, or workerGroups"
            yield Problem(("resources",), None, message, "cml-resources")
        seen: set[str] = set()
        for at, group in enumerate(self.worker_groups):
            if group.name in seen or group.name == HEAD:
                message = f"{group.name!r} is the name of another group or of the head: set a unique name"
                yield Problem(("workerGroups", at, "name"), group.name, message, "repeated-name")
            seen.add(group.name)
        yield from problems_of_serving(self.serve_config_v2, self.llm, self.groups)
        yield from self._ports()
        yield from self._start_params()

    def _ports(self) -> Iterator[Problem]:
        """Ports that two servers of the head would listen at."""
        client = int(self.head_ray_start_params.get("ray-client-server-port", CLIENT_PORT))
        for key, port in (("port", self.port), ("dashboardPort", self.dashboard_port)):
            if port == client:
                message = f"{port} is also the port of Ray's client server in the head: set a different port"
                yield Problem((key,), port, message, "cml-ports")

    def _start_params(self) -> Iterator[Problem]:
        """Flags that `ray start` of the version does not know, or not there. Values are not words of a shell here."""
        placed: list[tuple[Path, Mapping[str, str]]] = [
            (("headRayStartParams",), self.head_ray_start_params),
            (("workerRayStartParams",), self.worker_ray_start_params),
        ]
        placed += [
            (("workerGroups", at, "rayStartParams"), group.ray_start_params)
            for at, group in enumerate(self.worker_groups)
        ]
        for path, params in placed:
            found = problems_of_params(params, self.ray_version, path[0] == "headRayStartParams", path)
            yield from (each for each in found if each.rule == "ray-start-option")
            for name in params.keys() & _DECIDED.keys():
                yield Problem((*path, name), params[name], f"follows from {_DECIDED[name]}: set that", "said-twice")


def _clusters(clusters: tuple[CmlRayClusterSettings, ...]) -> tuple[CmlRayClusterSettings, ...]:
    raise_problems(
        Problem(path, name, f"{name!r} is used already, in clusters[{first[0]}]: set a unique name", "repeated-name")
        for path, name, first in repeats(((at, "name"), cluster.name) for at, cluster in enumerate(clusters))
    )
    return clusters


class CmlSettings(Settings):
    """Ray clusters on Cloudera ML (Cloudera AI), made of its Applications through its API v2.

    The API key is read from CML_API_KEY in the environment, or from `cmlApiKey`.
    """

    host: Annotated[str, AfterValidator(_host)]
    """Address of the workspace: `https://ml-1234.example.cloudera.site`."""

    ca_file: NonEmptyText | None = None
    """File on the machine of `up` with the certificates of the authority that has signed the workspace's. Default: the
    authorities that Python knows."""

    gpu_hour_price: GpuHourPrice | None = None
    """Price of a GPU per hour, in any currency; `ray-platform plan` uses it."""

    clusters: Annotated[tuple[CmlRayClusterSettings, ...], AfterValidator(_clusters)] = ()
    """The clusters."""
