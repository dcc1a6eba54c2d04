"""Which releases of Volcano are supported, and how to tell one."""

RELEASES = ("1.14",)
"""Minor versions whose manifest and scheduler configuration are as this package writes them."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)
