"""Rules against RayClusters that are exposed outside of Kubernetes unintentionally or without authentication."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.network.settings import IngressSettings, NetworkSettings, TenantNetworkSettings
from components.ray_cluster.settings import RayClusterSettings
from core.problems import Path, Problem

OUTSIDE = ("NodePort", "LoadBalancer")
"""Types of a Service that expose it outside the cluster."""

AUTHENTICATING = (
    "alb.ingress.kubernetes.io/auth-type",
    "haproxy-ingress.github.io/auth-url",
    "haproxy.org/auth-type",
    "nginx.ingress.kubernetes.io/auth-tls-secret",
    "nginx.ingress.kubernetes.io/auth-type",
    "nginx.ingress.kubernetes.io/auth-url",
)
"""Annotations with which an ingress controller authenticates callers: AWS Load Balancer Controller, HAProxy Ingress,
HAProxy's own controller, ingress-nginx."""


def exposed(cluster: RayClusterSettings, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Parts of a rendered spec that expose the cluster outside, or to callers without authentication. Paths in the
    RayCluster."""
    head: Path = ("spec", "headGroupSpec")
    group = spec["headGroupSpec"]
    kind = group.get("serviceType")
    if kind in OUTSIDE and kind != cluster.head.service_type:
        message = f"exposes the head outside the cluster: set head.serviceType: {kind}, or remove it"
        yield Problem((*head, "serviceType"), kind, message, "head-service-type")
    kind = ((group.get("headService") or {}).get("spec") or {}).get("type")
    if kind in OUTSIDE and kind != cluster.head.service_type:
        message = f"exposes the head outside the cluster: set head.serviceType: {kind}, and remove it here"
        yield Problem((*head, "headService", "spec", "type"), kind, message, "head-service-type")
    if group.get("enableIngress"):
        message = "KubeRay's Ingress has neither TLS nor authentication: remove it, and set the cluster's ingress"
        yield Problem((*head, "enableIngress"), True, message, "head-ingress")
    mode = (spec.get("authOptions") or {}).get("mode")
    if cluster.ingress and mode != "token" and not _authenticates(cluster.ingress):
        message = (
            "the cluster has an ingress, and everybody who can connect to its dashboard can run any code: set mode to "
            f"token, or authenticate callers by an annotation of the ingress ({', '.join(AUTHENTICATING)})"
        )
        yield Problem(("spec", "authOptions", "mode"), mode, message, "ingress-without-authentication")


def _authenticates(ingress: IngressSettings) -> bool:
    return any(ingress.annotations.get(key, "none") != "none" for key in AUTHENTICATING)


def ingress_problems(tenant: TenantNetworkSettings, network: NetworkSettings) -> Iterator[Problem]:
    """Why the Ingresses of a tenant's clusters could not connect to them. Paths in the tenant's network."""
    if tenant.ingress and tenant.policies and network.policies and network.ingress_controller is None:
        message = (
            "no NetworkPolicy allows an ingress controller: set ingressController in ray-platform:network to its "
            "namespace"
        )
        yield Problem(("ingress",), True, message, "ingress-controller-unknown")
    if tenant.ingress_hosts and not tenant.ingress:
        message = "the tenant may have no Ingress: set ingress: true, or remove this key"
        yield Problem(("ingressHosts",), list(tenant.ingress_hosts), message, "ingress-not-allowed")


def ingress_not_allowed(cluster: RayClusterSettings, tenant: TenantNetworkSettings) -> Iterator[Problem]:
    """A cluster with an Ingress although its tenant may have none. Paths in the cluster's settings."""
    if cluster.ingress and not tenant.ingress:
        message = "clusters of this tenant may have no Ingress: set ingress: true in the tenant's network, or remove it"
        yield Problem(("ingress",), cluster.ingress.host, message, "ingress-not-allowed")
