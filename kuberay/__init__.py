"""KubeRay's rules on its kinds, applied before anything is sent: what the API server and the operator would refuse.

Pods that Kubernetes itself refuses later (a container without an image, a volume that is not there) are not found here.
"""

from .context import OperatorContext
from .rules import RULES
from .validation import validate

__all__ = ["RULES", "OperatorContext", "validate"]
