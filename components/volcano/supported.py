"""Which releases of Volcano are supported, and how to tell one."""

import re

from ..types import image_tag

RELEASES = ("1.14",)
"""Minor versions whose manifest and scheduler configuration are as this package writes them."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)


class UnsupportedVersionError(Exception):
    """A version of Volcano that is not supported; the text says which, and what is."""


def image_release(image: str) -> str | None:
    """The release that the tag of one of Volcano's images names, `1.14.1` of `v1.14.1`; None where it names none."""
    found = re.match(r"v?(\d+\.\d+\.\d+)", image_tag(image) or "")
    return found[1] if found else None


def release_of(version: str) -> str:
    """The minor version: `1.14` of `1.14.1`."""
    return version.rpartition(".")[0]
