"""The supported releases of Volcano, and how to find the installed one."""

RELEASES = ("1.14",)
"""Minor versions whose manifest and scheduler configuration this package supports."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)
