"""What keeps Volcano's CRDs. States name `_is_somebodys` by this path."""

from collections.abc import Mapping
from typing import Any

from ..crds.guard import CrdGuardProvider

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler makes itself when it starts (pkg/scheduler/cache/cache.go)."""


def crd_guard() -> CrdGuardProvider:
    """Keeps the CRDs while there is an object of their kinds that the scheduler has not made itself."""
    return CrdGuardProvider("Volcano", _is_somebodys)


def _is_somebodys(body: Mapping[str, Any]) -> bool:
    is_queue = str(body["kind"]).lower() in ("queue", "queues")
    return not (is_queue and body["metadata"]["name"] in OF_THE_SCHEDULER)
