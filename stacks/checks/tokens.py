"""Secrets that users of a RayCluster may read because they have its token's name, and accounts of the stack that a
RayCluster would have. Pure functions.

KubeRay gives a RayCluster a Secret with its token and an account of its name, and uses those that exist. RBAC lets its
users read the Secret of that name.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from components.job_template.manifests import account_name
from components.payloads.idle_termination import NAME as IDLE_TERMINATION
from components.payloads.run_history import NAME as RUN_HISTORY
from components.redis.connection import CERTIFICATE_SECRET, SECRET, USERS_SECRET
from components.tls.manifests import secret_name
from core.problems import Path, Problem, Problems
from core.values import inside
from kuberay.formats import derived
from stacks.objects.access import named_cluster
from stacks.objects.ray_clusters import rendered
from stacks.settings import StackSettings, TenantSettings


def problems_of_tokens(stack: StackSettings) -> Iterator[Problem]:
    """RayClusters whose token is a Secret with another use, or that of other users, or whose account is the stack's."""
    for index, tenant in enumerate(stack.tenants):
        tokens = list(_tokens(stack, tenant))
        found = (*_names(stack, tenant, tokens), *_accounts(tenant), *_shared(tenant, tokens))
        yield from (each.below(("tenants", index)) for each in found)


_Token = tuple[Path, str, str]


def _tokens(stack: StackSettings, tenant: TenantSettings) -> Iterator[_Token]:
    """Of each RayCluster with a token: the place of its name, the RayCluster's name, and the name of the Secret."""
    for at, cluster in enumerate(tenant.clusters):
        try:
            secret = named_cluster(cluster.name, rendered(stack, tenant, cluster)["spec"]).secret
        except Problems:
            continue
        named = cluster.auth_options and cluster.auth_options.secret_name == secret
        place: Path = ("authOptions", "secretName") if named else ("name",)
        if secret:
            yield ("clusters", at, *place), cluster.name, secret
    yield from ((("clusterNames", at), name, derived(name)) for at, name in enumerate(tenant.cluster_names))


def _names(stack: StackSettings, tenant: TenantSettings, tokens: Sequence[_Token]) -> Iterator[Problem]:
    used = _used(stack, tenant)
    for path, _, secret in tokens:
        if secret in used:
            message = (
                f"{secret!r} is the name of {used[secret]}, which KubeRay would use for the RayCluster, and its users "
                "may read: use another"
            )
            yield Problem(path, secret, message, "repeated-name")


def _used(stack: StackSettings, tenant: TenantSettings) -> dict[str, str]:
    """Secrets with a use of their own, each with the words for it."""
    used: dict[str, str] = {}
    for cluster in tenant.all_clusters:
        try:
            body = rendered(stack, tenant, cluster)
        except Problems:
            continue
        used |= dict.fromkeys(_mounted(body["spec"]), "a Secret of pods")
    used |= {
        secret_name(each.name): f"the Secret with the authority of {each.name!r}"
        for each in tenant.all_clusters
        if each.tls
    }
    if stack.redis:
        here = (USERS_SECRET, CERTIFICATE_SECRET) if stack.redis.scope == "perTenant" else ()
        used |= dict.fromkeys((SECRET, *here), "a Secret of Redis")
    for cluster in tenant.clusters:
        if cluster.ingress:
            used[cluster.ingress.tls_secret_name] = "the Secret of an Ingress"
    return used


def _mounted(value: Any) -> Iterator[str]:
    """Names of Secrets that pods mount, take variables from, or pull images with."""
    for path, name in inside(value):
        match path:
            case (
                (*_, "secretKeyRef" | "secretRef" | "secret", "name")
                | (*_, "secret", "secretName")
                | (*_, "imagePullSecrets", int(), "name")
            ) if isinstance(name, str):
                yield name


def _accounts(tenant: TenantSettings) -> Iterator[Problem]:
    """Accounts of the stack's own programs, which may do more than a RayCluster."""
    taken = {account_name(each.name): "of a schedule" for each in tenant.job_templates if each.cron}
    if any(each.idle_termination_options for each in tenant.clusters):
        taken[IDLE_TERMINATION] = "of idle termination"
    if tenant.run_history:
        taken[RUN_HISTORY] = "of the run history"
    named: list[tuple[Path, str]] = [
        *((("clusterNames", at), derived(name)) for at, name in enumerate(tenant.cluster_names)),
    ]
    for at, cluster in enumerate(tenant.clusters):
        named.append((("clusters", at, "name"), derived(cluster.name)))
        if cluster.service_account:
            named.append((("clusters", at, "serviceAccount"), cluster.service_account))
    if tenant.ray_deployer:
        named.append((("rayDeployer", "serviceAccount"), tenant.ray_deployer.service_account))
    for path, account in named:
        if account in taken:
            message = f"{account!r} is the account {taken[account]}, which would be the RayCluster's, too: use another"
            yield Problem(path, account, message, "repeated-name")


def _shared(tenant: TenantSettings, tokens: Sequence[_Token]) -> Iterator[Problem]:
    """Users of one RayCluster who get the token of another with it."""
    first: dict[str, str] = {}
    for path, name, secret in tokens:
        other = first.setdefault(secret, name)
        differing = [
            user.subject
            for user in tenant.users
            if user.clusters is not None and (name in user.clusters) != (other in user.clusters)
        ]
        if differing:
            message = (
                f"is the token of RayCluster {other!r}, too, and {', '.join(differing)} may use one of the two: give "
                "each a token of its own, or both the same users"
            )
            yield Problem(path, secret, message, "shared-token")
