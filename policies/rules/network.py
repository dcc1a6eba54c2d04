"""Who reaches Ray, and what Ray reaches."""

import ipaddress
from collections.abc import Iterator, Mapping

from core.types import Settings

from ..rule import Severity, Violations, rule
from ..values import Node
from ..walk import Object, Stack

_POLICIES = "https://kubernetes.io/docs/concepts/services-networking/network-policies/"
_RAY_LABELS = "ray.io/"
_PASSED_THROUGH = "nginx.ingress.kubernetes.io/ssl-passthrough"
_CERTIFICATE = "alb.ingress.kubernetes.io/certificate-arn"
_REDIS_PORTS = (6379, 26379)
_METADATA = ipaddress.ip_address("169.254.169.254")


def _selector_names_ray(selector: Node) -> bool:
    keys = [key for key, _ in selector.at("matchLabels").entries()]
    keys += [each.at("key").text or "" for each in selector.at("matchExpressions").items()]
    return any(key.startswith(_RAY_LABELS) for key in keys)


def _empty(selector: Node) -> bool:
    return not any(_said(value) for _, value in selector.entries())


def _said(value: Node) -> bool:
    return bool(list(value.entries()) or list(value.items()))


def _types(policy: Object) -> set[str | None]:
    said = [each.text for each in policy.root.at("spec", "policyTypes").items()]
    # As the API server defaults it: always Ingress, and Egress where there are such rules.
    return set(said) or {"Ingress", *(["Egress"] if policy.root.at("spec", "egress").said else [])}


@rule(
    "ray-default-deny",
    Severity.HIGH,
    what="Where Ray runs nothing passes the network that was not opened.",
    why="Ray's processes listen on random ports, most of which ask for no token.",
    source=f"{_POLICIES}#default-policies; https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Add a NetworkPolicy with podSelector {} and policyTypes [Ingress, Egress] to the namespace.",
)
def default_deny(stack: Stack) -> Violations:
    """A policy for all pods, both ways, in each namespace with a RayCluster."""
    closed: dict[str, set[str | None]] = {}
    for policy in stack.of("NetworkPolicy"):
        if _empty(policy.root.at("spec", "podSelector")):
            closed.setdefault(policy.namespace or "default", set()).update(_types(policy))
    for namespace, cluster in stack.ray_namespaces().items():
        if missing := {"Ingress", "Egress"} - closed.get(namespace, set()):
            place = cluster.owner.root.at("metadata", "namespace")
            yield place.wrong(f"no NetworkPolicy for all its pods closes {' and '.join(sorted(missing))}")


def _opens(rule_: Node, ports: tuple[int, ...]) -> bool:
    """Whether a rule of a policy is for one of the ports: it says no ports, or a range that holds it."""
    said = list(rule_.at("ports").items())
    return not said or any(_holds(each, port) for each in said for port in ports)


def _holds(range_: Node, port: int) -> bool:
    first = range_.at("port").number
    last = range_.at("endPort").number
    # A port that only has a name, or none at all, may be any.
    return first is None or first <= port <= (first if last is None else last)


def _goes_out(policy: Object, ports: tuple[int, ...]) -> bool:
    return any(_opens(each, ports) for each in policy.root.at("spec", "egress").items())


@rule(
    "ray-egress-complete",
    Severity.HIGH,
    what="Where nothing may leave, Ray can still find names and ask the API server.",
    why="Without DNS no worker finds its head; without the API server the autoscaler and Volcano's gangs stand still.",
    source=_POLICIES,
    fix="Open port 53 to the cluster's DNS and 443 or 6443 to the API server.",
)
def egress_complete(stack: Stack) -> Violations:
    """Some policy of the namespace opens them, where one closes egress. Which pods it is for is not looked at."""
    policies: dict[str, list[Object]] = {}
    for policy in stack.of("NetworkPolicy"):
        policies.setdefault(policy.namespace or "default", []).append(policy)
    for namespace, cluster in stack.ray_namespaces().items():
        there = [policy for policy in policies.get(namespace, []) if "Egress" in _types(policy)]
        if not any(_empty(policy.root.at("spec", "podSelector")) for policy in there):
            continue
        needed = {"DNS": (53,), **({"the API server": (443, 6443)} if cluster.scales else {})}
        for what, ports in needed.items():
            if not any(_goes_out(policy, ports) for policy in there):
                place = cluster.owner.root.at("metadata", "namespace")
                yield place.wrong(f"no NetworkPolicy lets its pods reach {what}")


