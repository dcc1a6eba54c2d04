"""How somebody reaches a RayCluster's dashboard from outside Kubernetes. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from components.cluster import Connection
from components.ray_cluster.manifests import TOKEN_KEY, head_ports, head_service
from core.problems import in_one_line
from stacks.commands.status.kubectl import kubectl
from stacks.commands.status.snapshot import Body
from stacks.objects.access import named_cluster

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
