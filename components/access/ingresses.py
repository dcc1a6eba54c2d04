"""The admission policy of Ingresses: a tenant's have its own host names, and no annotations with which a controller
would do more. Pure functions."""

from components.access.findings import Listed, defined
from components.access.neighbours import ANNOTATIONS, NO_CONTROLLER, harmless
from components.access.restricted import Restricted, by_namespace
from core.body import Body
from policies.cel import listed

_NGINX = "nginx.ingress.kubernetes.io/"

ALLOWED = (
    *("cert-manager.io/cluster-issuer", "cert-manager.io/issuer", "cert-manager.io/duration"),
    *("cert-manager.io/renew-before", "kubernetes.io/tls-acme", "kubernetes.io/ingress.allow-http"),
    *(
        f"{_NGINX}{each}"
        for each in (
            *("backend-protocol", "client-body-buffer-size", "client-max-body-size", "enable-cors"),
            *("force-ssl-redirect", "limit-connections", "limit-rps", "proxy-body-size", "proxy-buffer-size"),
            *("proxy-buffering", "proxy-connect-timeout", "proxy-read-timeout", "proxy-request-buffering"),
            *("proxy-send-timeout", "ssl-redirect", "whitelist-source-range", "allowlist-source-range"),
        )
    ),
)
"""Annotations of Ingresses that name no host, no Secret, no URL and no code of the controller, with values of one
word."""

_CONTROLLER = (
    "authorizer.group('networking.k8s.io').resource('ingresses').subresource('status').namespace(request.namespace)"
    ".check('update').allowed()"
)
"""CEL: whether the author is a controller of Ingresses, which may annotate them."""


_ONE_WORD = "'^[^\\\\s;{}]*$'"


def own_hosts(admitted: Restricted) -> Body:
    """The spec of the policy. It is for the namespaces whose tenants may have Ingresses."""
    hosts, further = by_namespace(admitted.hosts), by_namespace(admitted.annotations)
    own = f"{hosts}.exists(own, host == own || own.startsWith('*.') && host.endsWith(own.substring(1)))"
    rules = (
        Listed(
            "asked",
            "[object.spec.?rules.orValue([]).map(rule, rule.?host.orValue(''))"
            " + (has(object.spec.defaultBackend) ? ['defaultBackend'] : [])]"
            " + object.spec.?tls.orValue([]).map(tls, tls.?hosts.orValue([]))",
            f"it.filter(host, !{own})",
            "item == '' ? 'a rule without a host' : item",
            ": each rule and tls needs a host of this tenant, and there may be no defaultBackend. Ask for others in "
            "network.ingressHosts of the tenant in the stack file. Its hosts: ",
            f"{hosts}.join(', ')",
        ),
        Listed(
            "annotated",
            "[object.metadata.?annotations.orValue({})]",
            f"it.filter(key, !({harmless('key')} || key in {further}"
            f" || key in {listed(ALLOWED)} && it[key].matches({_ONE_WORD}))).map(key, key + '=' + it[key])",
            "'annotation ' + item.split('=')[0]",
            " may give the controller host names, Secrets or code of others: remove it, or ask for it in "
            "network.ingressAnnotations of the tenant in the stack file. Allowed with values of one word: "
            f"{', '.join(ALLOWED)}; with any, those that begin with {', '.join(ANNOTATIONS)}",
            unless=_CONTROLLER,
        ),
        Listed(
            "kept",
            "[object.metadata]",
            "it.?finalizers.orValue([])",
            "'finalizer ' + item",
            " keeps the Ingress, and with it the namespace, for ever: remove it",
            unless=_CONTROLLER,
        ),
    )
    return {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["networking.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["ingresses"],
                }
            ]
        },
        "matchConditions": [NO_CONTROLLER],
        "variables": defined(rules),
        "validations": [rule.validation for rule in rules],
    }
