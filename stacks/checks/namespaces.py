"""Who owns which namespace: Kubernetes, the operator, the scheduler, Redis or a tenant. Pure functions."""

from collections.abc import Iterator
from dataclasses import dataclass

from core.problems import Path, Problem
from stacks.settings import StackSettings, TenantSettings

DEFAULT, _SYSTEM = "default", "kube-"
"""A namespace and the prefix of others that Kubernetes creates (kubernetes.io, Namespaces: initial namespaces)."""


@dataclass(frozen=True)
class _Part:
    """A part of the platform with a namespace. Fields: the setting, the name, its owner for messages, and whether the
    stack creates the namespace."""

    path: Path
    namespace: str
    owner: str
    created: bool


def problems_of_namespaces(stack: StackSettings) -> Iterator[Problem]:
    """Namespaces of Kubernetes, and ones that two parts would own."""
    owners: dict[str, str] = {}
    for part in _parts(stack):
        if part.created and (part.namespace == DEFAULT or part.namespace.startswith(_SYSTEM)):
            message = (
                f"namespace {part.namespace!r} belongs to Kubernetes, and the stack would own {part.owner} in it: set "
                "another namespace"
            )
            yield Problem(part.path, part.namespace, message, "reserved-namespace")
        elif part.namespace in owners:
            message = f"namespace {part.namespace!r} is that of {owners[part.namespace]}: set another namespace"
            yield Problem(part.path, part.namespace, message, "reserved-namespace")
        if part.path[0] != "redis":  # problems_of_redis compares it with the tenants
            owners.setdefault(part.namespace, part.owner)
    yield from _of_tenants(stack, owners)


def _parts(stack: StackSettings) -> Iterator[_Part]:
    if stack.platform is not None:
        return
    yield _Part(
        ("operator", "namespace"), stack.operator.namespace, "the operator", stack.operator.install == "manifests"
    )
    if stack.scheduler:
        backend, program = stack.scheduler.backend, stack.scheduler.configured
        path = ("scheduler", backend, "namespace")
        yield _Part(path, program.namespace, backend.capitalize(), program.install == "manifests")
    if stack.prometheus_namespace:
        yield _Part(("monitoring", "namespace"), stack.prometheus_namespace, "Prometheus", True)
    if stack.log_store_namespace:
        yield _Part(("logs", "namespace"), stack.log_store_namespace, "the log store", True)
    redis = stack.redis
    # Without a namespace of its own, or with the operator's, Redis is beside the operator.
    if redis and redis.mode != "external" and redis.namespace not in (None, stack.operator.namespace):
        yield _Part(("redis", "namespace"), str(redis.namespace), "Redis", True)


def _of_tenants(stack: StackSettings, owners: dict[str, str]) -> Iterator[Problem]:
    watched = stack.operator.watch_namespaces
    for index, tenant in enumerate(stack.tenants):
        name, path = tenant.namespace_name, namespace_setting(index, tenant)
        if name in owners or name == stack.operator.namespace or name.startswith(_SYSTEM):
            owner = owners.get(name, "the operator" if name == stack.operator.namespace else "Kubernetes")
            message = f"namespace {name!r} belongs to {owner}: set another namespace"
            yield Problem(path, name, message, "reserved-namespace")
        elif name == DEFAULT and tenant.create_namespace:
            message = (
                f"namespace {name!r} is from Kubernetes: set another, or createNamespace: false to leave it unchanged"
            )
            yield Problem(path, name, message, "reserved-namespace")
        elif watched and name not in watched:
            message = f"namespace {name!r} is not in operator.watchNamespaces ({', '.join(watched)}): add it there"
            yield Problem(path, name, message, "unwatched-namespace")


def namespace_setting(index: int, tenant: TenantSettings) -> Path:
    return ("tenants", index, "namespace" if tenant.namespace else "name")
