"""What containers of a RayCluster ask for. The CRD lets anything through; the pods would be refused later, unseen."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from core.problems import Path, Problem
from core.quantities import NotAQuantityError, amount


def refused_resources(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """What Kubernetes refuses of containers' requests and limits; paths in the body of the RayCluster.

    Requests over limits; and of devices such as GPUs, which are never shared, parts of one and requests that are not
    the limit (kubernetes, pkg/apis/core/validation: ValidateResourceRequirements, ValidateResourceQuantityValue).
    """
    for path, container in _containers(spec):
        limits, requests = (_mapping(container.get("resources"), part) for part in ("limits", "requests"))
        name, at = container.get("name"), ("spec", *path, "resources")
        for part, amounts in (("limits", limits), ("requests", requests)):
            for resource, value in amounts.items():
                if _is_device(resource) and (number := _amount(value)) is not None and number % 1:
                    message = f"container {name!r} has {resource} {value}, a part of one: give a whole number"
                    yield Problem((*at, part, resource), value, message, "whole-devices")
        for resource, request in requests.items():
            if fault := _fault(resource, request, limits.get(resource)):
                message = f"container {name!r} requests {resource} {request}, {fault}"
                yield Problem(at, request, message, "request-within-limit")


def _fault(resource: str, request: Any, limit: Any) -> str | None:
    # Ordinary containers ask for what they are limited to; the text tells without reading the amounts.
    if request == limit:
        return None
    if limit is None:
        return "and has no limit of it: set the limit to the same" if _is_device(resource) else None
    wanted, most = _amount(request), _amount(limit)
    if wanted is None or most is None:
        return None  # the CRD's schema says so
    if wanted > most:
        return f"more than its limit of {limit}: lower the request or raise the limit"
    if wanted < most and _is_device(resource):
        return f"less than its limit of {limit}, and of devices both have to be the same: remove the request"
    return None


def _is_device(resource: str) -> bool:
    """Whether it is an extended resource (kubernetes, pkg/apis/core/v1/helper: IsExtendedResourceName)."""
    return "/" in resource and "kubernetes.io/" not in resource


def _amount(quantity: Any) -> Decimal | None:
    try:
        return amount(str(quantity))
    except NotAQuantityError:
        return None


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
