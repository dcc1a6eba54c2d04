"""Validation between the parts of a stack file: names, references, and RayClusters that KubeRay accepts."""

from collections.abc import Iterable, Iterator

from pydantic.alias_generators import to_camel

from components.network.rules import ingress_problems
from core.findings import place
from core.problems import Path, Problem

from .admission import problems_of_admission
from .cluster_rules import problems_of_clusters
from .environment.part import problems_of_split
from .planning.overcommitment import overcommitments
from .planning.plan import plan_of
from .queues import problems_of_scheduling
from .redis import problems_of_redis
from .settings import StackSettings, TenantSettings
from .tenant_only import problems_of_platform

_OF_A_NEW_NAMESPACE = {"owner", "cost_center", "labels", "pod_security"}
"""Settings of a tenant that are only possible for a namespace that the stack creates."""


def problems_of(stack: StackSettings) -> list[Problem]:
    """All problems between the parts of a stack."""
    found = [
        *problems_of_platform(stack),
        *_names(stack),
        *_namespaces(stack),
        *_not_made(stack),
        *_people(stack),
        *_ingresses(stack),
        *problems_of_redis(stack),
        *problems_of_split(stack),
        *problems_of_scheduling(stack),
        *problems_of_admission(stack),
        *problems_of_clusters(stack),
    ]
    if stack.capacity.overcommitment == "error" and not found:
        found += overcommitments(plan_of(stack))
    return found


def _names(stack: StackSettings) -> Iterator[Problem]:
    tenants = list(enumerate(stack.tenants))
    yield from _repeated((("nodes", index, "pool"), pool.pool) for index, pool in enumerate(stack.nodes))
    yield from _repeated((("tenants", index, "name"), tenant.name) for index, tenant in tenants)
    named_once = {tenant.name: (index, tenant) for index, tenant in reversed(tenants)}
    yield from _repeated(
        (_namespace(index, tenant), tenant.namespace_name) for index, tenant in reversed(named_once.values())
    )
    for index, tenant in tenants:
        named: list[tuple[Path, str]] = [
            *((("tenants", index, "clusters", at, "name"), cluster.name) for at, cluster in enumerate(tenant.clusters)),
            *((("tenants", index, "clusterNames", at), name) for at, name in enumerate(tenant.cluster_names)),
        ]
        yield from _repeated(named)


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, name in named:
        if name in first:
            message = f"{name!r} is used already, in {place(first[name][:-1])}: give each a name of its own"
            yield Problem(path, name, message, "repeated-name")
        first.setdefault(name, path)


def _people(stack: StackSettings) -> Iterator[Problem]:
    """Each subject is listed once, so that no other place gives it more or fewer rights."""
    admins = enumerate(stack.access.cluster_admins)
    yield from _named_twice((("access", "clusterAdmins", at), subject) for at, subject in admins)
    for index, tenant in enumerate(stack.tenants):
        subjects: list[tuple[Path, str]] = [
            *((("tenants", index, "admins", at), subject) for at, subject in enumerate(tenant.admins)),
            *((("tenants", index, "users", at, "subject"), user.subject) for at, user in enumerate(tenant.users)),
        ]
        yield from _named_twice(subjects)
        yield from (problem.below(("tenants", index)) for problem in _users(tenant))


def _named_twice(subjects: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, subject in subjects:
        if subject in first:
            message = (
                f"{subject!r} is named already, in {place(first[subject])}: say there all that they may do, and leave "
                "it out here (admins may do all that users may)"
            )
            yield Problem(path, subject, message, "repeated-subject")
        first.setdefault(subject, path)


def _users(tenant: TenantSettings) -> Iterator[Problem]:
    names = [*(cluster.name for cluster in tenant.clusters), *tenant.cluster_names]
    for at, user in enumerate(tenant.users):
        for position, name in enumerate(user.clusters or ()):
            if name not in names:
                known = f"use one of {', '.join(names)}, or " if names else ""
                message = f"tenant {tenant.name!r} has no cluster {name!r}: {known}add it to clusters or clusterNames"
                yield Problem(("users", at, "clusters", position), name, message, "unknown-cluster")
        if user.submit_jobs and user.clusters == ():
            message = "submitJobs without a cluster to submit to: name one in clusters, or remove submitJobs"
            yield Problem(("users", at, "submitJobs"), True, message, "jobs-without-cluster")


def _namespace(index: int, tenant: TenantSettings) -> Path:
    """The setting of a tenant's namespace."""
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


def _ingresses(stack: StackSettings) -> Iterator[Problem]:
    for index, tenant in enumerate(stack.tenants):
        found = ingress_problems(tenant.network, stack.network)
        yield from (problem.below(("tenants", index, "network")) for problem in found)


def _not_made(stack: StackSettings) -> Iterator[Problem]:
    """Settings of a namespace that the stack does not create."""
    for index, tenant in enumerate(stack.tenants):
        for field in sorted(_OF_A_NEW_NAMESPACE & tenant.model_fields_set) if not tenant.create_namespace else ():
            message = (
                "createNamespace is false, so the namespace stays as it is: remove this key, and label the namespace "
                "where it is made"
            )
            yield Problem(("tenants", index, to_camel(field)), getattr(tenant, field), message, "namespace-not-made")
