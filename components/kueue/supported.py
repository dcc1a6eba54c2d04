"""Which releases of Kueue are supported."""

RELEASES = ("0.15",)
"""Minor versions whose tree and configuration are as this package writes them."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)


def release_of(version: str) -> str:
    """The minor version: `0.15` of `0.15.0`."""
    return version.rpartition(".")[0]
