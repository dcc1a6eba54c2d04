"""What a tenant's namespace, quota and limits become in Kubernetes. Pure functions."""

import json
from collections.abc import Mapping
from typing import Any

from core.pod_security import PodSecurityLevel, level_labels

from .settings import ENTRIES, OWN, LimitSettings, QuotaSettings

Body = dict[str, Any]

NAME = "ray-platform"
"""Of the ResourceQuota and of the LimitRange. A namespace may have others beside them."""

ESCAPED = r"\."
"""A dot in a name, in a JSONPath."""


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


def counted(settings: QuotaSettings) -> list[str]:
    """The entries that count objects of KubeRay's kinds."""
    return [entry for entry in hard(settings) if entry.startswith("count/") and entry.endswith(".ray.io")]


def quota(settings: QuotaSettings | None, limits: LimitSettings | None) -> dict[str, Body]:
    """The ResourceQuota and the LimitRange, those that there are."""
    bodies = {
        "resource-quota": resource_quota(settings) if settings else None,
        "limit-range": limit_range(limits) if limits else None,
    }
    return {part: body for part, body in bodies.items() if body is not None}


def resource_quota(settings: QuotaSettings) -> Body:
    """The ResourceQuota. It is not ready before objects of KubeRay's kinds are counted.

    Until then the API server refuses each of them ("status unknown for quota"; apiserver
    pkg/admission/plugin/resourcequota/controller.go). Kubernetes looks every 30 seconds for kinds that are new, and
    counts their objects when it next syncs the quota (kube-controller-manager --resource-quota-sync-period: 5m).
    """
    metadata: Body = {"name": NAME}
    if entries := counted(settings):
        known = [f"jsonpath={{.status.used.{entry.replace('.', ESCAPED)}}}" for entry in entries]
        metadata["annotations"] = {"pulumi.com/waitFor": json.dumps(known)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
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
