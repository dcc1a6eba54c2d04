"""Renders the network settings into NetworkPolicies and an Ingress. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from components.access.personas import RayDeployerNetworkSettings
from components.bodies import in_namespace
from components.network.settings import (
    DNS_PORT,
    ApiServerSettings,
    DnsSettings,
    Egress,
    IngressSettings,
    NetworkSettings,
    Peer,
)
from components.ray_cluster.pods import CLUSTER_LABEL, NODE_TYPE_LABEL
from components.redis.connection import RedisConnection
from components.redis_gateway.manifests import METRICS_PORT as GATEWAY_METRICS_PORT
from core.body import Body
from kuberay.ports import HEAD_PORTS


@dataclass(frozen=True)
class RayPods:
    """The pods of one RayCluster, or of all RayClusters that `other_than` does not name."""

    name: str = ""
    """The RayCluster's name; empty with `other_than`."""

    other_than: tuple[str, ...] | None = None
    """RayClusters with their own policies."""

    label: str = CLUSTER_LABEL
    """Label of its pods with its name."""

    unlabelled: tuple[str, ...] = ()
    """With `other_than`: labels of pods that have their own policies, too."""

    ports: Mapping[str, int] = field(default_factory=lambda: dict(HEAD_PORTS))
    """The head's ports by KubeRay's names."""

    serve: Sequence[int] = (HEAD_PORTS["serve"],)
    """Ports of Serve, of head and workers."""

    metrics: Sequence[int] = (HEAD_PORTS["metrics"],)
    """Ports of metrics of head and workers."""

    head_asks_api_server: bool = True
    """Whether the head needs the API server, as its autoscaler does."""

    workers_ask_api_server: bool = False
    """Whether workers need it, too."""

    ingress: bool = False
    """Whether the ingress controller may connect to the dashboard."""

    redis: RedisConnection | None = None
    """The Redis of the head and of the clean-up Job; None: they use none."""

    gateway: bool = False
    """Whether the head's pod has the Redis gateway, with its metrics."""

    deployed: Sequence[int] = ()
    """Ports on which the cluster and the pods that the tenant's `rayDeployer` creates connect to each other."""

    programs: Sequence[Mapping[str, str]] = ()
    """Labels of pods of the namespace that ask the dashboard, beside those of Jobs."""

    @property
    def selector(self) -> Body:
        if self.other_than is None:
            return {"matchLabels": {self.label: self.name}}
        known = {"key": CLUSTER_LABEL, "operator": "NotIn", "values": sorted(self.other_than)}
        some = {"key": CLUSTER_LABEL, "operator": "Exists"}
        return {
            "matchExpressions": [
                some,
                *([known] if self.other_than else []),
                *({"key": label, "operator": "DoesNotExist"} for label in self.unlabelled),
            ]
        }


@dataclass(frozen=True)
class Openings:
    """Peers that may connect to the ports of a tenant's RayClusters."""

    dashboard: Sequence[Peer] = ()
    client: Sequence[Peer] = ()
    serve: Sequence[Peer] = ()


NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Label that the API server sets on every namespace: its name (kubernetes.io, Automatic namespace labelling)."""

HEAD = {NODE_TYPE_LABEL: "head"}

ANY_RAY_POD: Body = {"matchExpressions": [{"key": NODE_TYPE_LABEL, "operator": "Exists"}]}
"""Selects the pods of all RayClusters."""

OPERATOR = {"app.kubernetes.io/component": "kuberay-operator"}
"""Label of the operator's pods in KubeRay's kustomize tree (ray-operator/config/manager/manager.yaml)."""

OPERATOR_METRICS_PORT = 8080

JOB_LABEL = "batch.kubernetes.io/job-name"
"""Label of the pods of a Job."""

OF_A_JOB: Body = {"matchExpressions": [{"key": JOB_LABEL, "operator": "Exists"}]}
"""Pods of Jobs. KubeRay sets no label on the pod of a RayJob's submitter (ray-operator/controllers/ray/
rayjob_controller.go, createNewK8sJob), so it is selected by the Job's label."""

CLEANS_UP = "redis-cleanup"
"""Node type of the pod of KubeRay's Job that deletes a cluster's keys (ray-operator/controllers/ray/
raycluster_controller.go, buildRedisCleanupJob)."""

DEPLOYED = {"ray-platform/created-by": "ray-deployer"}
"""Label of the pods that code on Ray creates with the account of `rayDeployer`. An admission policy demands it, and
refuses it to others (components/access/deployers.py)."""

RAY_DEPLOYER = "ray-deployer"
"""Name of the policy of these pods."""

