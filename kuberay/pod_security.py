"""Pod Security admission: which pods a namespace's level refuses. Pure functions.

The rules are those of version 1.34 in k8s.io/pod-security-admission v0.36.5 (policy/check_*.go), without those of
Windows. From 1.35 on pods with `hostUsers: false` may run as root, and unmask /proc at `baseline`; the clusters of a
stack may be older. tests/differential compares them with that evaluator.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from core.body import Body
from core.pods import PROFILES, RESTRICTED_CAPABILITIES, PodSecurityLevel
from core.problems import Path, Problem, shown
from kuberay.rules import Found, problem

Placed = tuple[Path, Body]
"""A container, or what stands for one, with its path."""

BASELINE_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)

SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})

_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
HANDLERS: tuple[Path, ...] = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)
"""Paths of a container's handlers, whose requests may go to a host."""


def violations(template: Body, path: Path, level: PodSecurityLevel, beside: Sequence[Placed] = ()) -> Found:
    """What the level refuses in the pods of a template; paths begin with `path`.

    `beside`: containers that an operator adds, each with the path of what configures it.
    """
    if level == "privileged":
        return
    spec, at = template.get("spec") or {}, (*path, "spec")
    placed = [*_containers(spec, at), *beside]
    for each in _baseline(template, spec, path, placed):
        yield each(level)
    if level == "restricted":
        for each in _restricted(spec, at, placed):
            yield each(level)


class _Violation:
    """A violation, before it is known which level reports it."""

    def __init__(self, path: Path, value: Any, fault: str, fix: str) -> None:
        self._path, self._value, self._fault, self._fix = path, value, fault, fix

    def __call__(self, level: PodSecurityLevel) -> Problem:
        message = (
            f"Pod Security level {level!r} refuses the pod: {self._fault}. {self._fix}, or choose another podSecurity"
        )
        return problem("pod-security", self._path, self._value, message)


_Found = Iterator[_Violation]


def _containers(spec: Body, path: Path) -> Iterator[Placed]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield (*path, kind, index), container


def _baseline(template: Body, spec: Body, path: Path, placed: Sequence[Placed]) -> _Found:
    at = (*path, "spec")
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield _Violation((*at, key), True, f"{key} shares it with the node", f"Remove {key}")
    for index, volume in enumerate(spec.get("volumes") or ()):
        if "hostPath" in volume:
            name, where = volume.get("name"), (*at, "volumes", index, "hostPath")
            yield _Violation(where, None, f"volume {name!r} mounts files of the node", "Use a claim or an emptyDir")
    context, below = spec.get("securityContext") or {}, (*at, "securityContext")
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        if sysctl.get("name") not in SYSCTLS:
            name = sysctl.get("name")
            yield _Violation(
                (*below, "sysctls", index, "name"), name, f"sysctl {name!r} is not a safe one", "Remove it"
            )
    yield from _of_any(context, below)
    for where, container in placed:
        yield from _container(container, where)
    for key, value in ((template.get("metadata") or {}).get("annotations") or {}).items():
        if key.startswith(APP_ARMOR) and not (value in ("", "runtime/default") or value.startswith("localhost/")):
            yield _Violation((*path, "metadata", "annotations", key), value, "it turns AppArmor off", "Remove it")


def _of_any(context: Body, path: Path) -> _Found:
    """Fields of the security contexts of pods and containers."""
    for kind in ("appArmorProfile", "seccompProfile"):
        profile = context.get(kind)
        if profile is not None and profile.get("type") not in PROFILES:
            where, value = (*path, kind, "type"), profile.get("type")
            yield _Violation(where, value, f"{kind} is {shown(value)}", "Use RuntimeDefault")
    options = context.get("seLinuxOptions") or {}
    for key in ("type", "user", "role"):
        value = options.get(key, "")
        if value not in (SELINUX_TYPES if key == "type" else {""}):
            where = (*path, "seLinuxOptions", key)
            yield _Violation(where, value, f"the {key} of SELinux is {value!r}", "Remove it")


def _container(container: Body, path: Path) -> _Found:
    context, at = container.get("securityContext") or {}, (*path, "securityContext")
    name = container.get("name")
    if context.get("privileged"):
        yield _Violation((*at, "privileged"), True, f"container {name!r} is privileged", "Remove privileged")
    for index, added in enumerate((context.get("capabilities") or {}).get("add") or ()):
        if added not in BASELINE_CAPABILITIES:
            where = (*at, "capabilities", "add", index)
            yield _Violation(where, added, f"container {name!r} adds capability {added!r}", "Remove it")
    for index, port in enumerate(container.get("ports") or ()):
        if port.get("hostPort"):
            where, number = (*path, "ports", index, "hostPort"), port["hostPort"]
            yield _Violation(where, number, f"container {name!r} opens port {number} of the node", "Remove hostPort")
    if (mount := context.get("procMount")) not in (None, "Default"):
        yield _Violation((*at, "procMount"), mount, f"container {name!r} sees all of /proc", "Remove procMount")
    yield from _of_any(context, at)
    for steps in HANDLERS:
        handler: Any = container
        for step in steps:
            handler = (handler or {}).get(step)
        for kind in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(kind) or {}).get("host"):
                where = (*path, *steps, kind, "host")
                yield _Violation(where, host, f"container {name!r} asks host {host!r}", "Remove host")


def _restricted(spec: Body, path: Path, placed: Sequence[Placed]) -> _Found:
    context, below = spec.get("securityContext") or {}, (*path, "securityContext")
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind in volume:
            if kind not in {"name", "hostPath", *_VOLUMES}:
                where, name = (*path, "volumes", index, kind), volume.get("name")
                yield _Violation(where, None, f"volume {name!r} is of type {kind}", "Use a persistentVolumeClaim")
    if context.get("runAsUser") == 0:
        yield _Violation((*below, "runAsUser"), 0, "it runs as root", "Set another runAsUser")
    if context.get("runAsNonRoot") is False:
        yield _Violation((*below, "runAsNonRoot"), False, "it may run as root", "Set runAsNonRoot: true")
    for where, container in placed:
        yield from _restricted_container(container, where, context)


def _restricted_container(container: Body, path: Path, pod: Body) -> _Found:
    context, at = container.get("securityContext") or {}, (*path, "securityContext")
    name = container.get("name")
    if context.get("allowPrivilegeEscalation") is not False:
        fault = f"processes of container {name!r} may get more rights"
        yield _Violation((*at, "allowPrivilegeEscalation"), None, fault, "Set allowPrivilegeEscalation: false")
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()):
        fault = f"container {name!r} keeps capabilities"
        yield _Violation((*at, "capabilities", "drop"), None, fault, "Set capabilities.drop: [ALL]")
    for index, added in enumerate(capabilities.get("add") or ()):
        if added in BASELINE_CAPABILITIES.difference(RESTRICTED_CAPABILITIES):
            where = (*at, "capabilities", "add", index)
            yield _Violation(where, added, f"container {name!r} adds capability {added!r}", "Remove it")
    if context.get("runAsUser") == 0:
        yield _Violation((*at, "runAsUser"), 0, f"container {name!r} runs as root", "Set another runAsUser")
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        where, value = (*at, "runAsNonRoot"), context.get("runAsNonRoot")
        yield _Violation(where, value, f"container {name!r} may run as root", "Set runAsNonRoot: true")
    if "seccompProfile" not in context and "seccompProfile" not in pod:
        fault = f"container {name!r} has no seccompProfile"
        yield _Violation((*at, "seccompProfile"), None, fault, "Set seccompProfile.type: RuntimeDefault")
