"""Ray on Kubernetes, as the stack file says."""

import sys

import pulumi

from core.problems import StackFileError
from stacks.build import build
from stacks.running import running_stack

TOLD = 32
"""Exit code after which Pulumi's language host adds no error of its own: the user has seen one already."""

try:
    for name, value in build(running_stack()).items():
        pulumi.export(name, value)
except (StackFileError, pulumi.RunError) as error:
    pulumi.log.error(str(error))
    sys.exit(TOLD)
