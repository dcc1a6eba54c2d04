"""Versions of programs, and whether they are supported."""


class UnsupportedVersionError(Exception):
    """A version that is not supported, or versions that do not go together; the text says which, and what is."""


def release_of(version: str) -> str:
    """The minor version: `1.6` of `1.6.2`."""
    return version.rpartition(".")[0]