HEAD_METRICS_PORTS = (44217, 44227)
"""Ports with the metrics of autoscaler and dashboard (ray/_private/ray_constants.py)."""

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15")
PRIVATE_IPV6 = ("fc00::/7", "fe80::/10")
"""Networks that are not the internet (IANA's registries of special-purpose addresses)."""

AZURE_HOST = "168.63.129.16/32"
"""The host of each virtual machine in Azure, which has settings and certificates of the node. The address is public
(learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16)."""


def default_deny() -> Body:
    """Denies all ingress and egress of the namespace's pods. Other policies allow what is needed."""
    return _policy("default-deny", {}, ingress=[], egress=[])


def dns(settings: DnsSettings) -> Body:
    """All pods of the namespace may connect to the cluster's DNS servers."""
    return _policy("dns", {}, egress=[_dns(settings)])


def egress(rules: Iterable[Egress]) -> Body:
    """All pods of the namespace may connect to the configured targets."""
    return _policy("egress", {}, egress=_targets(rules))


def log_collectors(rules: Iterable[Egress]) -> Body:
    """All pods of Ray may connect to the receiver of logs."""
    return _policy("log-collectors", ANY_RAY_POD, egress=_targets(rules))


def _targets(rules: Iterable[Egress]) -> list[Body]:
    return [{"to": _to(each), "ports": _ports(each.protocol, each.ports)} for each in rules]


def to_address(name: str, pods: Body, namespace: str | None, cidrs: Sequence[str], ports: Iterable[int]) -> Body:
    """The selected pods may connect to these ports of a namespace's pods, or of addresses; of any without either."""
    places = [_namespace(namespace)] if namespace else [{"ipBlock": {"cidr": each}} for each in cidrs]
    return _policy(name, pods, egress=[{**({"to": places} if places else {}), "ports": _ports("TCP", ports)}])


def submitters(dashboards: Iterable[int]) -> Body:
    """Pods of Jobs may connect to the namespace's heads to submit work, as RayJobs do."""
    return _policy("submitters", OF_A_JOB, egress=[_to_heads(dashboards)])


def schedules(label: str, network: NetworkSettings) -> Body:
    """Pods that start runs of job templates on schedule, selected by their label, may connect to the API server."""
    pods = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return _policy("job-schedules", pods, egress=[_api_server(network.api_server)])


def idle_termination(program: Mapping[str, str], dashboards: Iterable[int], api_server: ApiServerSettings) -> Body:
    """The pod that suspends idle RayClusters, selected by the labels `program`, may connect to the namespace's heads
    and to the API server."""
    pods = {"matchLabels": dict(program)}
    return _policy("idle-termination", pods, egress=[_to_heads(dashboards), _api_server(api_server)])


def run_history(program: Mapping[str, str], dashboards: Iterable[int], api_server: ApiServerSettings) -> Body:
    """The pod that keeps the run history, selected by the labels `program`, may connect to the API server, and to the
    namespace's heads if it reads any. Nothing connects to it."""
    heads = [_to_heads(ports)] if (ports := list(dashboards)) else []
    return _policy("run-history", {"matchLabels": dict(program)}, egress=[*heads, _api_server(api_server)])


def deployed(settings: RayDeployerNetworkSettings, clusters: Iterable[RayPods], api_server: ApiServerSettings) -> Body:
    """The pods that the account of `rayDeployer` creates may connect to each other and to its RayClusters on the same
    ports, in both directions, and to what the settings name."""
    peers = [{"podSelector": {"matchLabels": DEPLOYED}}, *({"podSelector": each.selector} for each in clusters)]
    ports = _ports("TCP", settings.ports)
    further = [*([_api_server(api_server)] if settings.api_server else []), *_targets(settings.egress)]
    return _policy(
        RAY_DEPLOYER,
        {"matchLabels": DEPLOYED},
        ingress=[{"from": peers, "ports": ports}],
        egress=[{"to": peers, "ports": ports}, *further],
    )


def _to_heads(ports: Iterable[int]) -> Body:
    """To these ports of the namespace's heads."""
    return {"to": [{"podSelector": {"matchLabels": HEAD}}], "ports": _ports("TCP", sorted({*ports}))}


