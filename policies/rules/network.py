"""NetworkPolicies: who reaches Ray, and what Ray reaches."""

import ipaddress
from collections.abc import Iterator

from policies.rule import Severity, Violations, rule
from policies.values import Node, Object
from policies.walk import Stack

_POLICIES = "https://kubernetes.io/docs/concepts/services-networking/network-policies/"
_RAY_LABELS = "ray.io/"
_REDIS_PORTS = (6379, 26379)
_METADATA = ipaddress.ip_address("169.254.169.254")


_KUBERAYS = {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
"""Further labels of all pods of KubeRay (ray-operator/controllers/ray/common/pod.go: labelPod)."""


def _selects_ray(selector: Node) -> bool:
    """Whether it selects pods of Ray: by a label of Ray's, or because it demands nothing that they do not have."""
    labels = [(key, value.text) for key, value in selector.at("matchLabels").entries()]
    expressions = list(selector.at("matchExpressions").items())
    keys = [*(key for key, _ in labels), *(each.at("key").text or "" for each in expressions)]
    return any(key.startswith(_RAY_LABELS) for key in keys) or (
        all(_KUBERAYS.get(key) == value for key, value in labels) and all(map(_admits_ray, expressions))
    )


def _admits_ray(expression: Node) -> bool:
    value = _KUBERAYS.get(expression.at("key").text or "")
    values = [each.text for each in expression.at("values").items()]
    match expression.at("operator").text:
        case "In":
            return value in values
        case "Exists":
            return value is not None
        case "NotIn":
            return value not in values
        case _:
            return value is None


def _empty(selector: Node) -> bool:
    return not any(_is_set(value) for _, value in selector.entries())


def _is_set(value: Node) -> bool:
    return bool(list(value.entries()) or list(value.items()))


def _types(policy: Object) -> set[str | None]:
    types = [each.text for each in policy.root.at("spec", "policyTypes").items()]
    # The default of the API server: always Ingress, and Egress if the policy has egress rules.
    return set(types) or {"Ingress", *(["Egress"] if policy.root.at("spec", "egress").is_set else [])}


@rule(
    "ray-default-deny",
    Severity.HIGH,
    what="Namespaces with Ray deny all traffic that no NetworkPolicy allows.",
    why="Ray's processes listen on random ports, most of them without a token.",
    source=f"{_POLICIES}#default-policies; https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Add a NetworkPolicy with podSelector {} and policyTypes [Ingress, Egress] to the namespace.",
)
def default_deny(stack: Stack) -> Violations:
    """Each namespace with a RayCluster has policies for all pods, for ingress and egress."""
    closed: dict[str, set[str | None]] = {}
    for policy in stack.of("NetworkPolicy"):
        if _empty(policy.root.at("spec", "podSelector")):
            closed.setdefault(policy.namespace or "default", set()).update(_types(policy))
    for namespace, cluster in stack.ray_namespaces().items():
        if missing := {"Ingress", "Egress"} - closed.get(namespace, set()):
            place = cluster.owner.root.at("metadata", "namespace")
            yield place.wrong(f"no NetworkPolicy for all its pods closes {' and '.join(sorted(missing))}")


def _opens(rule_: Node, ports: tuple[int, ...], protocol: str = "TCP") -> bool:
    """Whether a rule of a policy allows one of the ports: it names no ports, or a range that contains the port."""
    allowed = list(rule_.at("ports").items())
    same = [each for each in allowed if (each.at("protocol").text or "TCP") == protocol]
    return not allowed or any(_contains(each, port) for each in same for port in ports)


def _contains(range_: Node, port: int) -> bool:
    first = range_.at("port").number
    last = range_.at("endPort").number
    # A named port may have any number, and without a port all are allowed.
    return first is None or first <= port <= (first if last is None else last)


def _allows_egress(policy: Object, ports: tuple[int, ...], protocol: str) -> bool:
    return any(_opens(each, ports, protocol) for each in policy.root.at("spec", "egress").items())


@rule(
    "ray-egress-complete",
    Severity.HIGH,
    what="Where egress is denied, Ray can still reach DNS and the API server.",
    why="Without DNS no worker finds its head; without the API server the autoscaler and Volcano's gangs do not work.",
    source=_POLICIES,
    fix="Open port 53, protocol UDP (the default is TCP), to the cluster's DNS, and 443 or 6443 to the API server.",
)
def egress_complete(stack: Stack) -> Violations:
    """If a policy closes egress of pods of Ray, some policy of the namespace opens these ports, for whichever pods."""
    policies: dict[str, list[Object]] = {}
    for policy in stack.of("NetworkPolicy"):
        policies.setdefault(policy.namespace or "default", []).append(policy)
    for namespace, cluster in stack.ray_namespaces().items():
        closing = [policy for policy in policies.get(namespace, []) if "Egress" in _types(policy)]
        if not any(_selects_ray(policy.root.at("spec", "podSelector")) for policy in closing):
            continue
        needed = {"DNS": ((53,), "UDP"), **({"the API server": ((443, 6443), "TCP")} if cluster.scales else {})}
        for what, (ports, protocol) in needed.items():
            if not any(_allows_egress(policy, ports, protocol) for policy in closing):
                place = cluster.owner.root.at("metadata", "namespace")
                yield place.wrong(f"no NetworkPolicy lets its pods reach {what} ({protocol} {ports[0]})")


@rule(
    "net-ray-ports-closed",
    Severity.CRITICAL,
    what="No NetworkPolicy opens Ray's pods to everybody.",
    why="Whoever reaches the dashboard, the client's port or a worker can run programs.",
    source=f"{_POLICIES}; https://docs.ray.io/en/latest/ray-security/index.html",
    fix="List in `from` who may connect.",
    kinds=("NetworkPolicy",),
)
def ray_ports_closed(owner: Object) -> Violations:
    """A rule for pods of Ray, or for all pods of a namespace, sets `from`, and does not allow every address."""
    spec = owner.root.at("spec")
    if not _selects_ray(spec.at("podSelector")) or "Ingress" not in _types(owner):
        return
    for each in spec.at("ingress").items():
        yield from _from_anybody(each)


def _from_anybody(ingress: Node) -> Violations:
    peers = list(ingress.at("from").items())
    if not peers:
        yield ingress.at("from").wrong("anybody may connect")
    blocks = [peer.at("ipBlock", "cidr") for peer in peers]
    for block in blocks:
        if (network := _network(block)) is not None and network.prefixlen == 0:
            yield block.wrong(f"{block.shown()} contains every address")
            return
    networks = [network for block in blocks if (network := _network(block)) is not None]
    fourth = [each for each in networks if isinstance(each, ipaddress.IPv4Network)]
    sixth = [each for each in networks if isinstance(each, ipaddress.IPv6Network)]
    lengths = [
        *(each.prefixlen for each in ipaddress.collapse_addresses(fourth)),
        *(each.prefixlen for each in ipaddress.collapse_addresses(sixth)),
    ]
    if 0 in lengths:
        yield ingress.at("from").wrong("these blocks together contain every address")


def _network(cidr: Node) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr.text or "", strict=False)
    except ValueError:
        return None


