"""The images and the manifests that a stack uses. Pure functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.images import full_name, mirrored
from core.problems import few
from stacks.objects.cml import installs_operator
from stacks.objects.stack import users_of_images, without_mirrors
from stacks.settings import StackSettings

_SHOWN = 3
"""Users of an image that the text names."""


@dataclass(frozen=True)
class Image:
    name: str
    """Its whole name before any mirror: what a mirror has to copy."""

    pulled: str
    """The name in the pods: with the stack's mirrors."""

    users: tuple[str, ...]
    """Objects and programs whose pods use it: `RayCluster team-a/training`, `KubeRay`."""

    @property
    def digest(self) -> str | None:
        """The digest that pins it; None if a tag alone selects it, whose content may change."""
        return self.name.partition("@")[2] or None


@dataclass(frozen=True)
class Manifest:
    """A release of a program whose manifest `pulumi up` reads."""

    program: str
    version: str
    location: str


@dataclass(frozen=True)
class Used:
    images: tuple[Image, ...]
    manifests: tuple[Manifest, ...]


def used(stack: StackSettings) -> Used:
    """The images, sorted by name, and the manifests of a stack."""
    images = [
        Image(full_name(image), mirrored(image, stack.images.mirrors), tuple(users))
        for image, users in users_of_images(without_mirrors(stack)).items()
    ]
    return Used(tuple(sorted(images, key=lambda each: each.name)), tuple(_manifests(stack)))


def _manifests(stack: StackSettings) -> Iterator[Manifest]:
    if stack.platform:
        return
    if installs_operator(stack):
        yield Manifest("KubeRay", stack.operator.version, stack.operator.tree)
    scheduler = stack.scheduler
    if scheduler and scheduler.volcano and scheduler.volcano.install == "manifests":
        yield Manifest("Volcano", scheduler.volcano.version, scheduler.volcano.manifest)
    if scheduler and scheduler.kueue and scheduler.kueue.install == "manifests":
        yield Manifest("Kueue", scheduler.kueue.version, scheduler.kueue.tree)


def as_object(found: Used) -> dict[str, Any]:
    """For programs; null for an image without a digest."""
    return {
        "images": [
            {"image": each.name, "pulledAs": full_name(each.pulled), "digest": each.digest, "usedBy": list(each.users)}
            for each in found.images
        ],
        "manifests": [
            {"program": each.program, "version": each.version, "location": each.location} for each in found.manifests
        ],
    }


def as_text(found: Used) -> str:
    lines = [line for each in found.images for line in _lines(each)]
    lines += [f"{each.program} {each.version}: {each.location}" for each in found.manifests]
    floating = sum(each.digest is None for each in found.images)
    count = f"images: {len(found.images)}, without a digest: {floating}; manifests: {len(found.manifests)}"
    return "\n".join([*lines, count])


def _lines(image: Image) -> Iterator[str]:
    yield image.name
    if full_name(image.pulled) != image.name:
        yield f"    pulled as {image.pulled}"
    yield f"    {few(image.users, _SHOWN)}"
