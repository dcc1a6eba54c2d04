"""The platform where it belongs to another stack: what this one knows of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from .settings import StackSettings
from .tenant_only import TOLD, PlatformMismatchError, check


@dataclass(frozen=True)
class OtherPlatform:
    """A platform that another stack has; nothing of it is made, or read from the cluster."""

    operator: pulumi.Input[Mapping[str, Any]]
    """Version and namespace of the operator."""

    namespaces: Mapping[str, pulumi.Input[str]]
    """The tenants' namespaces, by the tenants' names."""

    accounts: Mapping[str, pulumi.Input[str | None]]
    """The accounts that the tenants' RayClusters run as, by the tenants' names."""


def other_platform(settings: StackSettings) -> OtherPlatform:
    """The platform as the stack file says it, or, where this names the platform's stack, as that tells it.

    Whoever uses what that stack tells waits for the check that this one goes with it, which in previews, too, ends with
    pulumi.RunError where it does not.
    """
    reference = settings.platform.stack if settings.platform else None
    if reference is None:
        said = {"version": settings.operator.version, "namespace": settings.operator.namespace}
        return OtherPlatform(said, {tenant.name: tenant.namespace_name for tenant in settings.tenants}, {})
    stack = pulumi.StackReference(reference)
    told = pulumi.Output.all(**{name: stack.get_output(name) for name in TOLD}).apply(
        lambda outputs: _checked(settings, reference, outputs)
    )
    tenants = {tenant.name: told["tenants"][tenant.namespace_name] for tenant in settings.tenants}
    return OtherPlatform(
        told["operator"],
        {name: tenant["namespace"] for name, tenant in tenants.items()},
        # A stack's outputs have no nulls: what is none is left out.
        {name: tenant.apply(lambda known: known.get("serviceAccount")) for name, tenant in tenants.items()},
    )


def _checked(settings: StackSettings, platform: str, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        check(settings, platform, outputs)
    except PlatformMismatchError as error:
        raise pulumi.RunError(str(error)) from error
    return outputs
