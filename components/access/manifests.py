"""Renders personas and accounts into Roles, bindings and ServiceAccounts. Pure functions."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from components.access.personas import (
    CLAIMS,
    CLUSTER_ADMIN,
    CLUSTER_ADMIN_INSIDE,
    EDIT,
    LOCAL_CODE,
    RAY_DEPLOYER,
    RAY_JOB_SUBMITTER,
    RAY_PORT_FORWARDER,
    RAY_USER,
    VIEW,
    NamedCluster,
    RayDeployerSettings,
    RayUserSettings,
    Rule,
    Subject,
    itself,
    ray_cluster_admin,
    redis_admin,
    run_of,
    scheduler_admin,
    use_of,
)
from components.bodies import in_namespace
from components.redis.connection import NAME as REDIS
from core.body import Body

RBAC = "rbac.authorization.k8s.io"
API_VERSION = f"{RBAC}/v1"

PREFIX = "ray-platform:"
"""Prefix of the names of roles. KubeRay names a Role after each RayCluster, whose name cannot have a colon."""

AUTH_DELEGATOR = "system:auth-delegator"
"""Kubernetes' own ClusterRole: may create TokenReviews and SubjectAccessReviews. Nothing else."""

AGGREGATED = {"view": VIEW, "edit": EDIT}
"""Rules that are added to Kubernetes' own roles, by role name."""


@dataclass(frozen=True)
class Grant:
    """A Role and its subjects."""

    name: str
    """Name without the prefix; unique in its namespace."""

    rules: Sequence[Rule]

    subjects: Sequence[Subject]


