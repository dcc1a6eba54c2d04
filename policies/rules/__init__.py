"""The rules, with one file for each family."""

import itertools

from policies.rule import Rule
from policies.rules import (
    accepted,
    cml,
    images,
    jobs,
    namespaces,
    network,
    plain_secrets,
    pod_security,
    pods,
    queues,
    ray,
    ray_nodes,
    ray_scaling,
    ray_spec,
    rbac,
    redis,
    services,
    stack,
    tolerance,
)

FAMILIES = {
    "ray": ray,
    "ray_nodes": ray_nodes,
    "ray_spec": ray_spec,
    "ray_scaling": ray_scaling,
    "tolerance": tolerance,
    "redis": redis,
    "queues": queues,
    "jobs": jobs,
    "accepted": accepted,
    "pod_security": pod_security,
    "pods": pods,
    "images": images,
    "network": network,
    "services": services,
    "rbac": rbac,
    "namespaces": namespaces,
    "plain_secrets": plain_secrets,
    "cml": cml,
    "stack": stack,
}
"""The families by name, in the order of the reference."""

RULES: tuple[Rule, ...] = tuple(
    itertools.chain.from_iterable(
        (each for each in vars(module).values() if isinstance(each, Rule)) for module in FAMILIES.values()
    )
)
"""All rules."""

BY_ID = {each.id: each for each in RULES}

ENFORCEABLE = {each.id: each for each in RULES if each.cel}
"""The rules that the API server can enforce, by id."""
