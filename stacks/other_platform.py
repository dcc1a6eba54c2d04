"""The platform if it belongs to another stack: what this stack knows about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from .settings import StackSettings
from .tenant_only import TOLD, PlatformMismatchError, check


@dataclass(frozen=True)
class OtherPlatform:
    """A platform of another stack. None of its objects are created by this stack or read from the cluster."""

    operator: pulumi.Input[Mapping[str, Any]]
    """Version and namespace of the operator."""

    namespaces: Mapping[str, pulumi.Input[str]]
    """The tenants' namespaces, by the tenants' names."""

    accounts: Mapping[str, pulumi.Input[str | None]]
    """The accounts that the tenants' RayClusters run as, by the tenants' names."""


def other_platform(settings: StackSettings) -> OtherPlatform:
    """The platform as set in the stack file, or as reported by the platform's stack if `platform` names it.

    All users of that stack's outputs wait for the check that both stacks match. If they do not, the check raises
    pulumi.RunError, also in previews.
    """
    reference = settings.platform.stack if settings.platform else None
    if reference is None:
        operator = {"version": settings.operator.version, "namespace": settings.operator.namespace}
        return OtherPlatform(operator, {tenant.name: tenant.namespace_name for tenant in settings.tenants}, {})
    stack = pulumi.StackReference(reference)
    reported = pulumi.Output.all(**{name: stack.get_output(name) for name in TOLD}).apply(
        lambda outputs: _checked(settings, reference, outputs)
    )
    tenants = {tenant.name: reported["tenants"][tenant.namespace_name] for tenant in settings.tenants}
    return OtherPlatform(
        reported["operator"],
        {name: tenant["namespace"] for name, tenant in tenants.items()},
        # The outputs of a stack contain no nulls: a value that is None is missing.
        {name: tenant.apply(lambda known: known.get("serviceAccount")) for name, tenant in tenants.items()},
    )


def _checked(settings: StackSettings, platform: str, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        check(settings, platform, outputs)
    except PlatformMismatchError as error:
        raise pulumi.RunError(str(error)) from error
    return outputs