def service_account(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def role(name: str, rules: Sequence[Rule], kind: str = "Role") -> Body:
    """A Role, or a ClusterRole by `kind`."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def role_binding(name: str, role_name: str, subjects: Sequence[Body], kind: str = "Role") -> Body:
    """The RoleBinding of a Role, or by `kind` the ClusterRoleBinding of a ClusterRole."""
    return {
        "apiVersion": API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


def account(name: str, namespace: str) -> Body:
    """A ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def subject(configured: Subject) -> Body:
    """A `Subject` as the subject of a binding."""
    kind, _, name = configured.partition(":")
    if kind == "serviceAccount":
        namespace, _, name = name.partition("/")
        return account(name, namespace)
    return {"apiGroup": RBAC, "kind": kind.capitalize(), "name": name}


def bodies(grant: Grant, kind: str = "Role") -> dict[str, Body]:
    """A grant's Role and RoleBinding, or by `kind` its ClusterRole and ClusterRoleBinding."""
    name = f"{PREFIX}{grant.name}"
    return {
        "role": role(name, grant.rules, kind),
        "role-binding": role_binding(name, name, [subject(each) for each in grant.subjects], kind),
    }


def aggregated(to: str) -> Body:
    """A ClusterRole that Kubernetes aggregates into its own role `to`, and into roles that include that role."""
    body = role(f"{PREFIX}aggregate-to-{to}", AGGREGATED[to], "ClusterRole")
    body["metadata"]["labels"] = {f"rbac.authorization.k8s.io/aggregate-to-{to}": "true"}
    return body


def cluster_admin(subjects: Sequence[Subject]) -> Grant:
    """The rights of cluster admins in the whole cluster."""
    return Grant("cluster-admin", CLUSTER_ADMIN, subjects)


def cluster_admin_inside(subjects: Sequence[Subject], namespace: str, *, redis: bool) -> dict[str, Body]:
    """Their additional rights in the operator's namespace, or in that of Redis, by part. `redis`: whether the shared
    Redis is there."""
    rules = (*CLUSTER_ADMIN_INSIDE, *(redis_admin(REDIS) if redis else ()))
    return _inside("cluster-admin", rules, subjects, namespace)


def admin_of_scheduler(subjects: Sequence[Subject], namespace: str, configuration: str) -> dict[str, Body]:
    """Their additional rights in the namespace of Volcano or Kueue, by part. `configuration`: name of its ConfigMap."""
    return _inside("scheduler-admin", scheduler_admin(configuration), subjects, namespace)


def _inside(name: str, rules: Sequence[Rule], subjects: Sequence[Subject], namespace: str) -> dict[str, Body]:
    made = bodies(Grant(name, rules, subjects)) if subjects else {}
    return {part: in_namespace(body, namespace) for part, body in made.items()}


def cluster_access(
    admins: Sequence[Subject], operator_namespace: str, *, owns_kinds: bool, redis: bool = False
) -> dict[str, Body]:
    """The roles of cluster admins, and the rules for KubeRay's kinds in Kubernetes' own roles, by part.

    `owns_kinds`: whether the stack installs these kinds. Only then Kubernetes' own roles get rules. `redis`: whether
    the shared Redis is in the operator's namespace.
    """
    made = {f"aggregate-to-{to}": aggregated(to) for to in AGGREGATED} if owns_kinds else {}
    if not admins:
        return made
    everywhere = bodies(cluster_admin(admins), "ClusterRole")
    inside = cluster_admin_inside(admins, operator_namespace, redis=redis)
    return {
        **made,
        **{f"cluster-admin-{part}": body for part, body in everywhere.items()},
        **{f"cluster-admin-of-the-operator-{part}": body for part, body in inside.items()},
    }


def tenant_access(
    namespace: str,
    *,
    admins: Sequence[Subject],
    users: Sequence[RayUserSettings],
    clusters: Sequence[NamedCluster],
    accounts: Sequence[str],
    ingresses: bool,
    templates: Sequence[str],
    with_code: Sequence[str] = (),
) -> dict[str, Body]:
    """The access objects of a tenant's namespace, by part: accounts and roles.

    `accounts`: those to create for
    RayClusters. `ingresses`: whether admins may create Ingresses. `templates`: names of the tenant's job templates.
    `with_code`: of those whose runs bring their code.
    """
    made = {f"account:{each}": in_namespace(service_account(each), namespace) for each in accounts}
    grants = tenant_grants(admins, users, clusters, ingresses, templates, with_code)
    for grant in [*grants, *pods_grants(clusters, namespace)]:
        for part, body in bodies(grant).items():
            made[f"{grant.name}-{part}"] = in_namespace(body, namespace)
    for cluster in clusters:
        if cluster.accounts:
            made[f"token-review:{cluster.name}"] = token_review(cluster, namespace)
    return made


_PERSONAS = ("ray-cluster-admin", "ray-user")


def tenant_grants(
    admins: Sequence[Subject],
    users: Iterable[RayUserSettings],
    clusters: Sequence[NamedCluster],
    ingresses: bool = False,
    templates: Sequence[str] = (),
    with_code: Sequence[str] = (),
) -> list[Grant]:
    """The Roles in a tenant's namespace; none is without subjects.

    A persona's Role includes what exactly the same subjects may do besides, so that an ordinary tenant has two.
    """
    users = list(users)
    running = {each: [user.subject for user in users if user.runs(each)] for each in templates}
    bringing = [*admins, *itertools.chain(*(running[each] for each in with_code))] if with_code else []
    submitting = [user.subject for user in users if user.submit_jobs]
    using = {
        cluster.name: [user.subject for user in users if user.clusters is None or cluster.name in user.clusters]
        for cluster in clusters
    }
    grants = [
        Grant("ray-cluster-admin", ray_cluster_admin(clusters, ingresses), admins),
        Grant("ray-user", RAY_USER, [user.subject for user in users]),
        Grant("ray-port-forwarder", RAY_PORT_FORWARDER, _each_once(*using.values())),
        *(Grant(f"ray-user:{cluster.name}", use_of([cluster]), using[cluster.name]) for cluster in clusters),
        Grant("ray-job-submitter", RAY_JOB_SUBMITTER, _each_once(submitting, *running.values())),
        *(Grant(f"ray-job-template:{each}", run_of(each), subjects) for each, subjects in running.items()),
        Grant("ray-local-code", LOCAL_CODE, _each_once(bringing)),
    ]
    made: dict[str, Grant] = {}
    for grant in grants:
        same = (one for one in made.values() if one.name in _PERSONAS and set(one.subjects) == set(grant.subjects))
        whole = next(same, None)
        made[(whole or grant).name] = replace(whole, rules=[*whole.rules, *grant.rules]) if whole else grant
    return [grant for grant in made.values() if grant.subjects]


def _each_once(*subjects: Iterable[Subject]) -> list[Subject]:
    return list(dict.fromkeys(itertools.chain(*subjects)))


def pods_grants(clusters: Iterable[NamedCluster], namespace: str) -> list[Grant]:
    """The Roles of RayClusters whose processes authenticate to each other by ServiceAccount tokens."""
    return [
        Grant(
            f"pods:{cluster.name}", itself(cluster), [f"serviceAccount:{namespace}/{name}" for name in cluster.accounts]
        )
        for cluster in clusters
        if cluster.accounts
    ]


def token_review(cluster: NamedCluster, namespace: str) -> Body:
    """The ClusterRoleBinding that allows the processes of a RayCluster to review tokens."""
    name = f"{PREFIX}token-review:{namespace}:{cluster.name}"
    subjects = [account(each, namespace) for each in cluster.accounts]
    return role_binding(name, AUTH_DELEGATOR, subjects, "ClusterRole")


def ray_deployer(settings: RayDeployerSettings, namespace: str) -> dict[str, Body]:
    """The account that a tenant's RayClusters run as, its Role and its RoleBinding."""
    return {
        "service-account": service_account(settings.service_account),
        "role": role(settings.role, [*RAY_DEPLOYER, *(CLAIMS if settings.persistent_volume_claims else ())]),
        "role-binding": role_binding(
            settings.role_binding, settings.role, [account(settings.service_account, namespace)]
        ),
    }
