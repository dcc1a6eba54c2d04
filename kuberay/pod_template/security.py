"""Security contexts of pods and containers (validation.go: ValidateSecurityContext, validatePodSpecSecurityContext)."""

import re

from core.body import Body
from core.problems import Path
from kuberay.pod_template.findings import conflict, identity, items, missing, one_of, relative, repeated, wrong
from kuberay.rules import Found

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_PART = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"({_SYSCTL_PART}[./])*{_SYSCTL_PART}")
_IPC = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
"""Sysctls of the IPC namespace (component-helpers, node/util/sysctl: GetNamespace)."""


def of_pod(spec: Body, path: Path) -> Found:
    """The pod's own security context."""
    context, at = spec.get("securityContext") or {}, (*path, "securityContext")
    yield from identity(context, at, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group < 2**31:
            yield wrong((*at, "supplementalGroups", index), group, f"give a number from 0 to {2**31 - 1}")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield conflict((*path, "shareProcessNamespace"), True, "excludes hostPID: remove one of them")
    yield from _sysctls(spec, context, at)
    yield from one_of(context, at, "fsGroupChangePolicy", ("OnRootMismatch", "Always"), empty=False)
    yield from one_of(context, at, "supplementalGroupsPolicy", ("Merge", "Strict"), empty=False)
    yield from _profiles(context, at)
    if spec.get("hostUsers") is False:
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(key):
                yield conflict((*path, key), True, "needs the users of the node: remove it, or hostUsers")
        for kind in ("containers", "initContainers"):
            for each, container in items(spec, path, kind):
                if container.get("volumeDevices"):
                    message = "needs the users of the node: remove it, or the pod's hostUsers"
                    yield conflict((*each, "volumeDevices"), None, message)


def of_container(container: Body, path: Path, spec: Body) -> Found:
    """The security context of a container in the pod with this spec."""
    context, at = container.get("securityContext") or {}, (*path, "securityContext")
    yield from identity(context, at, "runAsUser", "runAsGroup")
    yield from one_of(context, at, "procMount", ("Default", "Unmasked"), empty=False)
    if context.get("procMount") == "Unmasked" and spec.get("hostUsers") is not False:
        yield conflict((*at, "procMount"), "Unmasked", "needs hostUsers: false in the pod: remove it")
    yield from _profiles(context, at)
    if context.get("allowPrivilegeEscalation") is False:
        below = (*at, "allowPrivilegeEscalation")
        if context.get("privileged"):
            yield conflict(below, False, "a privileged container has all rights: remove privileged")
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            yield conflict(below, False, "capability CAP_SYS_ADMIN allows it: remove the capability")


def _profiles(context: Body, path: Path) -> Found:
    """validateSeccompProfileField, ValidateAppArmorProfileField."""
    for kind in ("seccompProfile", "appArmorProfile"):
        profile, at = context.get(kind), (*path, kind)
        if profile is None:
            continue
        if not profile.get("type"):
            yield missing((*at, "type"))
        yield from one_of(profile, at, "type", _PROFILES)
        local = profile.get("localhostProfile")
        if profile.get("type") != "Localhost":
            if local is not None and (kind == "seccompProfile" or profile.get("type") in _PROFILES):
                yield conflict((*at, "localhostProfile"), local, "needs type Localhost: remove it, or change the type")
        elif local is None or (kind == "appArmorProfile" and not local.strip()):
            yield missing((*at, "localhostProfile"), "type Localhost needs it")
        elif kind == "seccompProfile":
            yield from relative(local, (*at, "localhostProfile"))
        elif local != local.strip() or len(local.encode()) > 4095:
            yield wrong((*at, "localhostProfile"), local, "use at most 4095 characters, without blanks around them")


def _sysctls(spec: Body, context: Body, path: Path) -> Found:
    """validateSysctls."""
    names = set()
    for at, sysctl in items(context, path, "sysctls"):
        name, place = sysctl.get("name", ""), (*at, "name")
        if not name:
            yield missing(place)
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield wrong(place, name, "use lower-case names with . or / between them")
        elif name in names:
            yield repeated(place, name, "the sysctl")
        names.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield conflict(place, name, "is the node's with hostNetwork: remove one of them")
        if spec.get("hostIPC") and dotted.startswith(_IPC):
            yield conflict(place, name, "is the node's with hostIPC: remove one of them")
