"""What the settings of Redis become in Kubernetes, beside its pods. Pure functions."""

from collections.abc import Sequence
from typing import Any

from core.pod_security import level_labels

from ..tls.settings import IssuerSettings
from .connection import CA_KEY, PASSWORD_KEY, PASSWORDS_KEY, SECRET, USERNAME_KEY
from .names import (
    CERTIFICATE_SECRET,
    EXPORTER_PORT,
    LABELS,
    NAME,
    REDIS_PORT,
    SCRIPTS,
    SELECTOR,
    SENTINEL_PORT,
    SENTINELS,
    USERS_SECRET,
)
from .pods import scripts, template
from .settings import RedisSettings, RedisStorageSettings
from .users import EXPORTER_USER, NODES_USER, Passwords, newest_first, redis_acl, sentinel_acl

Body = dict[str, Any]

USERS_KEYS = {NODES_USER: "passwords", EXPORTER_USER: "exporter-password"}
"""Where the Secret of the users has passwords themselves."""


def namespace(name: str) -> Body:
    """The Namespace that is made for it, whose pods keep to the strictest level."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**LABELS, **level_labels("restricted")}},
    }


def users_secret(texts: Any) -> Body:
    """The Secret with who may do what. `texts`: what `users_files` makes, or what will become it."""
    return _secret(USERS_SECRET, texts)


def users_files(passwords: Passwords) -> dict[str, str]:
    """The files that nodes read: ACLs, and the passwords of their own user; the exporter's beside them."""
    exporter = passwords.get(EXPORTER_USER)
    return {
        "redis.acl": redis_acl(passwords),
        "sentinel.acl": sentinel_acl(passwords),
        USERS_KEYS[NODES_USER]: newest_first(passwords[NODES_USER]),
        **({USERS_KEYS[EXPORTER_USER]: exporter[-1]} if exporter else {}),
    }


def tenant_secret(username: str, passwords: Sequence[str], authority: str | None = None) -> dict[str, str]:
    """What a tenant's Secret holds. `passwords`: all that are taken, the oldest first; `authority`: PEM."""
    return {
        USERNAME_KEY: username,
        PASSWORD_KEY: passwords[-1],
        PASSWORDS_KEY: newest_first(passwords),
        **({CA_KEY: authority} if authority else {}),
    }


def secret(texts: Any) -> Body:
    """The Secret in a tenant's namespace. `texts`: what `tenant_secret` makes, or what will become it."""
    return _secret(SECRET, texts)


def certificate_secret(authority: Any, certificate: Any, key: Any) -> Body:
    """The Secret with the nodes' certificate, where the stack makes it. All PEM, or what will become it."""
    return _secret(CERTIFICATE_SECRET, {"ca.crt": authority, "tls.crt": certificate, "tls.key": key})


def _secret(name: str, texts: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "stringData": texts,
    }


def requested_certificate(issuer: IssuerSettings, names: Sequence[str]) -> Body:
    """The Certificate of cert-manager that makes the same Secret."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": CERTIFICATE_SECRET, "labels": dict(LABELS)},
        "spec": {
            "secretName": CERTIFICATE_SECRET,
            "dnsNames": list(names),
            # Nodes are each other's clients, too.
            "usages": ["server auth", "client auth"],
            "privateKey": {"algorithm": "ECDSA", "size": 256},
            "issuerRef": {"group": "cert-manager.io", **issuer.model_dump()},
        },
    }


def scripts_config_map() -> Body:
    """The ConfigMap with the scripts of the containers."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SCRIPTS, "labels": dict(LABELS)},
        "data": scripts(),
    }


def services(settings: RedisSettings) -> list[Body]:
    """The Service that gives each node its name, and the one of all Sentinels."""
    sentinel = {"name": "sentinel", "port": SENTINEL_PORT, "targetPort": "sentinel"}
    ports = [
        {"name": "redis", "port": REDIS_PORT, "targetPort": "redis"},
        *([sentinel] if settings.mode == "managed" else []),
        *([{"name": "metrics", "port": EXPORTER_PORT, "targetPort": "metrics"}] if settings.exporter else []),
    ]
    # Nodes that are not ready yet have to find each other.
    found = {"selector": dict(SELECTOR), "publishNotReadyAddresses": True}
    nodes = {"clusterIP": "None", **found, "ports": ports}
    # A Sentinel answers also where the node beside it is down or behind.
    sentinels = {**found, "ports": [sentinel]}
    return [_service(NAME, nodes), *([_service(SENTINELS, sentinels)] if settings.mode == "managed" else [])]


def _service(name: str, spec: Body) -> Body:
    # Pulumi would wait for endpoints, which come with the StatefulSet.
    metadata = {"name": name, "labels": dict(LABELS), "annotations": {"pulumi.com/skipAwait": "true"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def stateful_set(settings: RedisSettings, namespace: str, clusters: int, priority_class: str | None = None) -> Body:
    """The StatefulSet. `namespace` as it is in the nodes' names; `clusters`: how many RayClusters use it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "serviceName": NAME,
            "replicas": settings.nodes,
            # All at once: after all were lost, none is ready before a majority is there.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": dict(SELECTOR)},
            "template": template(settings, namespace, clusters, priority_class),
            "volumeClaimTemplates": [
                {"metadata": {"name": "data", "labels": dict(LABELS)}, "spec": claim(settings.storage)}
            ],
            # A StatefulSet that is replaced finds its data again. They go with the namespace.
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
    }


def claim(storage: RedisStorageSettings) -> Body:
    """The spec of a PersistentVolumeClaim."""
    named = {"storageClassName": storage.storage_class_name} if storage.storage_class_name else {}
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage.size}}, **named}


def disruption_budget() -> Body:
    """A node at a time is drained: two would be the majority."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": dict(SELECTOR)},
            # A node that is not ready keeps nobody's data: it may go.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
