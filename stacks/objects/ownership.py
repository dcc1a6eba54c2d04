"""Which resources of an environment each of its Pulumi stacks has. Pure functions."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from core.environment import environment_of, group_of, tenants_stack
from core.problems import Finding, Problem, StackFileError
from core.stack_file import PREFIX
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class Ownership:
    """The part of an environment that one Pulumi stack has."""

    groups: int = 0
    """The number of groups of tenants that the environment is split into; 0: it is one stack."""

    group: int | None = None
    """The stack's group of tenants; None: it is the environment's own stack."""

    @property
    def platform(self) -> bool:
        """Whether the stack has the cluster-wide resources."""
        return self.group is None

    def has(self, namespace: str) -> bool:
        return not self.groups or self.group == group_for(namespace, self.groups)

    def tenants(self, settings: StackSettings) -> tuple[TenantSettings, ...]:
        return tuple(tenant for tenant in settings.tenants if self.has(tenant.namespace_name))


@cache
def group_for(namespace: str, groups: int) -> int:
    """The group of a tenant's namespace, from 1.

    The group with the highest hash wins (rendezvous hashing), so that most tenants stay if the number of groups
    changes.
    """
    return max(range(1, groups + 1), key=lambda group: hashlib.sha256(f"{group}/{namespace}".encode()).digest())


def in_group(tenant: TenantSettings, group: int, settings: StackSettings) -> bool:
    return settings.split is not None and group_for(tenant.namespace_name, settings.split.stacks) == group


def ownership_of(settings: StackSettings, stack: str) -> Ownership:
    """The part of a stack file's environment that a stack has. Raises StackFileError if the environment has no such
    stack."""
    groups = settings.split.stacks if settings.split else 0
    group = group_of(stack)
    if group is not None and not 1 <= group <= groups:
        environment = environment_of(stack)
        has = f"is split into {groups} stacks of tenants" if groups else "is one stack"
        message = (
            f"stack {stack} would have a group of tenants, but {environment} {has}: run `ray-platform up "
            f"{environment}`, which knows its stacks"
        )
        raise StackFileError([Finding((f"{PREFIX}split",), None, message, "no-such-part")])
    return Ownership(groups, group)


def stacks_of(settings: StackSettings, environment: str) -> tuple[str, ...]:
    """Names of the environment's Pulumi stacks, the platform's first."""
    groups = settings.split.stacks if settings.split else 0
    return (environment, *(tenants_stack(environment, group) for group in range(1, groups + 1)))


def stack_of(namespace: str, settings: StackSettings, environment: str) -> str:
    """The stack that has the resources of a tenant's namespace."""
    return tenants_stack(environment, group_for(namespace, settings.split.stacks)) if settings.split else environment


def problems_of_split(stack: StackSettings) -> Iterator[Problem]:
    """Objects of the platform's stack in namespaces that only the tenants' stacks create."""
    if stack.split is None:
        return
    if stack.operator.watch_namespaces:
        message = (
            "the operator would need a Role in each of these namespaces before it starts, and with ray-platform:split "
            "tenants' namespaces are created after it: remove watchNamespaces, or remove split"
        )
        yield Problem(("operator", "watchNamespaces"), None, message, "split")
    redis = stack.redis
    if redis and redis.mode != "external" and redis.scope == "shared" and stack.tenants:
        message = (
            "one Redis for all tenants needs the password of each in the platform's stack, and with ray-platform:split "
            "tenants are in separate stacks: set scope: perTenant or mode: external, or remove split"
        )
        yield Problem(("redis", "scope"), redis.scope, message, "split")
