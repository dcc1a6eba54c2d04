"""Renders a tenant's namespace, quota and limits. Pure functions."""

import json
from collections.abc import Mapping
from typing import Any

from core.pod_security import PodSecurityLevel, level_labels

from .settings import ENTRIES, OWN, LimitSettings, QuotaSettings

Body = dict[str, Any]

NAME = "ray-platform"
"""Name of the ResourceQuota and of the LimitRange. A namespace may also have others."""

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
    """The Namespace, with labels for its Pod Security level and its owner."""
    whose = {"tenant": tenant, "owner": owner, "cost-center": cost_center}
    own = {f"{OWN}/{key}": value for key, value in whose.items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**(labels or {}), **own, **level_labels(pod_security)}},
    }


def hard(settings: QuotaSettings) -> dict[str, str]:
    """The entries of a ResourceQuota."""
    configured = settings.model_dump(by_alias=True, exclude_none=True)
    entries = {
        entry: str(configured[key]) for key, entries in ENTRIES.items() if key in configured for entry in entries
    }
    return {**entries, **settings.hard}


def counted(settings: QuotaSettings) -> list[str]:
    """The entries that count objects of KubeRay's kinds."""
    return [entry for entry in hard(settings) if entry.startswith("count/") and entry.endswith(".ray.io")]


def quota(settings: QuotaSettings | None, limits: LimitSettings | None) -> dict[str, Body]:
    """The ResourceQuota and the LimitRange, if they are set."""
    bodies = {
        "resource-quota": resource_quota(settings) if settings else None,
        "limit-range": limit_range(limits) if limits else None,
    }
    return {part: body for part, body in bodies.items() if body is not None}


def resource_quota(settings: QuotaSettings) -> Body:
    """The ResourceQuota. Pulumi waits until Kubernetes counts objects of KubeRay's kinds.

    Until then the API server refuses these objects ("status unknown for quota"; apiserver
    pkg/admission/plugin/resourcequota/controller.go). Kubernetes looks for new kinds every 30 seconds, and counts their
    objects when it next syncs the quota (kube-controller-manager --resource-quota-sync-period: 5m).
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
    """The LimitRange for containers; None if it has no values."""
    parts = settings.model_dump(by_alias=True, exclude_none=True)
    configured = {key: amounts for key, amounts in parts.items() if amounts}
    if not configured:
        return None
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": NAME},
        "spec": {"limits": [{"type": "Container", **configured}]},
    }
