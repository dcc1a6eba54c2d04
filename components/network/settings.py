"""What a stack file may say about the network: who reaches RayClusters, and what they reach."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Strict, model_validator

from core.problems import Problem, Problems
from core.types import Cidr, DnsLabel, DnsSubdomain, LabelKey, Labels, NotEmpty, Settings

Port = Annotated[int, Strict(), Field(ge=1, le=65535)]
"""A TCP or UDP port."""

DNS_PORT = 53

LINK_LOCAL = "169.254.0.0/16"
"""Where DNS servers on the node itself listen: Kubernetes' NodeLocal DNSCache (169.254.20.10), GKE's Cloud DNS
(169.254.169.254)."""


class DnsSettings(Settings):
    """Where the cluster's DNS servers are. All pods may ask them."""

    namespace: DnsLabel = "kube-system"
    """Namespace of their pods."""

    pod_labels: Labels = Field(default_factory=lambda: {"k8s-app": "kube-dns"})
    """Labels of their pods."""

    cidrs: tuple[Cidr, ...] = (LINK_LOCAL,)
    """Addresses of DNS servers that are no pods. Default: link-local ones, where a node's own DNS cache listens."""

    port: Port = DNS_PORT
    """Port that the pods listen on, if not 53; 5353 on OpenShift."""


class ApiServerSettings(Settings):
    """Where the Kubernetes API server is. A head that scales its cluster, and the operator, have to reach it."""

    cidrs: tuple[Cidr, ...] = ()
    """Its addresses behind the Service `kubernetes`. Default: any address, because managed clusters change theirs."""

    ports: Annotated[tuple[Port, ...], NotEmpty] = (443, 6443)
    """Its ports."""


class NetworkSettings(Settings):
    """What the NetworkPolicies have to know of the cluster."""

    policies: bool = True
    """False: no NetworkPolicies are made, and whoever is in the cluster reaches every port of every RayCluster."""

    dns: DnsSettings = DnsSettings()
    api_server: ApiServerSettings = ApiServerSettings()

    monitoring: tuple[DnsLabel, ...] = ()
    """Namespaces that read metrics, of RayClusters and of the operator: Prometheus'."""

    ingress_controller: DnsLabel | None = None
    """Namespace of the ingress controller. Clusters with an `ingress` let it reach their dashboards."""


class Peer(Settings):
    """Who may connect: the pods of a namespace, or addresses."""

    namespace: DnsLabel | None = None
    """Name of a namespace."""

    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the pods in the namespace. Default: all of them."""

    cidr: Cidr | None = None
    """Addresses outside the cluster: `10.20.0.0/16` or `2001:db8::/32`."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        said = [key for key in self._kinds() if getattr(self, key)]
        if len(said) != 1:
            names = f"names {' and '.join(said)}" if said else "names nobody"
            message = f"{names}: name one of {', '.join(self._kinds())}"
            raise Problems([Problem((), None, message, "network-peer")])
        if self.pod_labels and not self.namespace:
            message = "podLabels select pods of a namespace: name the namespace, or remove them"
            raise Problems([Problem(("podLabels",), None, message, "network-peer")])
        return self

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "namespace", "cidr"


def _named(value: Any) -> Any:
    return {"namespace": value} if isinstance(value, str) else value


Peers = tuple[Annotated[Peer, BeforeValidator(_named, json_schema_input_type=str | Peer)], ...]
"""Those who may connect. A word is a namespace's name."""


class Egress(Peer):
    """What the tenant's pods may connect to, beside DNS and each other: the pods of a namespace, addresses, or the
    internet."""

    internet: bool = False
    """True: all public addresses; neither private networks nor the cloud's metadata service."""

    ports: Annotated[tuple[Port, ...], NotEmpty] = (443,)
    """Ports there."""

    protocol: Literal["TCP", "UDP"] = "TCP"
    """Protocol of the ports."""

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "namespace", "cidr", "internet"


class TenantNetworkSettings(Settings):
    """Who reaches a tenant's RayClusters, and what its pods reach. What is not said is closed."""

    policies: bool = True
    """False: the namespace stays as open as it is, for one where other things run whose needs are not known yet."""

    dashboard_from: Peers = ()
    """Who reaches dashboards and the jobs API (8265)."""

    client_from: Peers = ()
    """Who reaches the ports for `ray://` clients (10001)."""

    serve_from: Peers = ()
    """Who reaches what Ray Serve serves (8000)."""

    egress: tuple[Egress, ...] = ()
    """What the tenant's pods reach outside: package indexes, model hubs, object storage."""

    ingress: bool = False
    """True: clusters of the tenant may have an `ingress`, and the ingress controller reaches their dashboards."""

    other_clusters: bool = False
    """True: RayClusters whose names this stack does not say, such as those that RayJobs make, have their ports as well.
    They reach each other, and none that is named."""


class IngressSettings(Settings):
    """A cluster's dashboard and jobs API under a name, through the ingress controller."""

    host: DnsSubdomain
    """Name that people use: `training.ray.example.com`."""

    class_name: DnsSubdomain
    """IngressClass."""

    tls_secret_name: DnsSubdomain
    """Secret of type `kubernetes.io/tls` in the tenant's namespace, made by cert-manager or by hand."""

    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Annotations of the Ingress, for the controller or for cert-manager."""
