"""What a person says beside the file that is imported."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answers:
    """What the file may lack."""

    ray_version: str | None = None
    """Version of Ray in the image."""

    name: str | None = None
    """Name of the cluster."""
