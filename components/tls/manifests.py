"""TLS between Ray's processes: its settings, Kubernetes objects, and parts of each pod. Pure functions."""

from typing import Any, Literal

from components import payloads
from core.body import Body
from core.types import DnsSubdomain, Settings


class IssuerSettings(Settings):
    """An issuer of cert-manager that may certify an authority (`isCA`)."""

    name: DnsSubdomain
    """Name of the issuer."""

    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """`Issuer`: it is in the tenant's namespace. `ClusterIssuer`: it is for all namespaces."""


class TlsSettings(Settings):
    """TLS between the processes of a RayCluster, and for its clients. Dashboard and Serve still use HTTP."""

    issuer: IssuerSettings | None = None
    """Issuer of the cluster's authority. Default: none; the stack creates it, its key a secret of Pulumi."""


FOLDER = "/etc/ray/tls"
"""Folder of Ray's containers with their certificate, its key, and the certificate of the authority."""

_AUTHORITY = "/etc/ray/authority"

_CERTIFICATE_VOLUME = "ray-tls"
_AUTHORITY_VOLUME = "ray-authority"

LIFETIME_HOURS = 10 * 365 * 24
"""Lifetime of an authority. A running pod cannot change its certificate, and pods of another authority cannot connect
to it. So a cluster cannot outlive its authority."""


def secret_name(cluster: str) -> str:
    """Name of the Secret with the authority of a cluster, `tls.crt` and `tls.key`."""
    return f"{cluster}-ray-authority"


def authority_secret(cluster: str, certificate: Any, key: Any) -> Body:
    """The Secret of an authority that the stack creates. `certificate`, `key`: PEM, or Outputs."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": secret_name(cluster)},
        "stringData": {"tls.crt": certificate, "tls.key": key},
    }


def authority_certificate(cluster: str, issuer: IssuerSettings) -> Body:
    """The Certificate with which cert-manager creates the same Secret."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": secret_name(cluster)},
        "spec": {
            "isCA": True,
            "commonName": cluster,
            "secretName": secret_name(cluster),
            "duration": f"{LIFETIME_HOURS}h",
            # A new key would be another authority: new pods could not connect to running pods.
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never"},
            "issuerRef": {"group": "cert-manager.io", **issuer.model_dump()},
        },
    }


def volumes(cluster: str) -> list[Body]:
    return [
        {"name": _CERTIFICATE_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": _AUTHORITY_VOLUME, "secret": {"secretName": secret_name(cluster)}},
    ]


def init_container(head: bool, image: str, pull_policy: str) -> Body:
    """The container that creates the pod's certificate. Only this container has the authority's key."""
    script = payloads.text("pod_certificate")
    amounts = {"cpu": "200m", "memory": "256Mi"}
    return {
        "name": "certificate",
        "image": image,
        "imagePullPolicy": pull_policy,
        "command": ["python", "-c", script, "head" if head else "worker"],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "AUTHORITY", "value": _AUTHORITY},
            {"name": "TARGET", "value": FOLDER},
        ],
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "volumeMounts": [
            {"name": _AUTHORITY_VOLUME, "mountPath": _AUTHORITY, "readOnly": True},
            {"name": _CERTIFICATE_VOLUME, "mountPath": FOLDER},
        ],
    }


ENVIRONMENT = {
    "RAY_USE_TLS": "1",
    "RAY_TLS_SERVER_CERT": f"{FOLDER}/tls.crt",
    "RAY_TLS_SERVER_KEY": f"{FOLDER}/tls.key",
    "RAY_TLS_CA_CERT": f"{FOLDER}/ca.crt",
}
"""Ray's environment variables for TLS (docs.ray.io, Ray Core, Configuring Ray, TLS authentication)."""

MOUNT: Body = {"name": _CERTIFICATE_VOLUME, "mountPath": FOLDER, "readOnly": True}
"""The mount of the certificate in Ray's containers."""
