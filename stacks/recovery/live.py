"""Which objects exist in the cluster, and whether this stack created them. Only reads."""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kubernetes
import urllib3
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError, ResourceNotFoundError

from components.bodies import FIELD_MANAGER_ANNOTATION
from components.cluster import ClusterUnreachableError, connect

from .deployment import Wanted

_CREATOR = "pulumi-kubernetes"
"""Field manager of an object's first write by Pulumi's provider (provider/pkg/await, since 4.29)."""


@dataclass(frozen=True)
class Existing:
    """The objects that exist."""

    own: list[Wanted] = field(default_factory=list)
    """Created by this stack."""

    others: list[tuple[Wanted, str]] = field(default_factory=list)
    """Not created by this stack, each with its field managers."""

    leaving: list[Wanted] = field(default_factory=list)
    """Being deleted."""

    def __add__(self, other: "Existing") -> "Existing":
        return Existing(self.own + other.own, self.others + other.others, self.leaving + other.leaving)


def look(context: str | None, objects: Iterable[Wanted]) -> Existing:
    """Looks each object up. Raises ClusterUnreachableError."""
    found = Existing()
    with tempfile.TemporaryDirectory() as folder:
        try:
            # The client's default cache is a file that all users of the machine share.
            client = DynamicClient(connect(context), cache_file=str(Path(folder) / "discovery"))
            for candidate in objects:
                body = _read(client, candidate)
                if body is None:
                    continue
                if body["metadata"].get("deletionTimestamp"):
                    found.leaving.append(candidate)
                elif is_own(candidate, body):
                    found.own.append(candidate)
                else:
                    found.others.append((candidate, ", ".join(sorted(_managers(body))) or "nobody"))
        except (DynamicApiError, kubernetes.client.ApiException) as error:
            raise ClusterUnreachableError(f"the API server refuses: {error.status} {error.reason}") from error
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachableError(f"the API server does not answer: {error}") from error
    return found


def is_own(candidate: Wanted, body: Mapping[str, Any]) -> bool:
    """Whether this stack created the object: it has the stack's own field manager, and Pulumi wrote it."""
    annotations = body["metadata"].get("annotations") or {}
    marked = bool(candidate.manager) and annotations.get(FIELD_MANAGER_ANNOTATION) == candidate.manager
    return marked and bool(_managers(body) & {_CREATOR, candidate.manager})


def _managers(body: Mapping[str, Any]) -> set[str]:
    return {entry["manager"] for entry in body["metadata"].get("managedFields") or ()}


def _read(client: Any, candidate: Wanted) -> dict[str, Any] | None:
    try:
        resource = client.resources.get(api_version=candidate.api_version, kind=candidate.kind)
        body = client.get(resource, name=candidate.name, namespace=candidate.namespace or None)
    except (NotFoundError, ResourceNotFoundError):
        return None
    return dict(body.to_dict())
