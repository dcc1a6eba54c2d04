"""The Deployment that suspends a tenant's idle RayClusters, its account, its rights and its usage of a quota. Pure
functions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from components import payloads
from components.access.manifests import PREFIX, account, role, role_binding, service_account
from components.access.personas import RAY_GROUP, RAY_WRITE, NamedCluster, rule
from components.payloads.idle_termination import NAME, TOKEN_FILE
from components.ray_cluster.manifests import TOKEN_KEY, head_service
from components.ray_cluster.pods import PodIdentity, container, template, with_image_alone
from components.ray_cluster.settings import RayClusterSettings
from components.tenant.demand import Demand, defaults, group_of
from components.tenant.settings import LimitSettings
from core.body import Body
from kuberay.ports import head_ports

LABELS = {"app.kubernetes.io/name": NAME}
"""Labels of the pod."""


_TOKENS = "/etc/ray/tokens"
"""Folder with the token of each RayCluster, by its name."""

_AMOUNTS: Body = {
    "limits": {"cpu": "500m", "memory": "256Mi"},
    "requests": {"cpu": "10m", "memory": "64Mi"},
}
"""Measured with Python 3.11: 20 MiB between two looks, and 40 MiB while it reads a list of 10,000 actors."""


@dataclass(frozen=True)
class Watched:
    """A RayCluster with `idleTerminationOptions`."""

    settings: RayClusterSettings
    """With the tenant's defaults."""

    spec: Body
    """As rendered."""

    access: NamedCluster
    """How its dashboard authenticates callers."""


def objects(watched: Sequence[Watched], namespace: str) -> dict[str, Body]:
    """The objects of a namespace, by part; empty if no RayCluster is watched."""
    if not watched:
        return {}
    name = f"{PREFIX}idle-termination"
    return {
        "service-account": service_account(NAME),
        "role": role(name, _rights([each.access for each in watched])),
        "role-binding": role_binding(name, name, [account(NAME, namespace)]),
        "deployment": _deployment(watched, namespace),
    }


def _rights(clusters: Sequence[NamedCluster]) -> list[dict[str, Any]]:
    """Read and patch these RayClusters; list RayJobs, one of which may need them; use the dashboards of those that ask
    for tokens of Kubernetes. An admission policy leaves of `patch` only what suspends or scales."""
    with_kubernetes_tokens = [each.name for each in clusters if each.accounts]
    return [
        rule(RAY_GROUP, ["rayclusters"], ["get", "patch"], [each.name for each in clusters]),
        rule(RAY_GROUP, ["rayjobs"], ["list"]),
        *([rule(RAY_GROUP, ["rayclusters"], [RAY_WRITE], with_kubernetes_tokens)] if with_kubernetes_tokens else []),
    ]


def _deployment(watched: Sequence[Watched], namespace: str) -> Body:
    first = watched[0].settings
    plain = with_image_alone(first, tls=None)
    program = container(plain, NAME, first.head.image, {}, {})
    program["command"] = ["python", "-c", payloads.text("idle_termination"), json.dumps(_argument(watched, namespace))]
    program["resources"] = _AMOUNTS
    program["securityContext"] = {**program.get("securityContext", {}), "readOnlyRootFilesystem": True}
    volumes: Body = {}
    if secrets := {each.access.name: each.access.secret for each in watched if each.access.secret}:
        program["volumeMounts"] = [{"name": "tokens", "mountPath": _TOKENS, "readOnly": True}]
        volumes = {"volumes": [{"name": "tokens", "projected": {"sources": _sources(secrets)}}]}
    pod = template(plain, program, PodIdentity(NAME), None)["spec"]
    pod = {**pod, **volumes, "restartPolicy": "Always", "enableServiceLinks": False}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            # Two at a time would do no harm, and need a second pod's quota.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(LABELS)},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": pod},
        },
    }


def _argument(watched: Sequence[Watched], namespace: str) -> Body:
    """The argument of the payload."""
    clusters = []
    for each in watched:
        options = each.settings.idle_termination_options
        assert options
        service, port = head_service(each.settings.name, each.spec), head_ports(each.spec)["dashboard"]
        own = f"{_TOKENS}/{each.access.name}" if each.access.secret else None
        clusters.append(
            {
                "name": each.settings.name,
                "url": f"http://{service}.{namespace}.svc:{port}",
                "timeoutSeconds": options.timeout_seconds,
                "tokenFile": TOKEN_FILE if each.access.accounts else own,
            }
        )
    return {"namespace": namespace, "clusters": clusters}


def _sources(secrets: dict[str, str]) -> list[Body]:
    """Each token as a file with the RayCluster's name. KubeRay creates the Secret with the RayCluster."""
    return [
        {"secret": {"name": secret, "optional": True, "items": [{"key": TOKEN_KEY, "path": cluster}]}}
        for cluster, secret in secrets.items()
    ]


def demand_of_program(body: Mapping[str, Any], limits: LimitSettings | None) -> Demand:
    """The usage of its Deployment, one pod at a time; paths are in the body of the Deployment."""
    name = body["metadata"]["name"]
    pod = group_of(("spec",), name, body["spec"], defaults(limits))
    return Demand(name, (pod,), {"count/deployments.apps": Decimal(1), "count/replicasets.apps": Decimal(1)})
