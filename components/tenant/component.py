"""How a tenant's quota and limits are provisioned."""

from dataclasses import dataclass

import pulumi

from components.bodies import in_namespace
from components.kubernetes import KubernetesObject
from components.tenant.settings import LimitSettings, QuotaSettings, quota


@dataclass(frozen=True)
class QuotaArgs:
    """Arguments of Quota."""

    namespace: pulumi.Input[str]

    quota: QuotaSettings | None = None
    """None: no ResourceQuota."""

    limits: LimitSettings | None = None
    """None: no LimitRange."""


class Quota(pulumi.ComponentResource):
    """The ResourceQuota and the LimitRange of a namespace.

    Resources that create pods there depend on this component, so the quota counts all of them. A quota on KubeRay's
    kinds waits until Kubernetes counts them, so it depends on the operator (`depends_on`), which installs the kinds.
    """

    def __init__(self, name: str, args: QuotaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Quota", name, None, opts)
        for part, body in quota(args.quota, args.limits).items():
            KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
