"""Settings of jobs that `up` submits, and of the clusters of others that it submits to."""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from components.external_cluster.settings import Address, parse, problems_of_transport
from components.ray_cluster.settings import ClusterName
from components.ray_job.settings import JobName, SubmissionSettings
from core.problems import Problem
from core.types import CheckedSettings, EnvName, LabelValue, NonEmptyText, Timeout
from kuberay.ports import DASHBOARD_PORT
from kuberay.runtime_env import problems_of_runtime_env

_SCHEMES = ("https", "http")


def _dashboard(text: str) -> str:
    parse(text, _SCHEMES, DASHBOARD_PORT, of_pods=False)
    return text


class RemoteClusterSettings(CheckedSettings):
    """A Ray cluster that exists already, and that the machine of `up` reaches. Nothing of it is created, changed or
    deleted."""

    name: ClusterName
    """Name by which `jobs` refer to it."""

    dashboard_address: Annotated[str, AfterValidator(_dashboard)]
    """Address of the dashboard with its jobs API, as the machine of `up` reaches it: `https://ray.example.com:8265`, or
    `http://localhost:8265` for a tunnel."""

    token_variable: EnvName | None = None
    """Environment variable with the cluster's token, where `up` runs. Default: the cluster requires none."""

    ca_file: NonEmptyText | None = None
    """File on the machine of `up` with the certificates of the authority that has signed the dashboard's. Default: the
    authorities that Python knows."""

    plain_token: bool = False
    """True: the token may be sent over http to another machine, where everybody on the way can read it."""

    ready_timeout: Timeout = "2m"
    """Time for which `up` tries to connect before it submits a job."""

    @property
    def dashboard(self) -> Address:
        """`dashboard_address` in its parts."""
        return parse(self.dashboard_address, _SCHEMES, DASHBOARD_PORT, of_pods=False)

    def problems(self) -> Iterator[Problem]:
        leaves = self.token_variable is not None and not _is_here(self.dashboard.host)
        ca = "caFile" if self.ca_file else None
        yield from problems_of_transport(self, "another machine", token_leaves=leaves, ca=ca)


def _is_here(host: str) -> bool:
    """Whether an address is the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class RemoteJobSettings(SubmissionSettings, CheckedSettings):
    """A job that `up` submits from its own machine, to a cluster of `cml.clusters` or `externalClusters`.

    It is submitted when it is added, and again when its settings or its `runId` change; a job that runs then is stopped
    first. Nothing else submits it again. The code of `runtimeEnv` has to be where the cluster reads it: `up` uploads
    nothing.
    """

    name: JobName
    """Name of the job. Its ID in Ray is `STACK-NAME-` and 8 random digits, another for each run."""

    entrypoint: NonEmptyText
    """The command that Ray runs."""

    cml_cluster: ClusterName | None = None
    """Name of one of `cml.clusters`."""

    external_cluster: ClusterName | None = None
    """Name of one of the stack's own `externalClusters`, in place of `cmlCluster`."""

    run_id: LabelValue | None = Field(default=None, min_length=1)
    """Any value. A change submits the job again."""

    wait_for: Literal["nothing", "running", "succeeded"] = "nothing"
    """What `up` waits for. `nothing`: until Ray has the job. `running`: until it runs. `succeeded`: until it has ended;
    an `up` fails if the job has."""

    wait_timeout: Timeout = "10m"
    """Time for which `up` waits. Afterwards it fails, and the job continues."""

    @property
    def cluster(self) -> str:
        """The name of its cluster."""
        return self.cml_cluster or self.external_cluster or ""

    def problems(self) -> Iterator[Problem]:
        if self.cml_cluster and self.external_cluster:
            message = "cmlCluster names a cluster already: remove cmlCluster, or externalCluster"
            yield Problem(("externalCluster",), self.external_cluster, message, "said-twice")
        elif not self.cluster:
            message = "the job has no cluster: add cmlCluster or externalCluster; jobs on Kubernetes belong to a tenant"
            yield Problem((), None, message, "job-cluster")
        if not self.entrypoint.strip(" \t'\""):
            yield Problem(("entrypoint",), self.entrypoint, "has no command: write it", "job-entrypoint")
        values = self.runtime_env.others if self.runtime_env else {}
        yield from (each.below(("runtimeEnv",)) for each in problems_of_runtime_env(values, "`up`"))
        if "wait_timeout" in self.model_fields_set and self.wait_for == "nothing":
            message = "has no effect, because `up` does not wait for the job: remove it, or set waitFor"
            yield Problem(("waitTimeout",), self.wait_timeout, message, "job-waits")
