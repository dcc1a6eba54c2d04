"""The guard of Volcano's CRDs. States refer to `_is_somebodys` by this path."""

from collections.abc import Mapping
from typing import Any

from components.crds.guard import CrdGuardProvider

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler creates at start (pkg/scheduler/cache/cache.go)."""


def crd_guard() -> CrdGuardProvider:
    """Blocks CRD deletion while objects of their kinds exist, except those that the scheduler created itself."""
    return CrdGuardProvider("Volcano", _is_somebodys)


def _is_somebodys(body: Mapping[str, Any]) -> bool:
    is_queue = str(body["kind"]).lower() in ("queue", "queues")
    return not (is_queue and body["metadata"]["name"] in OF_THE_SCHEDULER)
