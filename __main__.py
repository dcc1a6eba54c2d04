"""Provisions Ray on Kubernetes as the stack file describes."""

import sys

import pulumi

from core.problems import StackFileError
from stacks.program.build import build
from stacks.program.cancelled import end_at_once_when_cancelled
from stacks.program.config import running_stack

REPORTED = 32
"""Exit code for an error that the program has reported itself: Pulumi's language host adds no error of its own."""

end_at_once_when_cancelled()
try:
    for name, value in build(running_stack()).items():
        pulumi.export(name, value)
except (StackFileError, pulumi.RunError) as error:
    pulumi.log.error(str(error))
    sys.exit(REPORTED)
