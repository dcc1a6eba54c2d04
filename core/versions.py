"""Versions of programs, and whether they are supported."""


class UnsupportedVersionError(Exception):
    """An unsupported version, or incompatible versions; the text names them and the supported ones."""


def release_of(version: str) -> str:
    """The minor version: `1.6` of `1.6.2`."""
    return version.rpartition(".")[0]
