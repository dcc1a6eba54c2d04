"""Rules that the API server enforces: in which namespaces, and with which exceptions. Pure functions."""

from collections.abc import Iterator, Sequence
from datetime import date

from components.bodies import Body
from core.problems import Problem

from .settings import StackSettings


def tenants_namespaces(stack: StackSettings) -> tuple[str, ...] | None:
    """The tenants' namespaces; None if the stack creates all of them, because then a label selects them."""
    if all(tenant.create_namespace for tenant in stack.tenants):
        return None
    return tuple(tenant.namespace_name for tenant in stack.tenants)


def installed_namespaces(stack: StackSettings) -> tuple[str, ...]:
    """The namespaces of the programs that the stack installs for all tenants."""
    found = [stack.operator.namespace]
    if stack.scheduler:
        found += [each.namespace for each in (stack.scheduler.volcano, stack.scheduler.kueue) if each]
    return tuple(found)


def enforced(stack: StackSettings) -> Sequence[Body]:
    """The policies and their bindings as of today: exceptions expire."""
    if stack.admission_policies is None:
        return ()
    # Imported here because it loads all rules with their expressions, which few stacks and few commands need.
    from components.admission_policies.manifests import admission_policies

    return admission_policies(
        stack.admission_policies, tenants_namespaces(stack), installed_namespaces(stack), date.today()
    )


def problems_of_admission(stack: StackSettings) -> Iterator[Problem]:
    """Exceptions for namespaces in which no rule is enforced."""
    settings = stack.admission_policies
    if settings is None or settings.namespaces == "all":
        return
    known = [tenant.namespace_name for tenant in stack.tenants]
    for index, each in enumerate(settings.exceptions):
        if each.namespace not in known:
            message = f"is no tenant's namespace, where nothing is enforced: use one of {', '.join(known) or 'none'}"
            path = ("admissionPolicies", "exceptions", index, "namespace")
            yield Problem(path, each.namespace, message, "admission-namespaces")
