"""What a tenant's namespace, quota and limits become in Kubernetes. Pure functions."""

from collections.abc import Mapping
from typing import Any

from ..pod_security import PodSecurityLevel, level_labels
from .settings import ENTRIES, OWN, LimitSettings, QuotaSettings

Body = dict[str, Any]

NAME = "ray-platform"
"""Of the ResourceQuota and of the LimitRange. A namespace may have others beside them."""


def namespace(
    name: str,
    tenant: str,
    pod_security: PodSecurityLevel,
    owner: str | None = None,
    cost_center: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Body:
    """The Namespace, with the level that its pods keep to and whose it is."""
    whose = {"tenant": tenant, "owner": owner, "cost-center": cost_center}
    said = {f"{OWN}/{key}": value for key, value in whose.items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**(labels or {}), **said, **level_labels(pod_security)}},
    }


def hard(settings: QuotaSettings) -> dict[str, str]:
    """The entries of a ResourceQuota."""
    said = settings.model_dump(by_alias=True, exclude_none=True)
    entries = {entry: str(said[key]) for key, entries in ENTRIES.items() if key in said for entry in entries}
    return {**entries, **settings.hard}


def resource_quota(settings: QuotaSettings) -> Body:
    """The ResourceQuota."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME},
        "spec": {"hard": hard(settings)},
    }


def limit_range(settings: LimitSettings) -> Body | None:
    """The LimitRange for containers; None where nothing is limited."""
    parts = settings.model_dump(by_alias=True, exclude_none=True)
    said = {key: amounts for key, amounts in parts.items() if amounts}
    if not said:
        return None
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": NAME},
        "spec": {"limits": [{"type": "Container", **said}]},
    }
