"""Which releases of Kueue are supported."""

RELEASES = ("0.15",)
"""Minor versions whose tree and configuration format this package supports."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)
