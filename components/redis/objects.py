"""The objects of a Redis other than its StatefulSet, Secrets and NetworkPolicies. Pure functions."""

from .backup import backup_objects
from .manifests import Body, disruption_budget, requested_certificate, scripts_config_map, services
from .names import names_of_nodes
from .settings import RedisSettings


def objects(settings: RedisSettings, namespace: str, clusters: int) -> list[Body]:
    """The ConfigMap of its scripts, its Services, and, if set, backups and a requested certificate.

    `namespace` as it is in the nodes' names; `clusters`: how many RayClusters use it.
    """
    return [
        scripts_config_map(),
        *services(settings),
        *([disruption_budget()] if settings.mode == "managed" else []),
        *(backup_objects(settings, settings.backup, namespace, clusters) if settings.backup else []),
        *_certificate(settings, namespace),
    ]


def _certificate(settings: RedisSettings, namespace: str) -> list[Body]:
    """The Certificate of cert-manager, if the settings name an issuer."""
    if settings.tls is None or settings.tls.issuer is None:
        return []
    names = names_of_nodes(namespace, settings.nodes, settings.cluster_domain)
    return [requested_certificate(settings.tls.issuer, names)]