@rule(
    "net-ray-ports-closed",
    Severity.CRITICAL,
    what="No NetworkPolicy opens Ray's pods to everybody.",
    why="Who reaches the dashboard, the client's port or a worker runs programs.",
    source=f"{_POLICIES}; https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Say in `from` who may connect.",
    kinds=("NetworkPolicy",),
)
def ray_ports_closed(owner: Object) -> Violations:
    """A rule for pods of Ray says from where, and not from any address."""
    spec = owner.root.at("spec")
    if not _selector_names_ray(spec.at("podSelector")):
        return
    for each in spec.at("ingress").items():
        yield from _from_anybody(each)


def _from_anybody(ingress: Node) -> Violations:
    peers = list(ingress.at("from").items())
    if not peers:
        yield ingress.at("from").wrong("anybody may connect")
    for peer in peers:
        if _is_any(peer.at("ipBlock", "cidr")):
            yield peer.at("ipBlock", "cidr").wrong(f"{peer.at('ipBlock', 'cidr').shown()} is every address")


def _is_any(cidr: Node) -> bool:
    network = _network(cidr)
    return network is not None and network.prefixlen == 0


def _network(cidr: Node) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr.text or "", strict=False)
    except ValueError:
        return None


@rule(
    "redis-ingress-scoped",
    Severity.HIGH,
    what="NetworkPolicies say who reaches Redis.",
    why="What the GCS of every RayCluster knows is behind one password there, and Sentinel obeys whoever has it.",
    source="https://redis.io/docs/latest/operate/oss_and_stack/management/security/#network-security",
    fix="Say in `from` the namespaces of the RayClusters that keep their state there.",
    kinds=("NetworkPolicy",),
)
def redis_ingress_scoped(owner: Object) -> Violations:
    """A rule with the number of Redis' or Sentinel's port says from where, and not from any address."""
    for each in owner.root.at("spec", "ingress").items():
        numbered = [port for port in each.at("ports").items() if port.at("port").number is not None]
        if any(_holds(port, number) for port in numbered for number in _REDIS_PORTS):
            yield from _from_anybody(each)


@rule(
    "net-no-cloud-metadata",
    Severity.HIGH,
    what="Pods cannot ask the cloud for their node's credentials.",
    why="169.254.169.254 gives them to whoever asks, on most clouds.",
    source="https://kubernetes.io/docs/concepts/security/cloud-native-security/; MITRE ATT&CK T1552.005",
    fix="Add 169.254.0.0/16 to ipBlock.except.",
    kinds=("NetworkPolicy",),
)
def no_cloud_metadata(owner: Object) -> Violations:
    """No block of addresses that may be reached at port 80, where it answers, holds it."""
    for each in owner.root.at("spec", "egress").items():
        if not _opens(each, (80,)):
            continue
        for peer in each.at("to").items():
            block = peer.at("ipBlock")
            network = _network(block.at("cidr"))
            holes = [_network(hole) for hole in block.at("except").items()]
            if network and _METADATA in network and not any(hole and _METADATA in hole for hole in holes):
                yield block.at("cidr").wrong(f"{block.at('cidr').shown()} holds 169.254.169.254")


class PublicServices(Settings):
    """Options of net-no-public-service."""

    allowed: tuple[str, ...] = ()
    """Names of Services that may be reached from outside."""


