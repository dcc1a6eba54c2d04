"""How the rules that the API server enforces are provisioned."""

from dataclasses import dataclass, field
from datetime import date

import pulumi

from components.admission_policies.settings import AdmissionPoliciesSettings, admission_policies
from components.kubernetes import KubernetesObject


@dataclass(frozen=True)
class AdmissionPoliciesArgs:
    """Arguments of AdmissionPolicies."""

    settings: AdmissionPoliciesSettings

    namespaces: tuple[str, ...] | None
    """The tenants' namespaces. None: the stack creates all of them, and their label selects them."""

    system: tuple[str, ...] = ()
    """Namespaces of programs that the stack installs."""

    today: date = field(default_factory=date.today)
    """Exceptions that end before this date are ignored."""


class AdmissionPolicies(pulumi.ComponentResource):
    """The policies and their bindings.

    RayClusters depend on this component, so the policies apply to their objects from creation to deletion. The API
    server enforces a policy a second or two after its creation.
    """

    def __init__(self, name: str, args: AdmissionPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:AdmissionPolicies", name, None, opts)
        for body in admission_policies(args.settings, args.namespaces, args.system, args.today):
            part = "binding" if body["kind"].endswith("Binding") else "policy"
            rule = body["metadata"]["name"]
            KubernetesObject(f"{name}-{rule}-{part}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
