"""The rules, a family to a file."""

import itertools

from ..rule import Rule
from . import images, jobs, namespaces, network, pods, queues, ray, ray_scaling, ray_spec, rbac, redis, stack, tolerance

FAMILIES = {
    "ray": ray,
    "ray_spec": ray_spec,
    "ray_scaling": ray_scaling,
    "tolerance": tolerance,
    "redis": redis,
    "queues": queues,
    "jobs": jobs,
    "pods": pods,
    "images": images,
    "network": network,
    "rbac": rbac,
    "namespaces": namespaces,
    "stack": stack,
}
"""By name, in the order in which the reference shows them."""

RULES: tuple[Rule, ...] = tuple(
    itertools.chain.from_iterable(
        (each for each in vars(module).values() if isinstance(each, Rule)) for module in FAMILIES.values()
    )
)
"""All rules."""

BY_ID = {each.id: each for each in RULES}
