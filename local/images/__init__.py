"""Container images built without a container engine, for a node that has no registry to pull from."""

from collections.abc import Iterable

from local.images.image import Image
from local.images.programs import OPERATOR, PAUSE
from local.images.ray import RAY
from local.images.redis import REDIS

__all__ = ["IMAGES", "OPERATOR", "PAUSE", "RAY", "REDIS", "Image", "full_name", "named"]

IMAGES = (PAUSE, OPERATOR, RAY, REDIS)
"""All there are, under the names that stacks use."""


def named(references: Iterable[str]) -> list[Image]:
    """Those of the images that are named, as pods name them; a name that none has is passed over."""
    wanted = {full_name(reference) for reference in references}
    return [image for image in IMAGES if image.reference in wanted]


def full_name(reference: str) -> str:
    """An image's name with its registry, as a node completes what a pod says.

    >>> full_name("rayproject/ray:2.60.0")
    'docker.io/rayproject/ray:2.60.0'
    """
    registry, _, rest = reference.partition("/")
    if not rest:
        return f"docker.io/library/{reference}"
    return reference if "." in registry or ":" in registry or registry == "localhost" else f"docker.io/{reference}"
