"""Probes and lifecycle hooks of containers (validation.go: validateProbe, validateLifecycle)."""

import re

from core.body import Body
from core.problems import Path
from kuberay.pod_template.findings import conflict, items, missing, not_negative, one_of, port, required, wrong
from kuberay.rules import Found

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER = re.compile(r"[-A-Za-z0-9]+")


def probes(container: Body, path: Path, grace: int) -> Found:
    """`grace`: terminationGracePeriodSeconds of the pod."""
    for kind in PROBES:
        if (probe := container.get(kind)) is not None:
            yield from _probe(kind, probe, (*path, kind), grace)


def _probe(kind: str, probe: Body, path: Path, grace: int) -> Found:
    yield from _handler(probe, path, grace)
    yield from not_negative(probe, path, *_NUMBERS)
    if kind != "readinessProbe" and (probe.get("successThreshold") or 1) > 1:
        yield wrong((*path, "successThreshold"), probe["successThreshold"], f"use 1, the only one for a {kind}")
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and kind == "readinessProbe":
        yield conflict((*path, "terminationGracePeriodSeconds"), seconds, "a readinessProbe has none: remove it")
    elif seconds is not None and seconds <= 0:
        yield wrong((*path, "terminationGracePeriodSeconds"), seconds, "give 1 or more")


def lifecycle(container: Body, path: Path, grace: int) -> Found:
    """The hooks postStart and preStop."""
    hooks = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if hook in hooks:
            yield from _handler(hooks[hook], (*path, "lifecycle", hook), grace)


def _handler(handlers: Body, path: Path, grace: int) -> Found:
    """validateHandler: exactly one of the ways to ask a container."""
    present = [key for key in _HANDLERS if key in handlers]
    if not present:
        yield missing((*path, "exec"), "add it, or another of httpGet, tcpSocket and grpc")
        return
    for second in present[1:]:
        yield conflict((*path, second), None, f"excludes {present[0]}: keep one of them")
    kind, handler = present[0], handlers[present[0]]
    at = (*path, kind)
    if kind == "exec":
        yield from required(handler, at, "command")
    elif kind == "sleep":
        if not 0 <= handler.get("seconds", 0) <= grace:
            yield wrong(
                (*at, "seconds"), handler["seconds"], f"give 0 to {grace}, the pod's terminationGracePeriodSeconds"
            )
    else:
        yield from port(handler.get("port"), (*at, "port"))
    if kind == "httpGet":
        yield from one_of(handler, at, "scheme", ("HTTP", "HTTPS"))
        for each, header in items(handler, at, "httpHeaders"):
            if not _HEADER.fullmatch(header.get("name", "")):
                yield wrong((*each, "name"), header.get("name", ""), "use letters, digits and hyphens")
