"""Requests and limits of containers (validation.go: ValidateContainerResourceRequirements)."""

from collections.abc import Collection
from decimal import ROUND_UP, Decimal
from typing import Any

from core.body import Body
from core.problems import Path
from core.quantities import NotAQuantityError, amount
from kuberay import formats
from kuberay.pod_template.findings import absent, conflict, dns_label, items, missing, repeated, wrong
from kuberay.rules import Found, problem

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_MILLI = Decimal("0.001")


def resources(container: Body, path: Path, claims: Collection[str] = ()) -> Found:
    """`claims`: names of the pod's resourceClaims."""
    configured, at = container.get("resources") or {}, (*path, "resources")
    limits, requests = configured.get("limits") or {}, configured.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            yield from _resource(name, (*at, part, name))
            yield from _quantity(container, name, quantity, (*at, part, name))
    for name, request in requests.items():
        if fault := _fault(name, request, limits.get(name)):
            message = f"container {container.get('name')!r} requests {name} {request}, {fault}"
            yield problem("request-within-limit", at, request, message)
    named = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        yield conflict(at, None, "huge pages need a request or limit of cpu or memory as well: add one")
    yield from _claims(configured, at, claims)


def _resource(name: str, path: Path) -> Found:
    """validateContainerResourceName."""
    if "/" not in name:
        if name not in _STANDARD and not name.startswith(_HUGE_PAGES):
            yield wrong(path, name, f"use {', '.join(_STANDARD)}, or a device with its domain such as nvidia.com/gpu")
    elif not formats.is_qualified_name(name) or (is_device(name) and not _extended(name)):
        yield wrong(path, name, "use a resource with its domain such as nvidia.com/gpu")


def _extended(name: str) -> bool:
    return not name.startswith("requests.") and formats.is_qualified_name(f"requests.{name}")


def _quantity(container: Body, name: str, quantity: Any, path: Path) -> Found:
    """ValidateResourceQuantityValue, validateResourceQuantityHugePageValue."""
    if (value := _amount(quantity)) is None:
        return  # the CRD's schema reports it
    if value < 0:
        yield wrong(path, quantity, "give 0 or more")
    if is_device(name) and value % 1:
        name_of = container.get("name")
        message = f"container {name_of!r} has {name} {quantity}, which is not a whole number: set a whole number"
        yield problem("whole-devices", path, quantity, message)
    if name.startswith(_HUGE_PAGES):
        size = _amount(name.removeprefix(_HUGE_PAGES))
        if size is None or size <= 0 or size % 1 or value % size:
            yield wrong(path, quantity, f"give a multiple of the size in the name {name}")


def _fault(name: str, request: Any, limit: Any) -> str | None:
    # Most containers have equal requests and limits: comparing the text avoids parsing the amounts.
    if request == limit:
        return None
    whole = is_device(name) or name.startswith(_HUGE_PAGES)
    if limit is None:
        return "and has no limit for it: set the limit to the same" if whole else None
    requested, most = _amount(request), _amount(limit)
    if requested is None or most is None:
        return None  # the CRD's schema reports it
    if requested > most:
        return f"more than its limit of {limit}: lower the request or raise the limit"
    if requested < most and whole:
        return f"less than its limit of {limit}, and for devices both must be equal: remove the request"
    return None


def is_device(name: str) -> bool:
    """Whether it is an extended resource (kubernetes, pkg/apis/core/v1/helper: IsExtendedResourceName)."""
    return "/" in name and "kubernetes.io/" not in name


def _amount(quantity: Any) -> Decimal | None:
    """The value, as the API server rounds it (defaults.go: SetDefaults_ResourceList)."""
    try:
        return amount(str(quantity)).quantize(_MILLI, ROUND_UP)
    except (NotAQuantityError, ArithmeticError):
        return None


def _claims(configured: Body, path: Path, claims: Collection[str]) -> Found:
    """validateResourceClaimNames."""
    used: set[str] = set()
    for at, claim in items(configured, path, "claims"):
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield missing((*at, "name"))
            continue
        if request:
            yield from dns_label(request, (*at, "request"))
        key = f"{name}/{request}" if request else name
        if name in used or key in used or (not request and any(each.startswith(f"{name}/") for each in used)):
            yield repeated((*at, "name"), key, "the claim")
        used.add(key)
        if name not in claims:
            yield absent((*at, "name"), name, "resource claim", claims)
