"""Services and Ingresses: who can reach them, and which pods they select."""

from collections.abc import Mapping

from core.pods import RAY, RAY_CLUSTERS
from core.types import Settings
from policies.cel import HEAD, WITH_RAY_CLUSTERS, CelCheck, listed
from policies.rule import Severity, Violations, rule
from policies.values import Node, Object
from policies.walk import Stack, ray_clusters

_SERVICES = (("", "Service"), (RAY, "RayService"))
_OF_KINDS = ("Service", "RayService")
_PASSTHROUGH = "nginx.ingress.kubernetes.io/ssl-passthrough"
_CERTIFICATE = "alb.ingress.kubernetes.io/certificate-arn"
_OF_CONTROLLERS = (
    "ray.io/",
    "volcano.sh/",
    "statefulset.kubernetes.io/",
    "apps.kubernetes.io/",
    "batch.kubernetes.io/",
    "jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
)
"""Prefixes of labels that controllers give pods, such as the name of the one pod of a StatefulSet."""


def _spec(owner: Object) -> Node:
    """The spec of a Service, or of the Service for Ray Serve in a RayService."""
    return owner.root.at("spec", "serveService", "spec") if owner.kind == "RayService" else owner.root.at("spec")


def _field_in_cel(name: str) -> str:
    return f"object.spec.?{name}.or(object.spec.?serveService.?spec.?{name})"


class PublicServices(Settings):
    """Options of net-no-public-service."""

    allowed: tuple[str, ...] = ()
    """Names of Services that may be reached from outside."""


def _no_public_service_in_cel(options: PublicServices) -> str:
    return (
        f"!({_field_in_cel('type')}.orValue('') in ['NodePort', 'LoadBalancer'])"
        f" || object.metadata.name in {listed(options.allowed)}"
    )


@rule(
    "net-no-public-service",
    Severity.HIGH,
    what="Services are reached from inside the cluster.",
    why="A LoadBalancer has an address of its own, often on the internet and without a login.",
    source="https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types",
    fix="Use type ClusterIP and an Ingress with TLS and a login, or allow the Service in the rule's options.",
    kinds=_OF_KINDS,
    cel=CelCheck(_SERVICES, _no_public_service_in_cel),
)
def no_public_service(owner: Object, options: PublicServices) -> Violations:
    """Rejects NodePort and LoadBalancer, also in `serveService` of a RayService."""
    service_type = _spec(owner).at("type")
    if service_type.text in ("NodePort", "LoadBalancer") and owner.name not in options.allowed:
        yield service_type.wrong(f"is {service_type.shown()}")


@rule(
    "net-no-external-ips",
    Severity.CRITICAL,
    what="No Service takes addresses that are not its own.",
    why="Whoever may create one gets the traffic of pods to that address (CVE-2020-8554).",
    source="https://github.com/kubernetes/kubernetes/issues/97076",
    fix="Remove spec.externalIPs.",
    kinds=("Service", *RAY_CLUSTERS),
    cel=CelCheck(
        (("", "Service"), *WITH_RAY_CLUSTERS),
        f"{_field_in_cel('externalIPs')}.orValue([]).size() == 0 && variables.ray"
        f".all(ray, {HEAD}.?headService.?spec.?externalIPs.orValue([]).size() == 0)",
    ),
)
def no_external_ips(owner: Object) -> Violations:
    """Rejects `externalIPs`, also in `serveService` of a RayService and in `headService` of a RayCluster."""
    services = [_spec(owner)] if owner.kind in _OF_KINDS else []
    services += [each.spec.at("headGroupSpec", "headService", "spec") for each in ray_clusters(owner)]
    for each in services:
        for address in each.at("externalIPs").items():
            yield address.wrong(f"takes {address.shown()}")


@rule(
    "net-ingress-tls",
    Severity.HIGH,
    what="Ingresses speak TLS.",
    why="Otherwise Ray's token passes the network in plain text.",
    source="https://kubernetes.io/docs/concepts/services-networking/ingress/#tls",
    fix="Set spec.tls with the hosts of all rules.",
    kinds=("Ingress",),
    cel=CelCheck(
        (("networking.k8s.io", "Ingress"),),
        f"object.metadata.?annotations[?'{_PASSTHROUGH}'].orValue('') == 'true'"
        f" || object.metadata.?annotations[?'{_CERTIFICATE}'].hasValue()"
        " || (object.spec.?rules.orValue([]).size() > 0 || object.spec.?tls.orValue([]).size() > 0)"
        " && object.spec.?rules.orValue([]).all(rule, has(rule.host) && object.spec.?tls.orValue([])"
        ".exists(tls, rule.host in tls.?hosts.orValue([])))",
    ),
)
def ingress_tls(owner: Object) -> Violations:
    """The host of every rule is in `tls`, unless the pods or the load balancer terminate TLS. Without rules, `tls` is
    set."""
    if owner.annotation(_PASSTHROUGH).text == "true" or owner.annotation(_CERTIFICATE).is_set:
        return
    tls, rules = (list(owner.root.at("spec", key).items()) for key in ("tls", "rules"))
    if not tls and not rules:
        yield owner.root.at("spec", "tls").wrong("is not set: the default backend has no TLS for any host")
    secured = {host.text for each in tls for host in each.at("hosts").items()}
    for each in rules:
        if each.at("host").text not in secured:
            yield each.at("host").wrong(
                f"{each.at('host').shown() if each.at('host').is_set else 'any host'} has no TLS"
            )


@rule(
    "net-service-selects",
    Severity.MEDIUM,
    what="Services select pods of the stack.",
    why="A typing error in a selector is noticed only when requests fail.",
    source="https://kubernetes.io/docs/concepts/services-networking/service/",
    fix="Let spec.selector be labels of a pod template in the same namespace.",
)
def service_selects(stack: Stack) -> Violations:
    """Some pod template of the namespace has the labels. Labels that operators set are skipped."""
    templates: dict[str | None, list[Mapping[str, str | None]]] = {}
    for pod in stack.pods():
        labels = {key: value.text for key, value in pod.template.at("metadata", "labels").entries()}
        templates.setdefault(pod.owner.namespace, []).append(labels)
    for service in stack.of("Service"):
        selector = service.root.at("spec", "selector")
        required = {key: value.text for key, value in selector.entries()}
        set_by_operator = any(key.startswith(_OF_CONTROLLERS) for key in required)
        in_namespace = templates.get(service.namespace, [])
        if not required or set_by_operator or not in_namespace or service.group:
            continue
        if not any(all(labels.get(key) == value for key, value in required.items()) for labels in in_namespace):
            yield selector.wrong("no pod template of its namespace has these labels")
