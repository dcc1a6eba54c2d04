"""Container images built without a container engine, for a node that has no registry to pull from."""

from collections.abc import Iterable

from core.images import full_name
from local.images.image import Image
from local.images.programs import (
    ALERTMANAGER,
    LOG_COLLECTOR,
    LOGS_PROXY,
    OPERATOR,
    PAUSE,
    PROMETHEUS,
    PROMETHEUS_PROXY,
    REDIS_EXPORTER,
    VICTORIA_LOGS,
    VOLCANO_PROGRAMS,
)
from local.images.ray import RAY
from local.images.ray_llm import RAY_LLM
from local.images.redis import REDIS

__all__ = [
    "AHEAD",
    "ALERTMANAGER",
    "IMAGES",
    "LOGS_PROXY",
    "LOG_COLLECTOR",
    "OPERATOR",
    "PAUSE",
    "PROMETHEUS",
    "PROMETHEUS_PROXY",
    "RAY",
    "RAY_LLM",
    "REDIS",
    "REDIS_EXPORTER",
    "VICTORIA_LOGS",
    "Image",
    "full_name",
    "named",
]

AHEAD = (
    PAUSE,
    OPERATOR,
    *VOLCANO_PROGRAMS,
    RAY,
    REDIS,
    REDIS_EXPORTER,
    LOG_COLLECTOR,
    PROMETHEUS,
    PROMETHEUS_PROXY,
    ALERTMANAGER,
    VICTORIA_LOGS,
    LOGS_PROXY,
)
"""The images that are built before a stack needs them."""

IMAGES = (*AHEAD, RAY_LLM)
"""All images, under the names that stacks use."""


def named(references: Iterable[str]) -> list[Image]:
    """The images among these references, by the names that pods use; unknown references are skipped."""
    names = {full_name(reference) for reference in references}
    return [image for image in IMAGES if image.reference in names]
