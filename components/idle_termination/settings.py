"""Settings of the termination of idle RayClusters, in KubeRay's words.

Ray 2.60 reads them from a RayCluster (autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py:
_refresh_idle_termination_config). KubeRay 1.6 and 1.7 have no such fields (ray-project/kuberay#5210).
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from core.types import MOST_SECONDS, Settings


def _not_delete(value: Any) -> Any:
    if value == "Delete":
        raise ValueError(
            "'Delete' would delete a RayCluster that the stack file describes, and the next `up` would fail or create "
            "it again: use Suspend, which deletes its pods; for a cluster that ends with its work, use a job"
        )
    return value


class IdleTerminationSettings(Settings):
    """What happens to a RayCluster that nobody uses."""

    timeout_seconds: Annotated[int, Strict(), Field(ge=1, le=MOST_SECONDS)]
    """Seconds without a connected driver, a job and an actor, after which the cluster is suspended."""

    policy: Annotated[Literal["Suspend"], BeforeValidator(_not_delete)] = "Suspend"
    """`Suspend`: KubeRay deletes the cluster's pods and keeps the RayCluster, until `ray-platform wake` or a RayJob
    that selects it wakes it. KubeRay's `Delete` is refused."""
