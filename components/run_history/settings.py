"""Settings of a tenant's run history."""

from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from core.quantities import amount
from core.types import DnsLabel, Image, Memory, Settings

LEAST_TTL_SECONDS = 20
"""How long the cluster of an ended job stays where the run history reads its head, or a container in the head's pod:
the program looks every five seconds (components/payloads/run_history/configured.py: LOOK_SECONDS), and waits at most
five for the answer of a head."""


_MOST_LOG = 64 * 2**20
"""Bytes. The pod has 384Mi of memory (manifests.py), and reads the logs of several runs at a time."""


def _fits(size: str) -> str:
    if amount(size) > _MOST_LOG:
        raise ValueError(f"{size!r} is more than the pod can read into its memory: set at most 64Mi")
    return size


class RunHistorySettings(Settings):
    """Records of the tenant's RayJobs, and with `readHeads` of its other jobs, which outlive them and their clusters:
    status, times, exit reason, GPU-hours, log and events. A pod in the tenant's namespace keeps them; `ray-platform
    runs` shows them."""

    storage: DnsLabel
    """Name of one of the tenant's `storage`, on which the records are. Its `retain` decides whether they outlive the
    tenant. Best one of their own: who mounts it can change them."""

    retention_days: Annotated[int, Strict(), Field(ge=1, le=3650)] = 30
    """Days after which the record of an ended run is deleted."""

    log_size: Annotated[Memory, AfterValidator(_fits)] = "1Mi"
    """The most that is kept of the log of each attempt: its end. At most 64Mi."""

    read_heads: bool = False
    """True: heads are asked, too. Of the jobs' clusters: for Ray's events, the driver's exit code, and the logs of jobs
    in `HTTPMode` and `InteractiveMode`, which only a head has. Of other RayClusters: for the jobs that they were sent
    directly, as by `ray job submit`, and for drivers that have connected. Of `externalClusters`: for jobs whose IDs
    begin with the namespace's name and a hyphen, as those of the stack do.

    For that the pod may read each Secret of the namespace whose name it knows: KubeRay names the token's Secret as the
    job's RayCluster, and generates that name. The cluster of an ended job stays for 20 seconds, unless
    `ttlSecondsAfterFinished` is longer, as it does in `SidecarMode` without this key: there a container in the head's
    pod has the log."""

    image: Image | None = None
    """Image of the pod, with Python and PyYAML. Default: that of the tenant's first RayCluster, RayJob, RayService or
    job template."""

    def needs_head(self, submission_mode: str) -> bool:
        """Whether the record of a job in that mode has something that is gone with its head's pod."""
        return self.read_heads or submission_mode == "SidecarMode"
