"""Settings of the network: connections to and from RayClusters."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema

from core.problems import Problem
from core.types import CheckedSettings, Cidr, DnsLabel, DnsSubdomain, LabelKey, Labels, NotEmpty, Settings

Port = Annotated[int, Strict(), Field(ge=1, le=65535)]
"""A TCP or UDP port."""

DNS_PORT = 53

LINK_LOCAL = "169.254.0.0/16"
"""Addresses of DNS servers on the node itself: Kubernetes' NodeLocal DNSCache (169.254.20.10), GKE's Cloud DNS
(169.254.169.254)."""


_HOSTS = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def _no_address(host: str) -> str:
    if re.fullmatch(r"[0-9.]+", host):
        raise ValueError(f"{host!r} is an address, and an Ingress takes names alone: write a name that leads to it")
    return host


def _hosts(text: str) -> str:
    if not _HOSTS.fullmatch(text):
        raise ValueError(f"{text!r} is not a host name in lower case, or *. and a domain for all names below it")
    if text.startswith("*.") and text.count(".") == 1:
        raise ValueError(f"{text!r} has the names of everybody: name a domain of yours, such as *.ray.example.com")
    return _no_address(text)


Hosts = Annotated[str, AfterValidator(_hosts), WithJsonSchema({"type": "string", "pattern": f"^({_HOSTS.pattern})$"})]
"""A host name, or all names below a domain."""


class DnsSettings(Settings):
    """The cluster's DNS servers. All pods may connect to them."""

    namespace: DnsLabel = "kube-system"
    """Namespace of their pods."""

    pod_labels: Labels = Field(default_factory=lambda: {"k8s-app": "kube-dns"})
    """Labels of their pods."""

    cidrs: tuple[Cidr, ...] = (LINK_LOCAL,)
    """Addresses of DNS servers that are not pods. Default: link-local ones, for a node's own DNS cache."""

    port: Port = DNS_PORT
    """Port that the pods listen on, if not 53; 5353 on OpenShift."""


class ApiServerSettings(Settings):
    """The Kubernetes API server. The operator and the heads of clusters that scale connect to it."""

    cidrs: tuple[Cidr, ...] = ()
    """Its addresses behind the Service `kubernetes`. Default: any address, because those of managed clusters change."""

    ports: Annotated[tuple[Port, ...], NotEmpty] = (443, 6443)
    """Its ports."""


class NetworkSettings(Settings):
    """Properties of the cluster for its NetworkPolicies."""

    policies: bool = True
    """False: no NetworkPolicies are created, and all pods of the cluster can connect to all ports of all
    RayClusters."""

    dns: DnsSettings = DnsSettings()
    api_server: ApiServerSettings = ApiServerSettings()

    monitoring: tuple[DnsLabel, ...] = ()
    """Namespaces that read metrics of RayClusters and of the operator, such as that of an existing Prometheus, and that
    may connect to the stack's own Prometheus, such as Grafana's. The namespace of the stack's own need not be named."""

    ingress_controller: DnsLabel | None = None
    """Namespace of the ingress controller. It may connect to the dashboards of clusters with an `ingress`."""


class Peer(CheckedSettings):
    """A peer that may connect: the pods of a namespace, or addresses."""

    namespace: DnsLabel | None = None
    """Name of a namespace."""

    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the pods in the namespace. Default: all of them."""

    cidr: Cidr | None = None
    """Addresses outside the cluster: `10.20.0.0/16` or `2001:db8::/32`."""

    def problems(self) -> Iterator[Problem]:
        named = [key for key in self._kinds() if getattr(self, key)]
        if len(named) != 1:
            names = f"names {' and '.join(named)}" if named else "names no peer"
            message = f"{names}: name one of {', '.join(self._kinds())}"
            yield Problem((), None, message, "network-peer")
        elif self.pod_labels and not self.namespace:
            message = "podLabels select pods of a namespace: name the namespace, or remove them"
            yield Problem(("podLabels",), None, message, "network-peer")

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "namespace", "cidr"


def _named(value: Any) -> Any:
    return {"namespace": value} if isinstance(value, str) else value


Peers = tuple[Annotated[Peer, BeforeValidator(_named, json_schema_input_type=str | Peer)], ...]
"""Peers that may connect. A single word is the name of a namespace."""


class Egress(Peer):
    """A target of the tenant's pods, in addition to DNS and each other: the pods of a namespace, addresses, or the
    internet."""

    internet: bool = False
    """True: all public addresses; neither private networks nor the cloud's metadata service."""

    ports: Annotated[tuple[Port, ...], NotEmpty] = (443,)
    """Ports of the target."""

    protocol: Literal["TCP", "UDP"] = "TCP"
    """Protocol of the ports."""

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "namespace", "cidr", "internet"


class TenantNetworkSettings(Settings):
    """Allowed connections to a tenant's RayClusters and from its pods. All other connections are denied."""

    policies: bool = True
    """False: no NetworkPolicies, for a namespace with other workloads whose connections are not known yet."""

    dashboard_from: Peers = ()
    """Peers that may connect to dashboards and the jobs API (8265)."""

    client_from: Peers = ()
    """Peers that may connect to the ports for `ray://` clients (10001)."""

    serve_from: Peers = ()
    """Peers that may connect to Ray Serve (8000)."""

    egress: tuple[Egress, ...] = ()
    """Targets of the tenant's pods outside: package indexes, model hubs, object storage."""

    ingress: bool = False
    """True: clusters of the tenant may have an `ingress`, and the ingress controller may connect to their
    dashboards."""

    ingress_hosts: tuple[Hosts, ...] = ()
    """Host names that Ingresses of the tenant's own may have, besides those of its clusters here: a name, or
    `*.team-a.example.com` for all names below. The API server refuses others. Default: none."""

    ingress_annotations: tuple[LabelKey, ...] = ()
    """Annotations that Ingresses of the tenant's own may have besides harmless ones, with any value. An annotation may
    give the controller host names, Secrets or code of others. Default: none."""

    other_clusters: bool = False
    """True: the ports are also open for RayClusters that are not in the stack file, such as those of RayJobs. These can
    connect to each other, but not to clusters of the stack file."""


def _one_class(annotations: dict[str, str]) -> dict[str, str]:
    if "kubernetes.io/ingress.class" in annotations:
        raise ValueError("the API server refuses kubernetes.io/ingress.class beside className: remove the annotation")
    return annotations


class IngressSettings(Settings):
    """A cluster's dashboard and jobs API with a host name, through the ingress controller."""

    host: Annotated[DnsSubdomain, AfterValidator(_no_address)]
    """Host name for users: `training.ray.example.com`."""

    class_name: DnsSubdomain
    """IngressClass."""

    tls_secret_name: DnsSubdomain
    """Secret of type `kubernetes.io/tls` in the tenant's namespace, created by cert-manager or manually."""

    annotations: Annotated[dict[LabelKey, str], AfterValidator(_one_class)] = Field(default_factory=dict)
    """Annotations of the Ingress, for the controller or for cert-manager."""
