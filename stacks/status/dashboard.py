"""How somebody reaches a RayCluster's dashboard from outside Kubernetes. Pure functions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from components.ray_cluster.manifests import head_ports, head_service

from ..access import named_cluster
from .found import Body

TOKEN_KEY = "auth_token"  # noqa: S105 (a key, not a token)
"""Key of the Secret with a RayCluster's token (ray-operator/controllers/ray/utils/constant.go)."""


def kubectl(context: str | None) -> str:
    """The command for the cluster of that context."""
    return f"kubectl --context {shlex.quote(context)}" if context else "kubectl"


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


def lines(cluster: Body, found: Sequence[str], context: str | None) -> Iterator[str]:
    """The URL, or the command that makes one; then the command that prints the token, never the token itself."""
    metadata, spec = cluster["metadata"], cluster["spec"]
    command, namespace = kubectl(context), metadata["namespace"]
    if found:
        yield from dict.fromkeys(found)
    else:
        port = head_ports(spec)["dashboard"]
        yield f"http://localhost:{port}    # while this command runs:"
        yield f"{command} port-forward -n {namespace} service/{_service(cluster)} {port}"
    named = named_cluster(metadata["name"], spec)
    if named.secret:
        yield "# The dashboard asks for the token. This prints it:"
        yield (f"{command} get secret -n {namespace} {named.secret} -o jsonpath='{{.data.{TOKEN_KEY}}}' | base64 -d")
    elif named.accounts:
        yield "# The dashboard asks for a token of Kubernetes: one of an account that may `ray:write` this RayCluster."
        yield f"{command} create token -n {namespace} SERVICE_ACCOUNT"


def _service(cluster: Body) -> str:
    """Name of the head's Service, as KubeRay reports it once it exists."""
    reported = ((cluster.get("status") or {}).get("head") or {}).get("serviceName")
    return str(reported or head_service(cluster["metadata"]["name"], cluster["spec"]))
