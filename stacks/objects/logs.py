"""Where the logs of a stack's tenants go. Pure functions."""

from collections.abc import Iterator

from components.logs.settings import LogsSettings
from core.body import Body
from core.problems import Problem
from core.suggestions import names_hint
from stacks.cached import cached
from stacks.settings import StackSettings, TenantSettings


@cached
def logs_of(stack: StackSettings, tenant: TenantSettings) -> LogsSettings | None:
    """Where the logs of a tenant's pods go; None: they stay in the pods."""
    if stack.logs is None or (stack.logs.tenants and tenant.name not in stack.logs.tenants):
        return None
    if stack.logs.own_namespace is None:
        return stack.logs

    # Only stacks with a store need it.
    from components.logs.store import sent_to

    return sent_to(stack.logs, stack.logs.own_namespace, tenant.namespace_name)


def log_collectors(stack: StackSettings, tenant: TenantSettings) -> Body | None:
    """The ConfigMap of a tenant's collectors; None if it has none."""
    settings = logs_of(stack, tenant)
    if settings is None:
        return None
    # Only stacks with logs need it.
    from components.logs.collector import config_map

    return config_map(settings, tenant.name)


def problems_of_logs(stack: StackSettings) -> Iterator[Problem]:
    """Logs that could not be sent, and tenants that do not exist."""
    settings = stack.logs
    if settings is None:
        return
    names = [tenant.name for tenant in stack.tenants]
    for at, name in enumerate(settings.tenants if stack.platform is None else ()):
        if name not in names:
            message = f"there is no tenant {name!r}: {names_hint(name, names)}"
            yield Problem(("logs", "tenants", at), name, message, "unknown-tenant")
    if settings.mode == "install":
        return
    restricted = [tenant.name for tenant in stack.tenants if logs_of(stack, tenant) and tenant.network.policies]
    if restricted and stack.platform is None and stack.network.policies and not settings.egress:
        message = (
            f"no NetworkPolicy lets the collectors of tenant {restricted[0]!r} connect to {settings.endpoint}: set "
            "logs.egress to the receiver, such as [{namespace: loki, ports: [3100]}], with the port of its pods"
        )
        yield Problem(("logs", "endpoint"), settings.endpoint, message, "logs-unreachable")
    elif settings.egress and not any(each.protocol == "TCP" for each in settings.egress):
        message = "logs are sent by HTTP, which is TCP: remove protocol"
        yield Problem(("logs", "egress", 0, "protocol"), "UDP", message, "logs-unreachable")
