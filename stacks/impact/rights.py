"""Who may do what, before and after an edit. Pure functions."""

from collections import defaultdict
from collections.abc import Iterator

from components.access.manifests import (
    Grant,
    cluster_admin,
    cluster_admin_of_the_operator,
    pods_grants,
    tenant_grants,
)
from components.access.personas import RAY_DEPLOYER

from ..access import named_clusters
from ..settings import StackSettings
from .effects import Effect, ObjectImpact, Verdict, impact

_EVERYWHERE = "the whole cluster"

Right = tuple[str, str, str]
"""Where, what (`secrets training`), and the verb."""

Rights = dict[str, set[Right]]
"""By who has them."""


def of_rights(before: StackSettings, after: StackSettings) -> Iterator[ObjectImpact]:
    """For everybody whose rights are others: what is gained, and what is lost."""
    had, has = rights(before), rights(after)
    for who in dict.fromkeys([*had, *has]):
        gained, lost = has.get(who, set()) - had.get(who, set()), had.get(who, set()) - has.get(who, set())
        effects = [Effect(Verdict.IN_PLACE, f"gains in {where}: {what}") for where, what in _listed(gained)]
        effects += [Effect(Verdict.IN_PLACE, f"loses in {where}: {what}") for where, what in _listed(lost)]
        yield impact("Rights of", who, effects)


def rights(stack: StackSettings) -> Rights:
    """What everybody may do whom the stack gives something."""
    found: Rights = defaultdict(set)
    for where, grant in () if stack.platform else _grants(stack):
        for subject in grant.subjects:
            found[subject] |= {
                (where, _object(resource, group, name), verb)
                for rule in grant.rules
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
                for name in rule.get("resourceNames", [""])
            }
    return found


def _grants(stack: StackSettings) -> Iterator[tuple[str, Grant]]:
    admins = stack.access.cluster_admins
    yield _EVERYWHERE, cluster_admin(admins)
    yield f"namespace {stack.operator.namespace}", cluster_admin_of_the_operator(admins)
    for tenant in stack.tenants:
        where, there = f"namespace {tenant.namespace_name}", tenant.namespace_name
        clusters = tuple(named_clusters(stack, tenant))
        everybody = tuple(dict.fromkeys([*admins, *tenant.admins]))
        for grant in tenant_grants(everybody, tenant.users, clusters, bool(tenant.network.ingress)):
            yield where, grant
        for grant in pods_grants(clusters, there):
            yield where, grant
        if deployer := tenant.ray_deployer:
            account = f"serviceAccount:{there}/{deployer.service_account}"
            yield where, Grant(deployer.role, RAY_DEPLOYER, [account])


def _object(resource: str, group: str, name: str) -> str:
    kind = f"{resource}.{group}" if group else resource
    return f"{kind} {name}" if name else kind


def _listed(some: set[Right]) -> Iterator[tuple[str, str]]:
    """Where, and what with its verbs: `get, list pods; get secrets training`."""
    verbs: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for where, what, verb in sorted(some):
        verbs[where][what].append(verb)
    for where, things in verbs.items():
        together: dict[str, list[str]] = defaultdict(list)
        for what, may in things.items():
            together[", ".join(may)].append(what)
        yield where, "; ".join(f"{may} {', '.join(what)}" for may, what in together.items())
