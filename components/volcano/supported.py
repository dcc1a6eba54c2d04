"""Which releases of Volcano are supported, and how to tell one."""

RELEASES = ("1.14",)
"""Minor versions whose manifest and scheduler configuration are as this package writes them."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)


def release_of(version: str) -> str:
    """The minor version: `1.14` of `1.14.1`."""
    return version.rpartition(".")[0]
