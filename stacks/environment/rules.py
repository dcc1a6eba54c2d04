"""What cannot be said of an environment that is split. Pure functions."""

from collections.abc import Iterator

from core.problems import Problem

from ..settings import StackSettings


def problems_of_split(stack: StackSettings) -> Iterator[Problem]:
    """What the platform's stack would have to make in namespaces that only the tenants' stacks make."""
    if stack.split is None:
        return
    if stack.operator.watch_namespaces:
        message = (
            "the operator would need a Role in each of these namespaces before it starts, and with ray-platform:split "
            "tenants' namespaces are made after it: remove watchNamespaces, or remove split"
        )
        yield Problem(("operator", "watchNamespaces"), None, message, "split")
    redis = stack.redis
    if redis and redis.mode != "external" and redis.scope == "shared" and stack.tenants:
        message = (
            "one Redis for all tenants needs the password of each in the platform's stack, and with ray-platform:split "
            "tenants are in stacks of their own: set scope: perTenant or mode: external, or remove split"
        )
        yield Problem(("redis", "scope"), redis.scope, message, "split")
