"""The rules about what is reached from outside, in CEL (policies/rules/network.py)."""

from .cel import listed
from .rule import AdmissionRule

_SERVICES = (("", "Service"),)

RULES: tuple[AdmissionRule, ...] = (
    AdmissionRule(
        "net-no-public-service",
        _SERVICES,
        lambda options: (
            "!(object.spec.?type.orValue('') in ['NodePort', 'LoadBalancer'])"
            f" || object.metadata.name in {listed(options['allowed'])}"
        ),
    ),
    AdmissionRule("net-no-external-ips", _SERVICES, "object.spec.?externalIPs.orValue([]).size() == 0"),
    AdmissionRule(
        "net-ingress-tls",
        (("networking.k8s.io", "Ingress"),),
        "object.metadata.?annotations[?'nginx.ingress.kubernetes.io/ssl-passthrough'].orValue('') == 'true'"
        " || object.metadata.?annotations[?'alb.ingress.kubernetes.io/certificate-arn'].hasValue()"
        " || object.spec.?rules.orValue([]).all(rule, has(rule.host) && object.spec.?tls.orValue([])"
        ".exists(tls, rule.host in tls.?hosts.orValue([])))",
    ),
)
