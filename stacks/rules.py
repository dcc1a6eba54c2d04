"""What has to be right between the parts of a stack file: names, references, and clusters that KubeRay will take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from components.kuberay import OperatorContext, validate
from components.problems import Path, Problem, Problems
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.origin import said_at
from components.tenant.rules import beyond_limits, beyond_quota

from .findings import place

if TYPE_CHECKING:
    from components.nodes import NodePool
    from components.ray_cluster.settings import RayClusterSettings

    from .settings import StackSettings, TenantSettings


_OF_A_NEW_NAMESPACE = {"owner", "cost_center", "labels", "pod_security"}
"""Settings of a tenant that only a namespace that the stack makes can have."""


def problems_of(stack: StackSettings) -> list[Problem]:
    """All that is wrong between the parts of a stack."""
    return [*_names(stack), *_namespaces(stack), *_not_ours(stack), *_clusters(stack)]


def _names(stack: StackSettings) -> Iterator[Problem]:
    tenants = list(enumerate(stack.tenants))
    yield from _repeated((("nodes", index, "pool"), pool.pool) for index, pool in enumerate(stack.nodes))
    yield from _repeated((("tenants", index, "name"), tenant.name) for index, tenant in tenants)
    named_once = {tenant.name: (index, tenant) for index, tenant in reversed(tenants)}
    yield from _repeated(
        (_namespace(index, tenant), tenant.namespace_name) for index, tenant in reversed(named_once.values())
    )
    for index, tenant in tenants:
        clusters = enumerate(tenant.clusters)
        yield from _repeated((("tenants", index, "clusters", at, "name"), cluster.name) for at, cluster in clusters)


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, name in named:
        if name in first:
            message = f"{name!r} is used already, in {place(first[name][:-1])}: give each a name of its own"
            yield Problem(path, name, message, "repeated-name")
        first.setdefault(name, path)


def _namespace(index: int, tenant: TenantSettings) -> Path:
    """Where a tenant's namespace is said."""
    return ("tenants", index, "namespace" if tenant.namespace else "name")


def _namespaces(stack: StackSettings) -> Iterator[Problem]:
    watched = stack.operator.watch_namespaces
    for index, tenant in enumerate(stack.tenants):
        name, path = tenant.namespace_name, _namespace(index, tenant)
        if name == stack.operator.namespace or name.startswith("kube-"):
            message = f"namespace {name!r} is the operator's or Kubernetes' own: set another namespace"
            yield Problem(path, name, message, "reserved-namespace")
        elif watched and name not in watched:
            message = f"namespace {name!r} is not in operator.watchNamespaces ({', '.join(watched)}): add it there"
            yield Problem(path, name, message, "unwatched-namespace")


def _not_ours(stack: StackSettings) -> Iterator[Problem]:
    """What is said of a namespace that is not made."""
    for index, tenant in enumerate(stack.tenants):
        if tenant.create_namespace:
            continue
        for field in sorted(_OF_A_NEW_NAMESPACE & tenant.model_fields_set):
            message = (
                "createNamespace is false, so the namespace stays as it is: remove this key, and label the namespace "
                "where it is made"
            )
            yield Problem(("tenants", index, to_camel(field)), getattr(tenant, field), message, "namespace-not-made")


def _clusters(stack: StackSettings) -> Iterator[Problem]:
    operator = OperatorContext(
        stack.operator.version, stack.operator.batch_scheduler, dict(stack.operator.feature_gates)
    )
    for index, tenant in enumerate(stack.tenants):
        bodies: list[dict[str, Any]] = []
        found: list[Problem] = []
        for at, cluster in enumerate(tenant.clusters):
            body, refused = _refused(cluster, stack.nodes, tenant.ray_deployer.service_account, operator)
            bodies.append(body)
            found += [problem.below(("clusters", at)) for problem in refused]
        if not found:
            found = list(_beyond(tenant, stack.nodes, bodies))
        yield from (problem.below(("tenants", index)) for problem in found)


def _refused(
    cluster: RayClusterSettings, pools: tuple[NodePool, ...], account: str, operator: OperatorContext
) -> tuple[dict[str, Any], list[Problem]]:
    """The cluster's body, and what cannot be made of it or would be refused by the API server or the operator."""
    try:
        body = ray_cluster(cluster, pools, account)
    except Problems as error:
        return {}, list(error.problems)
    return body, [_where_said(cluster, pools, body, problem) for problem in validate(body, operator)]


def _where_said(
    cluster: RayClusterSettings, pools: tuple[NodePool, ...], body: dict[str, Any], problem: Problem
) -> Problem:
    """A problem of a body as one of the cluster's settings."""
    path = said_at(cluster, pools, body["spec"], problem.path)
    # Where what was said is not what is refused, its author has to know what it became.
    derived = path[-1:] != problem.path[-1:]
    message = f"RayCluster {place(problem.path)}: {problem.message}" if derived else problem.message
    return Problem(path, problem.value, message, problem.rule)


def _beyond(tenant: TenantSettings, pools: tuple[NodePool, ...], bodies: list[dict[str, Any]]) -> Iterator[Problem]:
    """What of the tenant's clusters its quota and limits would refuse."""
    limits = tenant.limits_in_force
    found = list(beyond_limits(bodies, limits))
    if not found and tenant.quota:
        found = list(beyond_quota(bodies, tenant.quota, limits))
    for each in found:
        if each.cluster is None:
            yield each.problem.below(("quota",))
        else:
            at = each.cluster
            problem = _where_said(tenant.clusters[at], pools, bodies[at], each.problem)
            yield problem.below(("clusters", at))
