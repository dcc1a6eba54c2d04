"""Ray on Kubernetes, as the stack file says."""

import pulumi

from stacks.build import build
from stacks.running import running_stack
from stacks.settings import StackFileError

try:
    settings = running_stack()
except StackFileError as error:
    raise pulumi.RunError(str(error)) from error

for name, value in build(settings).items():
    pulumi.export(name, value)
