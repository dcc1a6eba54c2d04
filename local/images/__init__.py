"""Container images built without a container engine, for a node that has no registry to pull from."""

from local.images.image import Image
from local.images.programs import OPERATOR, PAUSE
from local.images.ray import RAY

__all__ = ["IMAGES", "OPERATOR", "PAUSE", "RAY", "Image", "build_missing", "full_name"]

IMAGES = (PAUSE, OPERATOR, RAY)
"""All there are, under the names that stacks use."""


def build_missing() -> None:
    """Build what the cache does not hold yet. The operator's program has to be built before.

    Raises:
        RehearsalError: a step failed; with what was said.
    """
    for image in IMAGES:
        image.build()


def full_name(reference: str) -> str:
    """An image's name with its registry, as a node completes what a pod says.

    >>> full_name("rayproject/ray:2.60.0")
    'docker.io/rayproject/ray:2.60.0'
    """
    registry, _, rest = reference.partition("/")
    if not rest:
        return f"docker.io/library/{reference}"
    return reference if "." in registry or ":" in registry or registry == "localhost" else f"docker.io/{reference}"