def ray_policies(pods: RayPods, openings: Openings, network: NetworkSettings, operator_namespace: str) -> list[Body]:
    """The policies that open the ports of a RayCluster: for all its pods, and for its head."""
    ports = pods.ports
    suffix = "s-other" if pods.other_than is not None else f".{pods.name}"
    itself = {"podSelector": pods.selector}
    made = [{"podSelector": {"matchLabels": DEPLOYED}}] if pods.deployed else []
    monitoring = [_namespace(name) for name in network.monitoring]
    api_server = _api_server(network.api_server)
    every_pod = _policy(
        f"cluster{suffix}",
        pods.selector,
        # All ports: Ray's processes listen on random ones.
        ingress=[
            {"from": [itself]},
            *_opened([_peer(each) for each in openings.serve], pods.serve),
            *_opened(monitoring, pods.metrics),
            *_opened(made, pods.deployed),
        ],
        egress=[
            {"to": [itself]},
            *([{"to": made, "ports": _ports("TCP", pods.deployed)}] if made else []),
            *([api_server] if pods.workers_ask_api_server else []),
        ],
    )
    controller = [_namespace(network.ingress_controller)] if pods.ingress and network.ingress_controller else []
    programs = [{"podSelector": {"matchLabels": dict(each)}} for each in pods.programs]
    dashboard = [{"podSelector": OF_A_JOB}, *programs, *controller, *(_peer(each) for each in openings.dashboard)]
    head = _policy(
        f"head{suffix}",
        {**pods.selector, "matchLabels": {**pods.selector.get("matchLabels", {}), **HEAD}},
        ingress=[
            # The operator reads the state of jobs and the health of Serve.
            *_opened([_namespace(operator_namespace)], [ports["dashboard"], ports["serve"]]),
            *_opened(dashboard, [ports["dashboard"]]),
            *_opened([_peer(each) for each in openings.client], [ports["client"]]),
            *_opened(monitoring, [*HEAD_METRICS_PORTS, *([GATEWAY_METRICS_PORT] if pods.gateway else [])]),
        ],
        egress=[api_server] if pods.head_asks_api_server else None,
    )
    return [every_pod, head, *([_redis(f"redis{suffix}", pods, pods.redis)] if pods.redis else [])]


def _redis(name: str, pods: RayPods, redis: RedisConnection) -> Body:
    """The head and the clean-up Job, whose pod has the cluster's labels, may connect to Redis."""
    types = {"key": NODE_TYPE_LABEL, "operator": "In", "values": [HEAD[NODE_TYPE_LABEL], CLEANS_UP]}
    expressions = pods.selector.get("matchExpressions", [])
    heads = {**pods.selector, "matchExpressions": [*expressions, types]}
    return to_address(name, heads, redis.namespace, redis.cidrs, redis.ports)


def operator_policies(
    network: NetworkSettings, namespace: str, watched: Sequence[str], asked: Iterable[int] = ()
) -> list[Body]:
    """The policies of the operator's own `namespace`. `watched`: the namespaces that it serves; empty for all.
    `asked`: ports of dashboards and of Serve beside KubeRay's own."""
    ports = dict.fromkeys([HEAD_PORTS["dashboard"], HEAD_PORTS["serve"], *sorted(asked)])
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
            {"to": [heads], "ports": _ports("TCP", ports)},
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
    """The policies of a scheduler's own `namespace`; `name` is the prefix of their names. Any address may connect to
    the webhook's pods, selected by the labels `webhook`, because the API server's addresses are not known. Readers of
    metrics may connect to the ports `metrics`."""
    readers = [_namespace(name) for name in network.monitoring]
    programs = _policy(
        name, {}, ingress=_opened(readers, metrics), egress=[_dns(network.dns), _api_server(network.api_server)]
    )
    opened = [{"ports": _ports("TCP", [webhook_port])}]
    admission = _policy(f"{name}-webhook", {"matchLabels": dict(webhook)}, ingress=opened)
    return [in_namespace(body, namespace) for body in (default_deny(), programs, admission)]


def redis_policy(redis: Mapping[str, str], ports: Sequence[int], tenants: Sequence[str], dns: DnsSettings) -> Body:
    """Redis' pods, selected by the labels `redis`, may connect to each other. Heads and clean-up Jobs in the tenants'
    namespaces may connect to them."""
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
    """Readers of metrics may connect to the metrics port of Redis."""
    readers = [_namespace(name) for name in monitoring]
    return _policy("ray-redis-metrics", {"matchLabels": dict(redis)}, ingress=_opened(readers, [port]))


@dataclass(frozen=True)
class Scraped:
    """Pods that a Prometheus of the stack's own scrapes."""

    namespaces: Sequence[str]

    pods: Body
    """The selector of the pods."""

    ports: Sequence[int]

    services: bool = False
    """Whether Prometheus finds them by their Services."""


