"""References to fields and resources of the pod, in environment variables and in files (the downward API)."""

import re
from collections.abc import Collection

from core.body import Body
from core.problems import Path
from core.quantities import amount
from kuberay.pod_template.findings import (
    config_map_key,
    conflict,
    dns_label,
    dns_subdomain,
    env_name,
    label_name,
    missing,
    no_steps_back,
    wrong,
)
from kuberay.rules import Found

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""validEnvDownwardAPIFieldPathExpressions."""

VOLUME_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations")
"""validVolumeDownwardAPIFieldPathExpressions."""

_OLD_NAMES = {"spec.host": "spec.nodeName"}
"""podshelper.ConvertDownwardAPIFieldLabel."""

_SUBSCRIPTED = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL)

_RESOURCES = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")

_CPU_DIVISORS = {amount("1m"), amount("1")}
_BYTE_DIVISORS = {amount(f"1{unit}") for unit in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def value_from(variable: Body, path: Path) -> Found:
    """validateEnvVarValueFrom."""
    sources = variable["valueFrom"]
    present = [key for key in _SOURCES if key in sources]
    if not present:
        yield missing((*path, "secretKeyRef"), f"add it, or another of {', '.join(_SOURCES[:4])}")
    elif variable.get("value"):
        yield conflict(path, None, f"variable {variable['name']!r} has a value, too: keep one of them")
    elif len(present) > 1:
        yield conflict((*path, present[1]), None, f"excludes {present[0]}: keep one of them")
    for key in present:
        at, source = (*path, key), sources[key]
        if key == "fieldRef":
            yield from field_reference(source, at, ENV_FIELDS)
        elif key == "resourceFieldRef":
            yield from resource_reference(source, at, False)
        elif key == "fileKeyRef":
            yield from _file_reference(source, at)
        else:
            yield from dns_subdomain(source.get("name", ""), (*at, "name"))
            yield from config_map_key(source.get("key", ""), (*at, "key"))


def _file_reference(source: Body, path: Path) -> Found:
    yield from env_name(source.get("key", ""), (*path, "key"))
    yield from dns_label(source.get("volumeName", ""), (*path, "volumeName"))
    if not source.get("path"):
        yield missing((*path, "path"))
    yield from no_steps_back(source.get("path", ""), (*path, "path"))


def field_reference(source: Body, path: Path, allowed: Collection[str]) -> Found:
    """validateObjectFieldSelector."""
    version, field = source.get("apiVersion") or "v1", source.get("fieldPath", "")
    if version != "v1":
        yield wrong((*path, "apiVersion"), version, "use v1, or remove it")
        return
    found = _SUBSCRIPTED.fullmatch(field)
    if found and found["path"] in ("metadata.annotations", "metadata.labels"):
        key = found["key"].lower() if found["path"] == "metadata.annotations" else found["key"]
        yield from label_name(key, (*path, "fieldPath"))
    elif _OLD_NAMES.get(field, field) not in allowed:
        names = ", ".join(allowed)
        yield wrong((*path, "fieldPath"), field, f"use one of {names}, or metadata.labels['KEY']")


def resource_reference(source: Body, path: Path, in_volume: bool) -> Found:
    """validateContainerResourceFieldSelector."""
    name = source.get("resource", "")
    if in_volume and not source.get("containerName"):
        yield missing((*path, "containerName"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        yield wrong((*path, "resource"), name, f"use one of {', '.join(_RESOURCES)}")
    divisor = amount(str(source.get("divisor", "0")))
    known = name in _RESOURCES or name.startswith(_HUGE_PAGES)
    if divisor and known and divisor not in (_CPU_DIVISORS if name.endswith(".cpu") else _BYTE_DIVISORS):
        yield wrong((*path, "divisor"), source["divisor"], "use 1, 1m of a cpu, or 1Ki, 1Mi, 1Gi or the like of bytes")
