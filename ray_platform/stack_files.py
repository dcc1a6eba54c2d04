"""Stack files for other Pulumi programs."""

from pathlib import Path

from ray_platform.errors import without_traceback
from stacks import load as stack_files
from stacks.settings import StackSettings


def load(path: Path) -> StackSettings:
    """The settings in a stack file with its bases, from any place.

    Raises pulumi.RunError: the file cannot be read, is not a stack file, or has invalid settings.
    """
    with without_traceback():
        return stack_files.load(path)
