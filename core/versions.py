"""Versions of programs: their numbers, and those in images' tags."""

import re


class UnsupportedVersionError(Exception):
    """An unsupported version, or incompatible versions; the text names them and the supported ones."""


def release_of(version: str) -> str:
    """The minor version: `1.6` of `1.6.2`."""
    return version.rpartition(".")[0]


def version_tuple(version: str) -> tuple[int, ...]:
    """A `Version` as numbers, so that 2.9.0 is older than 2.60.0."""
    return tuple(int(part) for part in version.split("."))


def release_numbers(text: str | None) -> tuple[int, ...] | None:
    """The numbers of the release that a text starts with, as `version_tuple`; None if it starts with none."""
    found = re.match(r"\d+\.\d+\.\d+", text or "")
    return version_tuple(found[0]) if found else None


def image_tag(image: str) -> str | None:
    """The tag of an image reference; None without a tag (only a digest, or neither)."""
    name = image.partition("@")[0]
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else None


def image_version(image: str) -> str | None:
    """The version that an image's tag starts with; None if the tag has no version."""
    found = re.match(r"\d+\.\d+\.\d+(?![0-9])", image_tag(image) or "")
    return found[0] if found else None


RAYS_IMAGE = r"^(?:[^:]*[^a-z0-9:])?ray(?:[^a-z0-9:][^:]*)?:"
"""Name and colon of an image of Ray, from its last slash: `ray:`, `ray-ml:`, `our-ray:`. CEL has the same syntax."""


def ray_image_version(image: str) -> str | None:
    """The version of Ray in an image's tag; None if the tag has no version, or is that of another program.

    An image of Ray has the word ray in its name: the tag of `acme/trainer:1.4.2` is the application's own.
    """
    name_and_tag = image.partition("@")[0].rpartition("/")[2]
    return image_version(image) if re.match(RAYS_IMAGE, name_and_tag) else None


def image_release(image: str) -> str | None:
    """The release in an image's tag, `1.14.1` of `v1.14.1`; None if the tag has no release."""
    found = re.match(r"v?(\d+\.\d+\.\d+)", image_tag(image) or "")
    return found[1] if found else None
