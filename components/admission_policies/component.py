"""How the rules that the API server enforces are provisioned."""

from dataclasses import dataclass, field
from datetime import date

import pulumi

from ..kubernetes import KubernetesObject
from .manifests import admission_policies
from .settings import AdmissionPoliciesSettings


@dataclass(frozen=True)
class AdmissionPoliciesArgs:
    """What AdmissionPolicies are made from."""

    settings: AdmissionPoliciesSettings

    namespaces: tuple[str, ...] | None
    """The tenants' namespaces. None: the stack makes all of them, and their label tells."""

    system: tuple[str, ...] = ()
    """Namespaces of what the stack installs."""

    today: date = field(default_factory=date.today)
    """Exceptions that have ended by then hold no more."""


class AdmissionPolicies(pulumi.ComponentResource):
    """The policies and their bindings.

    RayClusters depend on this component: what they make is judged for as long as they are there. The API server heeds a
    policy a second or two after it is made.
    """

    def __init__(self, name: str, args: AdmissionPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:AdmissionPolicies", name, None, opts)
        for body in admission_policies(args.settings, args.namespaces, args.system, args.today):
            part = "binding" if body["kind"].endswith("Binding") else "policy"
            rule = body["metadata"]["name"]
            KubernetesObject(f"{name}-{rule}-{part}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
