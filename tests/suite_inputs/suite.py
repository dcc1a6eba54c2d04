"""What a suite of tests is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """Tests with the marker `suite(name)`.

    Fields: `inputs`: patterns of files, relative to the checkout, besides the tests and what they and their helpers
    import (tests/imported.py); `files`: where its tests are; `share`: the part of its cases that runs when no input has
    changed; 0 skips the suite.
    """

    inputs: tuple[str, ...]
    files: tuple[str, ...]
    share: float

    programs: tuple[str, ...] = ()
    """Programs of the machine, whose versions are inputs, too."""
