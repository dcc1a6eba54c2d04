"""What the network's settings become: NetworkPolicies and an Ingress, as the API server takes them. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..bodies import in_namespace
from ..ray_cluster.manifests import HEAD_PORTS
from ..ray_cluster.pods import CLUSTER_LABEL, NODE_TYPE_LABEL
from ..redis.connection import RedisConnection
from ..redis_gateway.manifests import METRICS_PORT as GATEWAY_METRICS_PORT
from .settings import DNS_PORT, ApiServerSettings, DnsSettings, Egress, IngressSettings, NetworkSettings, Peer

Body = dict[str, Any]

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Label that the API server gives every namespace: its name (kubernetes.io, Automatic namespace labelling)."""

HEAD = {NODE_TYPE_LABEL: "head"}

OPERATOR = {"app.kubernetes.io/component": "kuberay-operator"}
"""Label of the operator's pods in KubeRay's kustomize tree (ray-operator/config/manager/manager.yaml)."""

OPERATOR_METRICS_PORT = 8080

OF_A_JOB: Body = {"matchExpressions": [{"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]}
"""Pods of Jobs. KubeRay gives the pod of a RayJob's submitter no label of its own (ray-operator/controllers/ray/
rayjob_controller.go, createNewK8sJob), so that it is known by the Job's."""

CLEANS_UP = "redis-cleanup"
"""Node type of the pod of KubeRay's Job that deletes a cluster's keys (ray-operator/controllers/ray/
raycluster_controller.go, buildRedisCleanupJob)."""

HEAD_METRICS_PORTS = (44217, 44227)
"""Where autoscaler and dashboard show their metrics (ray/_private/ray_constants.py)."""

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15")
PRIVATE_IPV6 = ("fc00::/7", "fe80::/10")
"""Networks that are not the internet (IANA's registries of special-purpose addresses)."""


@dataclass(frozen=True)
class RayPods:
    """The pods of a RayCluster that policies are for, or of all that `other_than` does not name."""

    name: str = ""
    """The RayCluster's name; empty with `other_than`."""

    other_than: tuple[str, ...] | None = None
    """RayClusters that have policies of their own."""

    ports: Mapping[str, int] = field(default_factory=lambda: dict(HEAD_PORTS))
    """The head's ports by KubeRay's names of them."""

    head_asks_api_server: bool = True
    """Whether the head has to reach the API server: the autoscaler beside it does."""

    workers_ask_api_server: bool = False
    """Whether workers have to as well."""

    ingress: bool = False
    """Whether the ingress controller reaches the dashboard."""

    redis: RedisConnection | None = None
    """Where the head reaches Redis, and the Job that cleans up; None: they do not."""

    gateway: bool = False
    """Whether the Redis gateway is beside the head, and shows its metrics."""

    @property
    def selector(self) -> Body:
        """Selects its pods in the namespace."""
        if self.other_than is None:
            return {"matchLabels": {CLUSTER_LABEL: self.name}}
        known = {"key": CLUSTER_LABEL, "operator": "NotIn", "values": sorted(self.other_than)}
        some = {"key": CLUSTER_LABEL, "operator": "Exists"}
        return {"matchExpressions": [some, *([known] if self.other_than else [])]}


@dataclass(frozen=True)
class Openings:
    """Who may connect to the ports of a tenant's RayClusters."""

    dashboard: Sequence[Peer] = ()
    client: Sequence[Peer] = ()
    serve: Sequence[Peer] = ()


def default_deny() -> Body:
    """Nothing in, nothing out, for all pods of the namespace; other policies open what is needed."""
    return _policy("default-deny", {}, ingress=[], egress=[])


def dns(settings: DnsSettings) -> Body:
    """All pods of the namespace may ask the cluster's DNS servers."""
    return _policy("dns", {}, egress=[_dns(settings)])


def egress(said: Iterable[Egress]) -> Body:
    """All pods of the namespace may connect to what was said."""
    return _policy(
        "egress", {}, egress=[{"to": _to(each), "ports": _ports(each.protocol, each.ports)} for each in said]
    )


def submitters(dashboards: Iterable[int]) -> Body:
    """Pods of Jobs may connect to the namespace's heads to submit work: RayJobs do it so."""
    to = [{"podSelector": {"matchLabels": HEAD}}]
    return _policy("submitters", OF_A_JOB, egress=[{"to": to, "ports": _ports("TCP", sorted({*dashboards}))}])


def ray_policies(pods: RayPods, openings: Openings, network: NetworkSettings, operator_namespace: str) -> list[Body]:
    """What opens the ports of a RayCluster: of all its pods, and of its head alone."""
    ports = pods.ports
    suffix = "s-other" if pods.other_than is not None else f".{pods.name}"
    itself = {"podSelector": pods.selector}
    monitoring = [_namespace(name) for name in network.monitoring]
    api_server = _api_server(network.api_server)
    every_pod = _policy(
        f"cluster{suffix}",
        pods.selector,
        # All ports: Ray's processes listen on random ones.
        ingress=[
            {"from": [itself]},
            *_opened([_peer(each) for each in openings.serve], [ports["serve"]]),
            *_opened(monitoring, [ports["metrics"]]),
        ],
        egress=[{"to": [itself]}, *([api_server] if pods.workers_ask_api_server else [])],
    )
    controller = [_namespace(network.ingress_controller)] if pods.ingress and network.ingress_controller else []
    dashboard = [{"podSelector": OF_A_JOB}, *controller, *(_peer(each) for each in openings.dashboard)]
    head = _policy(
        f"head{suffix}",
        {**pods.selector, "matchLabels": {**pods.selector.get("matchLabels", {}), **HEAD}},
        ingress=[
            # The operator asks for the state of jobs, and whether Serve answers.
            *_opened([_namespace(operator_namespace)], [ports["dashboard"], ports["serve"]]),
            *_opened(dashboard, [ports["dashboard"]]),
            *_opened([_peer(each) for each in openings.client], [ports["client"]]),
            *_opened(monitoring, [*HEAD_METRICS_PORTS, *([GATEWAY_METRICS_PORT] if pods.gateway else [])]),
        ],
        egress=[api_server] if pods.head_asks_api_server else None,
    )
    return [every_pod, head, *([_redis(f"redis{suffix}", pods, pods.redis)] if pods.redis else [])]


def _redis(name: str, pods: RayPods, redis: RedisConnection) -> Body:
    """Who speaks to Redis may: the head, and the Job that cleans up, whose pod has the labels of the head's cluster."""
    types = {"key": NODE_TYPE_LABEL, "operator": "In", "values": [HEAD[NODE_TYPE_LABEL], CLEANS_UP]}
    said = pods.selector.get("matchExpressions", [])
    # Addresses outside that nobody says may be any.
    places = [_namespace(redis.namespace)] if redis.namespace else [{"ipBlock": {"cidr": each}} for each in redis.cidrs]
    way = {**({"to": places} if places else {}), "ports": _ports("TCP", redis.ports)}
    return _policy(name, {**pods.selector, "matchExpressions": [*said, types]}, egress=[way])


def operator_policies(network: NetworkSettings, namespace: str, watched: Sequence[str]) -> list[Body]:
    """The policies of the operator's own `namespace`. `watched`: the namespaces that it serves; empty for all."""
    heads = {
        "namespaceSelector": {"matchExpressions": [_in(NAMESPACE_LABEL, watched)]} if watched else {},
        "podSelector": {"matchLabels": HEAD},
    }
    operator = _policy(
        "kuberay-operator",
        {"matchLabels": OPERATOR},
        ingress=_opened([_namespace(name) for name in network.monitoring], [OPERATOR_METRICS_PORT]),
        egress=[
            _dns(network.dns),
            _api_server(network.api_server),
            {"to": [heads], "ports": _ports("TCP", [HEAD_PORTS["dashboard"], HEAD_PORTS["serve"]])},
        ],
    )
    return [in_namespace(body, namespace) for body in (default_deny(), operator)]


def scheduler_policies(
    network: NetworkSettings,
    name: str,
    namespace: str,
    webhook: Mapping[str, str],
    webhook_port: int,
    metrics: Sequence[int],
) -> list[Body]:
    """The policies of a scheduler's own `namespace`; `name` is what they are called. Any address reaches the webhook's
    pods, known by the labels `webhook`: nothing tells where the API server calls from. Those who read metrics reach the
    ports `metrics`."""
    readers = [_namespace(name) for name in network.monitoring]
    programs = _policy(
        name, {}, ingress=_opened(readers, metrics), egress=[_dns(network.dns), _api_server(network.api_server)]
    )
    opened = [{"ports": _ports("TCP", [webhook_port])}]
    admission = _policy(f"{name}-webhook", {"matchLabels": dict(webhook)}, ingress=opened)
    return [in_namespace(body, namespace) for body in (default_deny(), programs, admission)]


def redis_policy(redis: Mapping[str, str], ports: Sequence[int], tenants: Sequence[str], dns: DnsSettings) -> Body:
    """Redis' pods, known by the labels `redis`, reach each other, and are reached by those that speak to it: heads and
    the Jobs that clean up, in the namespaces of the tenants."""
    itself = {"podSelector": {"matchLabels": dict(redis)}}
    clients = {
        "namespaceSelector": {"matchExpressions": [_in(NAMESPACE_LABEL, tenants)]},
        "podSelector": {"matchExpressions": [_in(NODE_TYPE_LABEL, ["head", "redis-cleanup"])]},
    }
    return _policy(
        "ray-redis",
        itself["podSelector"],
        ingress=_opened([itself, *([clients] if tenants else [])], ports),
        egress=[{"to": [itself], "ports": _ports("TCP", ports)}, _dns(dns)],
    )


def redis_metrics_policy(redis: Mapping[str, str], port: int, monitoring: Sequence[str]) -> Body:
    """Those who read metrics reach those of Redis."""
    readers = [_namespace(name) for name in monitoring]
    return _policy("ray-redis-metrics", {"matchLabels": dict(redis)}, ingress=_opened(readers, [port]))


def ingress(cluster: str, head_service: str, settings: IngressSettings, port: int) -> Body:
    """The Ingress of a cluster's dashboard."""
    backend = {"service": {"name": head_service, "port": {"number": port}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        # Not every controller gives an Ingress an address, and Pulumi would wait ten minutes for one.
        "metadata": {
            "name": f"{cluster}-dashboard",
            "annotations": {**settings.annotations, "pulumi.com/skipAwait": "true"},
        },
        "spec": {
            "ingressClassName": settings.class_name,
            "tls": [{"hosts": [settings.host], "secretName": settings.tls_secret_name}],
            "rules": [
                {
                    "host": settings.host,
                    "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
                }
            ],
        },
    }


def _policy(name: str, pods: Body, ingress: list[Body] | None = None, egress: list[Body] | None = None) -> Body:
    """A NetworkPolicy. An empty list lets nothing pass in that direction, None says nothing of it."""
    directions = {"Ingress": ingress, "Egress": egress}
    rules = {direction.lower(): said for direction, said in directions.items() if said}
    types = [direction for direction, said in directions.items() if said is not None]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": pods, "policyTypes": types, **rules},
    }


def _opened(peers: Sequence[Body], ports: Iterable[int]) -> list[Body]:
    """The rule for those who may connect; none where there are none, because a rule without any lets everybody in."""
    return [{"from": list(peers), "ports": _ports("TCP", ports)}] if peers else []


def _ports(protocol: str, ports: Iterable[int]) -> list[Body]:
    return [{"protocol": protocol, "port": port} for port in ports]


def _namespace(name: str) -> Body:
    return {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: name}}}


def _in(key: str, values: Sequence[str]) -> Body:
    return {"key": key, "operator": "In", "values": sorted(values)}


def _peer(peer: Peer) -> Body:
    if peer.namespace is None:
        return {"ipBlock": {"cidr": peer.cidr}}
    pods = {"podSelector": {"matchLabels": dict(peer.pod_labels)}} if peer.pod_labels else {}
    return {**_namespace(peer.namespace), **pods}


def _to(said: Egress) -> list[Body]:
    if not said.internet:
        return [_peer(said)]
    return [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(PRIVATE)}},
        {"ipBlock": {"cidr": "::/0", "except": list(PRIVATE_IPV6)}},
    ]


def _dns(settings: DnsSettings) -> Body:
    pods = {**_namespace(settings.namespace), "podSelector": {"matchLabels": dict(settings.pod_labels)}}
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in settings.cidrs]
    ports = sorted({DNS_PORT, settings.port})
    return {"to": [pods, *addresses], "ports": [*_ports("UDP", ports), *_ports("TCP", ports)]}


def _api_server(settings: ApiServerSettings) -> Body:
    # Without addresses there is no `to`: some network plugins do not take the API server for part of 0.0.0.0/0.
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in settings.cidrs]
    return {**({"to": addresses} if addresses else {}), "ports": _ports("TCP", settings.ports)}