@rule(
    "redis-ingress-scoped",
    Severity.HIGH,
    what="NetworkPolicies restrict who reaches Redis.",
    why="One password protects the GCS of every RayCluster there, and Sentinel obeys every client that has it.",
    source="https://redis.io/docs/latest/operate/oss_and_stack/management/security/#network-security",
    fix="List in `from` the namespaces of the RayClusters that keep their state there.",
    kinds=("NetworkPolicy",),
)
def redis_ingress_scoped(owner: Object) -> Violations:
    """A rule with the port number of Redis or Sentinel sets `from`, and does not allow every address."""
    for each in owner.root.at("spec", "ingress").items():
        numbered = [port for port in each.at("ports").items() if port.at("port").number is not None]
        if any(_contains(port, number) for port in numbered for number in _REDIS_PORTS):
            yield from _from_anybody(each)


@rule(
    "net-no-cloud-metadata",
    Severity.HIGH,
    what="Pods cannot get their node's credentials from the cloud.",
    why="On most clouds 169.254.169.254 gives them to every client.",
    source="https://kubernetes.io/docs/concepts/security/cloud-native-security/; MITRE ATT&CK T1552.005",
    fix="Add 169.254.0.0/16 to ipBlock.except.",
    kinds=("NetworkPolicy",),
)
def no_cloud_metadata(owner: Object) -> Violations:
    """No rule allows the address at port 80, where the metadata service listens."""
    for each in owner.root.at("spec", "egress").items():
        if not _opens(each, (80,)):
            continue
        if not list(each.at("to").items()):
            yield each.at("to").wrong("every address is allowed, with 169.254.169.254")
        for peer in each.at("to").items():
            block = peer.at("ipBlock")
            network = _network(block.at("cidr"))
            holes = [_network(hole) for hole in block.at("except").items()]
            if network and _METADATA in network and not any(hole and _METADATA in hole for hole in holes):
                yield block.at("cidr").wrong(f"{block.at('cidr').shown()} contains 169.254.169.254")


def _peers(owner: Object) -> Iterator[Node]:
    for direction, key in (("ingress", "from"), ("egress", "to")):
        for each in owner.root.at("spec", direction).items():
            yield from each.at(key).items()


@rule(
    "net-peer-not-empty",
    Severity.HIGH,
    what="No peer of a NetworkPolicy is every pod of every namespace.",
    why="`podSelector: {}` means every pod of the namespace, and `namespaceSelector: {}` of every namespace.",
    source=f"{_POLICIES}#behavior-of-to-and-from-selectors",
    fix="Give the selector labels.",
    kinds=("NetworkPolicy",),
)
def peer_not_empty(owner: Object) -> Violations:
    """Rejects peers that select all pods of all namespaces."""
    for peer in _peers(owner):
        everywhere = peer.at("namespaceSelector")
        if everywhere.is_set and _empty(everywhere) and _empty(peer.at("podSelector")):
            yield everywhere.wrong("is every pod of every namespace")