def prometheus_policies(
    network: NetworkSettings,
    prometheus: Mapping[str, str],
    proxies: Mapping[str, str],
    port: int,
    scraped: Iterable[Scraped],
    outside: Sequence[int] = (),
) -> list[Body]:
    """The policies of the namespace of a Prometheus, selected by the labels `prometheus`, and of the tenants' proxies
    to it, by `proxies`. The proxies, and readers of metrics, connect to Prometheus. `outside`: ports that it may
    connect to at any address."""
    itself, asking = ({"podSelector": {"matchLabels": dict(each)}} for each in (prometheus, proxies))
    to_targets = [
        {
            "to": [
                {
                    "namespaceSelector": {"matchExpressions": [_in(NAMESPACE_LABEL, each.namespaces)]},
                    "podSelector": each.pods,
                }
            ],
            "ports": _ports("TCP", each.ports),
        }
        for each in scraped
    ]
    anywhere = [{"ports": _ports("TCP", outside)}] if outside else []
    return [
        default_deny(),
        _policy(
            "prometheus",
            itself["podSelector"],
            ingress=_opened([asking, *(_namespace(name) for name in network.monitoring)], [port]),
            egress=[_dns(network.dns), _api_server(network.api_server), *to_targets, *anywhere],
        ),
        _proxies("prometheus-proxies", network, asking, port, itself, port),
    ]


def alertmanager_policies(
    network: NetworkSettings,
    alertmanager: Mapping[str, str],
    port: int,
    prometheus: Mapping[str, str],
    egress: Iterable[Egress],
) -> list[Body]:
    """An Alertmanager, selected by the labels `alertmanager`, connects to its receivers. A Prometheus, selected by
    `prometheus`, alone connects to it."""
    itself, sender = ({"podSelector": {"matchLabels": dict(each)}} for each in (alertmanager, prometheus))
    return [
        _policy("prometheus-alerts", sender["podSelector"], egress=[{"to": [itself], "ports": _ports("TCP", [port])}]),
        _policy(
            "alertmanager",
            itself["podSelector"],
            ingress=_opened([sender], [port]),
            egress=[_dns(network.dns), *_targets(egress)],
        ),
    ]


def log_store_policies(
    network: NetworkSettings, store: Mapping[str, str], port: int, proxies: Mapping[str, str], proxy_port: int
) -> list[Body]:
    """The policies of the namespace of a log store, selected by the labels `store`, and of the tenants' proxies to it,
    by `proxies`. The proxies alone connect to the store. Any address may connect to the proxies, as to those of
    Prometheus; the pods of a tenant may connect to the tenant's own."""
    itself, asking = ({"podSelector": {"matchLabels": dict(each)}} for each in (store, proxies))
    return [
        default_deny(),
        _policy("log-store", itself["podSelector"], ingress=_opened([asking], [port])),
        _proxies("log-proxies", network, asking, proxy_port, itself, port),
    ]


def _proxies(name: str, network: NetworkSettings, proxies: Body, port: int, to: Body, to_port: int) -> Body:
    """Tenants' proxies. Any address may connect to them, because the API server's addresses are not known."""
    return _policy(
        name,
        proxies["podSelector"],
        ingress=[{"ports": _ports("TCP", [port])}],
        egress=[_dns(network.dns), {"to": [to], "ports": _ports("TCP", [to_port])}],
    )


def ingress(cluster: str, head_service: str, settings: IngressSettings, port: int) -> Body:
    backend = {"service": {"name": head_service, "port": {"number": port}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        # Some controllers set no address on an Ingress, and Pulumi would wait ten minutes for one.
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
    """A NetworkPolicy. An empty list denies all traffic in that direction; None does not restrict it."""
    directions = {"Ingress": ingress, "Egress": egress}
    rules = {direction.lower(): direction_rules for direction, direction_rules in directions.items() if direction_rules}
    types = [direction for direction, direction_rules in directions.items() if direction_rules is not None]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": pods, "policyTypes": types, **rules},
    }


def _opened(peers: Sequence[Body], ports: Iterable[int]) -> list[Body]:
    """The rule for the peers; no rule without peers, because a rule without peers admits everybody."""
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


def _to(rule: Egress) -> list[Body]:
    if not rule.internet:
        return [_peer(rule)]
    return [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": [*PRIVATE, AZURE_HOST]}},
        {"ipBlock": {"cidr": "::/0", "except": list(PRIVATE_IPV6)}},
    ]


def _dns(settings: DnsSettings) -> Body:
    pods = {**_namespace(settings.namespace), "podSelector": {"matchLabels": dict(settings.pod_labels)}}
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in settings.cidrs]
    ports = sorted({DNS_PORT, settings.port})
    return {"to": [pods, *addresses], "ports": [*_ports("UDP", ports), *_ports("TCP", ports)]}


def _api_server(settings: ApiServerSettings) -> Body:
    # Without addresses there is no `to`: for some network plugins 0.0.0.0/0 does not include the API server.
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in settings.cidrs]
    return {**({"to": addresses} if addresses else {}), "ports": _ports("TCP", settings.ports)}
