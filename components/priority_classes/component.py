"""How the priorities of Ray's pods are provisioned."""

import pulumi

from components.kubernetes import KubernetesObject
from components.priority_classes.settings import PriorityClassesSettings, priority_classes


class PriorityClasses(pulumi.ComponentResource):
    """The PriorityClasses of heads and workers; empty if they exist already or pods get none.

    RayClusters depend on this component: without its PriorityClass a pod is not admitted.
    """

    def __init__(self, name: str, args: PriorityClassesSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:PriorityClasses", name, None, opts)
        for body in priority_classes(args):
            KubernetesObject(f"{name}-{body['metadata']['name']}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