@rule(
    "net-no-public-service",
    Severity.HIGH,
    what="Services are reached from inside the cluster.",
    why="A LoadBalancer has an address of its own, often on the internet, with no login before it.",
    source="https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types",
    fix="Use type ClusterIP and an Ingress with TLS and a login, or allow the Service in the rule's options.",
    kinds=("Service",),
)
def no_public_service(owner: Object, options: PublicServices) -> Violations:
    """Neither NodePort nor LoadBalancer."""
    said = owner.root.at("spec", "type")
    if said.text in ("NodePort", "LoadBalancer") and owner.name not in options.allowed:
        yield said.wrong(f"is {said.shown()}")


@rule(
    "net-no-external-ips",
    Severity.CRITICAL,
    what="No Service takes addresses that are not its own.",
    why="Whoever may make one gets what pods send to that address (CVE-2020-8554).",
    source="https://github.com/kubernetes/kubernetes/issues/97076",
    fix="Remove spec.externalIPs.",
    kinds=("Service",),
)
def no_external_ips(owner: Object) -> Violations:
    """No `externalIPs`."""
    for address in owner.root.at("spec", "externalIPs").items():
        yield address.wrong(f"takes {address.shown()}")


@rule(
    "net-ingress-tls",
    Severity.HIGH,
    what="Ingresses speak TLS.",
    why="Ray's token passes the network in plain text otherwise.",
    source="https://kubernetes.io/docs/concepts/services-networking/ingress/#tls",
    fix="Set spec.tls with the hosts of all rules.",
    kinds=("Ingress",),
)
def ingress_tls(owner: Object) -> Violations:
    """Every rule's host is in `tls`, unless pods speak TLS themselves, or the load balancer has the certificate."""
    if owner.annotation(_PASSED_THROUGH).text == "true" or owner.annotation(_CERTIFICATE).said:
        return
    secured = {host.text for each in owner.root.at("spec", "tls").items() for host in each.at("hosts").items()}
    for each in owner.root.at("spec", "rules").items():
        if each.at("host").text not in secured:
            yield each.at("host").wrong(f"{each.at('host').shown() if each.at('host').said else 'any host'} has no TLS")


@rule(
    "net-service-selects",
    Severity.MEDIUM,
    what="Services lead to pods of the stack.",
    why="A typing error in a selector is seen only when nobody answers.",
    source="https://kubernetes.io/docs/concepts/services-networking/service/",
    fix="Let spec.selector be labels of a pod template in the same namespace.",
)
def service_selects(stack: Stack) -> Violations:
    """Some pod template of the namespace has the labels, unless they are ones that operators give."""
    templates: dict[str | None, list[Mapping[str, object]]] = {}
    for pod in stack.pods():
        templates.setdefault(pod.owner.namespace, []).append(pod.template.at("metadata", "labels").value or {})
    for service in stack.of("Service"):
        selector = service.root.at("spec", "selector")
        wanted = {key: value.text for key, value in selector.entries()}
        made = any(key.startswith(_RAY_LABELS) for key in wanted)
        in_namespace = templates.get(service.namespace, [])
        if not wanted or made or not in_namespace or service.group:
            continue
        if not any(all(labels.get(key) == value for key, value in wanted.items()) for labels in in_namespace):
            yield selector.wrong("no pod template of its namespace has these labels")


def _peers(owner: Object) -> Iterator[Node]:
    for direction, key in (("ingress", "from"), ("egress", "to")):
        for each in owner.root.at("spec", direction).items():
            yield from each.at(key).items()


@rule(
    "net-peer-not-empty",
    Severity.HIGH,
    what="Peers of NetworkPolicies say who they are.",
    why="`podSelector: {}` means every pod of the namespace, and `namespaceSelector: {}` of every namespace.",
    source=f"{_POLICIES}#behavior-of-to-and-from-selectors",
    fix="Give the selector labels.",
    kinds=("NetworkPolicy",),
)
def peer_not_empty(owner: Object) -> Violations:
    """No peer that is every namespace, with all its pods."""
    for peer in _peers(owner):
        everywhere = peer.at("namespaceSelector")
        if everywhere.said and _empty(everywhere) and _empty(peer.at("podSelector")):
            yield everywhere.wrong("is every pod of every namespace")
