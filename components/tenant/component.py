"""How a tenant's quota and limits are provisioned."""

from dataclasses import dataclass

import pulumi

from ..bodies import in_namespace
from ..kubernetes import KubernetesObject
from .manifests import quota
from .settings import LimitSettings, QuotaSettings


@dataclass(frozen=True)
class QuotaArgs:
    """What a Quota is made from."""

    namespace: pulumi.Input[str]

    quota: QuotaSettings | None = None
    """None: no ResourceQuota."""

    limits: LimitSettings | None = None
    """None: no LimitRange."""


class Quota(pulumi.ComponentResource):
    """How much may be in a namespace at a time, and what its containers get that say no amounts.

    What makes pods there depends on this component, so that none is made before it counts. One that counts objects of
    KubeRay's kinds waits until they are counted, so it comes after the operator (`depends_on`), which brings the kinds.
    """

    def __init__(self, name: str, args: QuotaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Quota", name, None, opts)
        for part, body in quota(args.quota, args.limits).items():
            KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
