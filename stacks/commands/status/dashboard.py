"""How somebody reaches a dashboard from outside Kubernetes: of a RayCluster, and of Ray clusters that KubeRay does not
run (on Cloudera ML, and external clusters). Pure functions.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from components.cluster import Connection
from components.ray_cluster.manifests import TOKEN_KEY, head_service
from core.body import Body
from core.problems import in_one_line
from kuberay.ports import head_ports
from stacks.commands.status.targets import kubectl, needs_namespace
from stacks.objects.access import named_cluster

if TYPE_CHECKING:
    from components.cml.settings import CmlRayClusterSettings, CmlSettings
    from components.external_cluster.settings import ExternalClusterSettings
    from stacks.settings import StackSettings, TenantSettings

ASKS = "# The dashboard asks for the token. This prints it:"
"""The line before the command that prints a token."""


def urls(cluster: Body, ingresses: Iterable[Body]) -> Iterator[str]:
    """The URLs of the Ingresses that lead to the head of a RayCluster."""
    service = _service(cluster)
    for each in ingresses:
        spec = each["spec"]
        secure = {host for tls in spec.get("tls") or () for host in tls.get("hosts") or ()}
        for rule in spec.get("rules") or ():
            for path in (rule.get("http") or {}).get("paths") or ():
                if (path["backend"].get("service") or {}).get("name") == service and rule.get("host"):
                    shown = path.get("path") if path.get("path") not in (None, "/") else ""
                    yield f"{'https' if rule['host'] in secure else 'http'}://{rule['host']}{shown}"


def lines(cluster: Body, found: Sequence[str], connection: Connection) -> Iterator[str]:
    """The URL, or the command that makes one; then the command that prints the token, never the token itself."""
    metadata, spec = cluster["metadata"], cluster["spec"]
    within = ("-n", metadata["namespace"])
    if found:
        yield from map(in_one_line, dict.fromkeys(found))
    else:
        port = str(head_ports(spec)["dashboard"])
        yield f"http://localhost:{port}    # while this command runs:"
        yield kubectl(connection, "port-forward", *within, f"service/{_service(cluster)}", port)
    named = named_cluster(metadata["name"], spec)
    if named.secret:
        yield ASKS
        shown = f"jsonpath={{.data.{TOKEN_KEY}}}"
        yield f"{kubectl(connection, 'get', 'secret', *within, named.secret, '-o', shown)} | base64 -d"
    elif named.accounts:
        yield "# The dashboard asks for a token of Kubernetes: one of an account that may `ray:write` this RayCluster."
        yield kubectl(connection, "create", "token", *within, "SERVICE_ACCOUNT")


def _service(cluster: Body) -> str:
    """Name of the head's Service, as KubeRay reports it once it exists."""
    reported = ((cluster.get("status") or {}).get("head") or {}).get("serviceName")
    return str(reported or head_service(cluster["metadata"]["name"], cluster["spec"]))


def elsewhere(settings: StackSettings, stack: str, word: str, connection: Connection) -> Iterator[str]:
    """The URL of the cluster's dashboard, and where its token is; nothing if there is no such cluster. `word`: its
    name, or that of a job of the stack on it; for a tenant's external cluster also `<namespace>/<name>`.

    Raises NoSuchTargetError if several namespaces of the stack file have what an external cluster's name may mean.
    """
    namespace, _, name = word.rpartition("/")
    meant = [each for each in settings.tenants if namespace in ("", each.namespace_name) and name in _names(each)]
    words = {word, *(each.cluster for each in settings.jobs if each.name == word)}
    on_cml = [each for each in settings.cml.clusters if each.name in words] if settings.cml else []
    remote = [each for each in settings.external_clusters if each.name in words]
    if settings.cml and on_cml:
        yield from _on_cml(settings.cml, on_cml[0], stack)
    elif remote:
        yield f"{in_one_line(remote[0].dashboard_address)}    # as the machine of `up` reaches it"
        if remote[0].token_variable:
            yield f"# The dashboard asks for the token, which `up` reads from {remote[0].token_variable}."
    if on_cml or remote:
        # It has no namespace that could be written before its name.
        yield from (f"# Another one of this name: {each.namespace_name}/{name}" for each in meant)
        return
    external = [(each, one) for each in meant for one in each.external_clusters if one.name == name]
    if external and len(meant) > 1:
        raise needs_namespace(name, [each.namespace_name for each in meant])
    for tenant, cluster in external:
        yield from _external(cluster, tenant.namespace_name, connection)


def _names(tenant: TenantSettings) -> set[str]:
    """The names that `dashboard` knows in a tenant's namespace. Job templates are none: each run has its own name."""
    return {
        *(each.name for each in tenant.external_clusters),
        *(each.name for each in tenant.clusters),
        *(each.name for each in tenant.services),
        *(each.name for each in tenant.jobs if each.external_cluster is None),
        *(*tenant.cluster_names, *tenant.job_names, *tenant.service_names),
    }


def _external(cluster: ExternalClusterSettings, namespace: str, connection: Connection) -> Iterator[str]:
    yield f"{in_one_line(cluster.dashboard_address)}    # as pods in {namespace} reach it"
    if secret := cluster.token_secret:
        shown = f"go-template={{{{index .data {_quoted(secret.key)} | base64decode}}}}"
        yield ASKS
        yield kubectl(connection, "get", "secret", "-n", namespace, secret.name, "-o", shown)


def _on_cml(settings: CmlSettings, cluster: CmlRayClusterSettings, stack: str) -> Iterator[str]:
    from components.cml.manifests import head_url, nodes

    yield head_url(nodes(settings, cluster, stack))
    yield ASKS
    tokens = f"pulumi stack output cmlTokens --stack {shlex.quote(stack)} --show-secrets --json"
    yield f"{tokens} | jq -r {shlex.quote(f'.[{_quoted(cluster.name)}]')}"


def _quoted(text: str) -> str:
    return f'"{text}"'
