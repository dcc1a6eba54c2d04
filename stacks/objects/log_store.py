"""The log store of a stack's own. Pure functions."""

from components.network.manifests import log_store_policies
from core.body import Body
from stacks.objects.access import viewers_of
from stacks.objects.logs import logs_of
from stacks.settings import StackSettings


def log_store(stack: StackSettings) -> list[Body]:
    """The objects of the stack's own log store; none if it has none."""
    settings, namespace = stack.logs, stack.log_store_namespace
    if settings is None or settings.installed is None or namespace is None:
        return []

    # Only stacks with a store need it.
    from components.logs import store

    viewers = [viewers_of(stack, tenant) for tenant in stack.tenants if logs_of(stack, tenant)]
    policies = (
        log_store_policies(stack.network, store.SELECTOR, store.PORT, store.PROXIES, store.PROXY_PORT)
        if stack.network.policies
        else ()
    )
    return store.objects(settings.installed, namespace, viewers, stack.access.cluster_admins, policies)
