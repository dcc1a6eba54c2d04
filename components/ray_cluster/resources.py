"""What containers of a RayCluster ask for. The CRD lets anything through; the pods would be refused later, unseen."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..problems import Path, Problem
from ..quantities import NotAQuantityError, amount


def requests_over_limits(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Requests that are more than their limits, which Kubernetes refuses (ValidateResourceRequirements); paths in the
    body of the RayCluster."""
    for path, container in _containers(spec):
        for resource, request, limit in _over(container.get("resources")):
            message = (
                f"container {container.get('name')!r} requests {resource} {request}, more than its limit of {limit}: "
                "lower the request or raise the limit"
            )
            yield Problem(("spec", *path, "resources"), request, message, "request-within-limit")


def _over(resources: Any) -> Iterator[tuple[str, Any, Any]]:
    requests, limits = _mapping(resources, "requests"), _mapping(resources, "limits")
    for resource, request in requests.items():
        limit = limits.get(resource)
        # Ordinary containers ask for what they are limited to; the text tells without reading the amounts.
        if limit is None or request == limit:
            continue
        try:
            if amount(str(request)) > amount(str(limit)):
                yield resource, request, limit
        except NotAQuantityError:
            continue  # the CRD's schema says so


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    groups: list[tuple[Path, Any]] = [(("headGroupSpec",), spec.get("headGroupSpec"))]
    workers = spec.get("workerGroupSpecs")
    if isinstance(workers, list):
        groups += [(("workerGroupSpecs", index), group) for index, group in enumerate(workers)]
    for path, group in groups:
        pod = _mapping(_mapping(group, "template"), "spec")
        for key in ("containers", "initContainers"):
            containers = pod.get(key)
            for index, container in enumerate(containers if isinstance(containers, list) else ()):
                if isinstance(container, Mapping):
                    yield (*path, "template", "spec", key, index), container


def _mapping(part: Any, key: str) -> Mapping[str, Any]:
    value = part.get(key) if isinstance(part, Mapping) else None
    return value if isinstance(value, Mapping) else {}
