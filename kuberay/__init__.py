"""Validates KubeRay manifests before they are sent: finds what the API server and the operator would refuse.

It does not find pods that Kubernetes refuses later (a container without an image, a volume that does not exist).
"""

from kuberay.releases import OperatorContext
from kuberay.rules import RULES
from kuberay.validation import validate

__all__ = ["RULES", "OperatorContext", "validate"]
