"""What a cluster's settings say of scaling, as KubeRay's `autoscalerOptions`."""

from typing import Any

from core.types import seconds

from .settings import RayClusterSettings

_ONE_NODE_FOR_EACH = 1.0
"""`upscaling_speed` of KubeRay's Conservative: as many workers may start as there are nodes. Its other modes have no
limit (Ray: python/ray/autoscaler/_private/kuberay/autoscaling_config.py)."""


def autoscaler_options(settings: RayClusterSettings) -> dict[str, Any]:
    """The options of a cluster that scales."""
    options = {
        # The operator's own logic keys on the version, so Ray's default of v2 is not enough.
        "version": "v2",
        "idleTimeoutSeconds": idle_seconds(settings),
        "imagePullPolicy": settings.image_pull_policy,
    }
    mode = upscaling_mode(settings)
    return {**options, "upscalingMode": mode} if mode else options


def idle_seconds(settings: RayClusterSettings) -> int:
    """After how many seconds an idle worker is taken away."""
    minutes = settings.idle_timeout_minutes
    return seconds(settings.idle_timeout) if minutes is None else minutes * 60


def upscaling_mode(settings: RayClusterSettings) -> str | None:
    """KubeRay's name for how fast workers are added, None where nothing is said."""
    if settings.target_utilization is not None:
        # Ray's own conversion (python/ray/autoscaler/_private/autoscaler.py, target_utilization_fraction).
        upscaling_speed = 100 / settings.target_utilization - 1
        return "Conservative" if upscaling_speed <= _ONE_NODE_FOR_EACH else "Default"
    return settings.auto_scaling_mode.capitalize() if settings.auto_scaling_mode else None
