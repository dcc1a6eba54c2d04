"""The flags of `ray start`: which the Ray of a version knows, and which values it accepts. Pure functions.

From the options of `start` in ray/scripts/scripts.py of Ray 2.38.0 to 2.60.0. tests/unit/kuberay/test_ray_start.py
compares them with the parser of the installed Ray.
"""

import difflib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from core.body import ReadOnlyBody
from core.problems import Path, Problem, shown
from core.quantities import NotAQuantityError, amount
from core.quantities import shown as amount_shown
from core.versions import release_numbers, version_tuple
from kuberay.releases import FIRST_RAY_WITH_DRAIN
from kuberay.rules import Found, problem

Kind = Literal["flag", "text", "whole", "number", "boolean", "json", "object", "colour", "style"]


@dataclass(frozen=True)
class Option:
    """An option of `ray start`."""

    kind: Kind
    """What it takes: nothing (`flag`), or a value of a kind."""

    since: str = ""
    """The first version of Ray that knows it; empty: all supported ones."""

    until: str = ""
    """The first version that does not know it any more; empty: none."""


_ISOLATION, _SINGLE = "2.45.0", "2.48.0"

_PLAIN_LABELS = "2.45.0"
"""The first Ray that takes `--labels` other than in JSON (python/ray/_private/label_utils.py:
parse_node_labels_string)."""

_ADDRESS = "node-ip-address"

_NODE_ID = "ray.io/node-id"
"""Label with the ID of Ray's node (src/ray/raylet/node_manager.cc: AddDefaultLabels)."""

OPTIONS: Mapping[str, Option] = {
    **dict.fromkeys(
        (
            "block",
            "disable-usage-stats",
            "enable-object-reconstruction",
            "head",
            "no-monitor",
            "no-redirect-output",
            "ray-debugger-external",
            "verbose",
        ),
        Option("flag"),
    ),
    **dict.fromkeys(
        (
            "address",
            "autoscaling-config",
            "dashboard-host",
            "labels",
            "node-ip-address",
            "node-name",
            "plasma-directory",
            "redis-password",
            "redis-shard-ports",
            "temp-dir",
            "tracing-startup-hook",
            "worker-port-list",
        ),
        Option("text"),
    ),
    **dict.fromkeys(
        (
            "dashboard-agent-grpc-port",
            "dashboard-agent-listen-port",
            "dashboard-port",
            "max-worker-port",
            "memory",
            "metrics-export-port",
            "min-worker-port",
            "node-manager-port",
            "num-cpus",
            "num-gpus",
            "object-manager-port",
            "object-store-memory",
            "port",
            "ray-client-server-port",
            "runtime-env-agent-port",
        ),
        Option("whole"),
    ),
    "include-dashboard": Option("boolean"),
    "include-log-monitor": Option("boolean", since="2.41.0"),
    "log-color": Option("colour"),
    "log-style": Option("style"),
    "resources": Option("object"),
    "system-config": Option("json"),
    "redis-username": Option("text", since="2.41.0"),
    "redis-max-memory": Option("whole", until="2.44.0"),
    "cgroup-path": Option("text", since=_ISOLATION),
    "enable-resource-isolation": Option("flag", since=_ISOLATION),
    "labels-file": Option("text", since=_ISOLATION),
    "object-spilling-directory": Option("text", since=_ISOLATION),
    "system-reserved-cpu": Option("number", since=_ISOLATION),
    "system-reserved-memory": Option("whole", since=_ISOLATION),
    "dashboard-grpc-port": Option("whole", until=_SINGLE),
    "gcs-server-port": Option("whole", until=_SINGLE),
    "plasma-store-socket-name": Option("text", until=_SINGLE),
    "raylet-socket-name": Option("text", until=_SINGLE),
    "storage": Option("text", until=_SINGLE),
    "proxy-server-url": Option("text", since="2.55.0"),
}

_SWITCHED = ("include-dashboard", "log-color")
"""Options that KubeRay passes with `true` or `false`; of all others it passes only the name for `true`, and nothing for
`false` (ray-operator/controllers/ray/common/pod.go: convertParamMap)."""

_OF_HEAD = ("include-dashboard", "port", "redis-shard-ports")
"""Options that `ray start` refuses without `--head`."""

FALSE = {"0", "false", "f", "no", "n", "off"}
_BOOLEANS = {"1", "true", "t", "yes", "y", "on", *FALSE}
"""What click accepts as a boolean (click/types.py: BoolParamType). Since 8.3.0 also an empty text, which
older ones in images refuse."""

DRAIN_VARIABLE = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
"""Variable of `ray start`: seconds for which Ray drains its node at SIGTERM, 30 by default; 0: it ends at once
(ray-project/ray#64454)."""

ENDS_RAY = re.compile(r"\bray\s+stop\b|\b(kill|pkill|killall)\b")
"""Commands of a preStop hook, joined by spaces, that end Ray before the signal at which it drains."""

_DRAIN, _GRACE = 30, 30
"""Seconds: defaults of Ray's drain, and of Kubernetes' terminationGracePeriodSeconds."""

LEAST_OBJECT_STORE = 75 * 2**20
"""Bytes. `ray start` refuses a smaller object store (Ray 2.60: python/ray/_private/ray_constants.py,
OBJECT_STORE_MINIMUM_MEMORY_BYTES; services.py, determine_plasma_store_config)."""

LEAST_MEMORY = LEAST_OBJECT_STORE * 10 // 3
"""Bytes of a container. By default the object store is three tenths of the memory that is available when `ray start`
runs (ray_constants.py: DEFAULT_OBJECT_STORE_MEMORY_PROPORTION). Less is of no use with an explicit object store
either (IDLE_MEMORY)."""

IDLE_MEMORY = 240 * 2**20
"""Bytes that the processes of an idle head of Ray 2.60, without dashboard and autoscaler, have of their own
(Pss_Anon)."""

_CHOICES = {"colour": ("auto", "false", "true"), "style": ("auto", "record", "pretty")}


def problems_of_params(params: Mapping[str, str], ray_version: str | None, head: bool, path: Path) -> Found:
    """What `ray start` of a version refuses in a group's rayStartParams. None: the version is not known."""
    for name, value in params.items():
        at = (*path, name)
        option = OPTIONS.get(name)
        if option is None:
            yield problem("ray-start-option", at, value, _unknown(name))
        elif ray_version is not None and not _known(option, ray_version):
            between = f"came with Ray {option.since}" if option.since else f"is gone since Ray {option.until}"
            message = f"{name} {between}, and rayVersion is {ray_version}: remove it"
            yield problem("ray-start-option", at, value, message)
        elif fault := _fault(name, option.kind, value):
            yield problem(
                "ray-start-value", at, value, f"{shown(value)} is not a value of {name} for `ray start`: {fault}"
            )
        elif misplaced := _misplaced(name, value, head):
            yield problem("ray-start-option", at, value, misplaced)


def _misplaced(name: str, value: str, head: bool) -> str | None:
    """Why a flag must not be there (scripts.py: start)."""
    if head and name == "address":
        return "Ray would take it for an external Redis: remove it, and set faultTolerance if that is meant"
    if head or value.lower() == "false":
        return None
    if name == "head":
        return "a worker with head would start a Ray cluster of its own: remove it"
    if name == "address":
        return "the worker would join another Ray cluster, and KubeRay sets it: remove it"
    return f"`ray start` refuses {name} at a worker: set it at the head" if name in _OF_HEAD else None


def problems_of_labels(labels: Mapping[str, str], ray_version: str | None, path: Path) -> Found:
    """Labels of a group, which KubeRay passes as `--labels=key=value` (ray-operator/controllers/ray/common/pod.go:
    updateRayStartParamsLabels). An older `ray start` expects JSON there, and ends."""
    if labels and ray_version is not None and version_tuple(ray_version) < version_tuple(_PLAIN_LABELS):
        message = (
            f"labels of Ray's nodes need Ray {_PLAIN_LABELS} or later, and rayVersion is {ray_version}: raise "
            "rayVersion, or remove them"
        )
        yield problem("ray-start-option", path, None, message)
    if _NODE_ID in labels:
        message = "Ray sets it itself, and ends with another: remove it"
        yield problem("ray-start-option", (*path, _NODE_ID), labels[_NODE_ID], message)


def is_gpu(resource: str) -> bool:
    """Whether KubeRay counts a resource of a container as GPUs of Ray (utils/resources.go: IsGPUResourceKey)."""
    return resource.endswith("gpu") or re.search(r"nvidia\.com/mig-\d+g\.\d+gb$", resource) is not None


def _unknown(name: str) -> str:
    like = difflib.get_close_matches(name.replace("_", "-").lower(), OPTIONS, 1)
    hint = f"did you mean {like[0]!r}?" if like else "`ray start --help` lists them; remove it"
    return f"{name!r} is not an option of `ray start`: {hint}"


def _known(option: Option, ray_version: str) -> bool:
    version = version_tuple(ray_version)
    return not (option.since and version < version_tuple(option.since)) and not (
        option.until and version >= version_tuple(option.until)
    )


def _fault(name: str, kind: Kind, value: str) -> str | None:
    """What to write instead of a value that `ray start` refuses, or that KubeRay does not pass as it is."""
    switch = value.lower() in ("true", "false")
    if kind == "flag":
        return None if switch else "write true, or remove it"
    if switch and name not in _SWITCHED:
        if value.lower() == "false":
            return None  # KubeRay passes nothing
        return "write 1, because KubeRay passes only the name for true" if kind == "boolean" else "give a value"
    try:
        words = shlex.split(value)
    except ValueError as error:
        return f"it has {str(error).lower()}: quote it for a shell"
    if len(words) > 1:
        return "it is more than one word for the shell: quote it"
    if "$" in value:
        return None  # the shell in the pod knows the variable
    return _fault_of_word(kind, words[0] if words else "")


def _fault_of_word(kind: Kind, word: str) -> str | None:
    if kind == "whole" and not _converts(int, word):
        return _in_bytes(word) or "give a whole number"
    if kind == "number" and not _converts(float, word):
        return "give a number"
    if kind == "boolean" and word.strip().lower() not in _BOOLEANS:
        return "write true or false"
    if kind in _CHOICES and word.lower() not in _CHOICES[kind]:
        return f"use {' or '.join(_CHOICES[kind])}"
    if kind in ("json", "object"):
        try:
            parsed = json.loads(word)
        except (ValueError, RecursionError):
            return "give JSON, quoted for a shell"
        if kind == "object" and not isinstance(parsed, dict):
            return "give a JSON object, quoted for a shell"
    return None


def _converts(kind: type, word: str) -> bool:
    try:
        kind(word)
    except ValueError:
        return False
    return True


def _in_bytes(word: str) -> str | None:
    """The bytes of a Kubernetes quantity such as 64Gi."""
    try:
        value = amount(word)
    except NotAQuantityError:
        return None
    return f"write {value:.0f}, in bytes" if value >= 1 else None


def problems_of_group(
    group: ReadOnlyBody, ray_version: str | None, path: Path, ports: Mapping[str, int] | None = None
) -> Found:
    """What `ray start` refuses in the pods of a group at `path`, or would offer without having it. `ports`: of a head,
    by KubeRay's names of them; None: not compared."""
    params, at = group.get("rayStartParams") or {}, (*path, "rayStartParams")
    yield from problems_of_params(params, ray_version, path[-1] == "headGroupSpec", at)
    yield from problems_of_labels(group.get("labels") or {}, ray_version, (*path, "labels"))
    yield from _without_memory(group, path)
    yield from _reserved_resources(params, at)
    if "$" not in (address := params.get(_ADDRESS, "$")):
        message = "all pods of the group would give this address as theirs: remove it"
        yield problem("ray-start-option", (*at, _ADDRESS), address, message)
    yield from _of_two(params, path[-1] == "headGroupSpec", at)
    yield from _elsewhere(ports, params, at) if ports else ()
    yield from _without_gpus(group, params, at)


_STORE = "object-store-memory"

_BEYOND = {
    _STORE: "an object store of {} would be larger than /dev/shm, and Ray does not start",
    "memory": "tasks would get {} of memory that is not there",
}
"""Flags with more bytes than the container has. KubeRay gives /dev/shm the container's memory (pod.go: addEmptyDir),
and Ray compares its store with it (python/ray/_private/services.py: determine_plasma_store_config)."""

_LEAST = amount_shown("memory", Decimal(LEAST_MEMORY))


def _without_gpus(group: ReadOnlyBody, params: Mapping[str, str], at: Path) -> Found:
    """GPUs that Ray would offer and the container does not have. Of shared ones, of other makers' and of claims
    (DRA) KubeRay counts none, so that the flag is right there."""
    offered, resources = params.get("num-gpus", ""), group["template"]["spec"]["containers"][0].get("resources") or {}
    limits = resources.get("limits") or {}
    uncounted = [name for name in limits if "/" in name and not is_gpu(name)]
    gpus = sum(int(amount(str(value))) for name, value in limits.items() if is_gpu(name))
    if offered.isdecimal() and int(offered) > gpus and not uncounted and not resources.get("claims"):
        message = (
            f"Ray would offer {offered} GPUs, and its container has {gpus}: remove it, so that Ray offers those of the "
            "container"
        )
        yield problem("ray-start-gpus", (*at, "num-gpus"), offered, message)


def _without_memory(group: ReadOnlyBody, path: Path) -> Found:
    """Too little memory for Ray to start in a pod of a group; `path`: of the group."""
    ray = group["template"]["spec"]["containers"][0]
    limit = ((ray.get("resources") or {}).get("limits") or {}).get("memory")
    at = (*path, "template", "spec", "containers", 0, "resources", "limits", "memory")
    if limit is not None and amount(str(limit)) < LEAST_MEMORY:
        message = f"Ray does not start with {limit} of memory, and needs at least {_LEAST}: raise it"
        yield problem("ray-start-memory", at, limit, message)
    params = group.get("rayStartParams") or {}
    store = params.get(_STORE, "")
    if store.isdecimal() and int(store) < LEAST_OBJECT_STORE:
        message = f"`ray start` takes at least {LEAST_OBJECT_STORE} bytes, and not {store}: raise it, or remove it"
        yield problem("ray-start-memory", (*path, "rayStartParams", _STORE), store, message)
    both = [params.get(flag, "") for flag in _BEYOND]
    if limit is not None and all(each.isdecimal() for each in both):
        most = int(amount(str(limit)))
        if max(map(int, both)) <= most < sum(map(int, both)):
            message = f"with {_STORE} {both[0]} it is more than the container's {limit}: lower one of them"
            yield problem("ray-start-memory", (*path, "rayStartParams", "memory"), params["memory"], message)
    if (shm := _shared_memory(group)) and store.isdecimal() and int(store) > amount(shm):
        message = f"{_beyond(_STORE, store)}, because the volume there has {shm}: lower it, or raise sizeLimit"
        yield problem("ray-start-memory", (*path, "rayStartParams", _STORE), store, message)
        return
    for flag in _BEYOND if limit is not None else ():
        given = params.get(flag, "")
        if given.isdecimal() and int(given) > amount(str(limit)):
            message = f"{_beyond(flag, given)}, because the container has {limit}: lower it, or remove it"
            yield problem("ray-start-memory", (*path, "rayStartParams", flag), given, message)


def _beyond(flag: str, given: str) -> str:
    return _BEYOND[flag].format(amount_shown("memory", Decimal(given)))


def _shared_memory(group: ReadOnlyBody) -> str | None:
    """The limit of a volume of the pod's own at /dev/shm."""
    pod = group["template"]["spec"]
    mounts = pod["containers"][0].get("volumeMounts") or ()
    names = [each["name"] for each in mounts if each.get("mountPath", "").rstrip("/") == "/dev/shm"]  # noqa: S108
    volumes = (each.get("emptyDir") or {} for each in pod.get("volumes") or () if each.get("name") in names)
    return next((str(each["sizeLimit"]) for each in volumes if "sizeLimit" in each), None)


_HIGHEST_PORT = 65535

_RESERVED = {"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory", "object_store_memory": "object-store-memory"}
"""Resources with their own flags (python/ray/_private/resource_and_label_spec.py)."""


def custom_resources(text: str) -> dict[str, Any]:
    """The `resources` of `ray start`, as the operator reads them (pod.go: getResourcesMap); empty if it cannot."""
    try:
        parsed = json.loads(text.strip("'\"` ").replace("\\", ""))
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _reserved_resources(params: Mapping[str, str], at: Path) -> Found:
    """Custom resources with which `ray start` ends."""
    text = params.get("resources", "")
    for name, value in custom_resources(text).items():
        if name in _RESERVED:
            message = f"`ray start` ends for {name} among custom resources: set {_RESERVED[name]} instead"
            yield problem("ray-start-value", (*at, "resources"), text, message)
        elif isinstance(value, int | float) and value < 0:
            message = f"`ray start` ends for {name} {value}: give 0 or more"
            yield problem("ray-start-value", (*at, "resources"), text, message)


_LISTENS = {"dashboard-agent-listen-port": 52365, "metrics-export-port": 8080}
_HEAD_LISTENS = {"port": 6379, "dashboard-port": 8265, "ray-client-server-port": 10001}
"""Ports by the flag that moves them, where KubeRay or Ray sets one by default."""

_LOWEST, _HIGHEST = "min-worker-port", "max-worker-port"


def _of_two(params: Mapping[str, str], head: bool, at: Path) -> Found:
    """Ports of one pod that `ray start` refuses, because two processes would listen there (python/ray/_private/
    parameter.py: update_pre_selected_port)."""
    given = {name: int(value) for name, value in params.items() if name.endswith("port") and value.isdecimal()}
    low, high = given.pop(_LOWEST, 10002), given.pop(_HIGHEST, 19999)
    listens = {**_LISTENS, **(_HEAD_LISTENS if head else {}), **given}
    for name, port in given.items():
        if port > _HIGHEST_PORT:
            yield problem(
                "ray-start-value", (*at, name), params[name], f"is not a port: give one up to {_HIGHEST_PORT}"
            )
    if _HIGHEST in params and _LOWEST in params and high < low:
        message = f"is less than {_LOWEST} {low}: raise it"
        yield problem("ray-start-value", (*at, _HIGHEST), params[_HIGHEST], message)
        return
    for name, port in listens.items():
        other = next((each for each, used in listens.items() if used == port and each != name), None)
        if port and name in params and other:
            message = f"`ray start` ends, because {other} is {port}, too: use another port"
            yield problem("ray-start-value", (*at, name), params[name], message)
        elif port and low <= port <= high and {name, _LOWEST, _HIGHEST} & params.keys():
            message = f"`ray start` ends, because {name} {port} is among its workers' ports {low} to {high}: move one"
            flag = next(each for each in (name, _LOWEST, _HIGHEST) if each in params)
            yield problem("ray-start-value", (*at, flag), params[flag], message)


_PORTS_OF_FLAGS = {
    "port": "gcs-server",
    "dashboard-port": "dashboard",
    "ray-client-server-port": "client",
    "metrics-export-port": "metrics",
}
"""Flags with a port, and KubeRay's names of these ports."""

_LOOKING_FOR_HEAD, _LOOKING = "workers, probes, the operator and Services", {"metrics": "scrapes of metrics"}
"""Who looks for a node at a port."""

_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 (inside the pod; a Service and a token protect it)


def _elsewhere(ports: Mapping[str, int], params: Mapping[str, str], at: Path) -> Found:
    """Flags with which a node does not listen where others look for it."""
    for flag, name in _PORTS_OF_FLAGS.items():
        given = params.get(flag, "")
        if given.isdecimal() and name in ports and int(given) != ports[name] and int(given) <= _HIGHEST_PORT:
            message = (
                f"{_LOOKING.get(name, _LOOKING_FOR_HEAD)} use port {ports[name]}: remove it, or give Ray's container a "
                f"port {given} named {name}"
            )
            yield Problem((*at, flag), given, message, "head-port")
    if params.get("include-dashboard", "").lower() in FALSE:
        message = "KubeRay's probes and jobs ask the dashboard, so the head would never be ready: remove it"
        yield Problem((*at, "include-dashboard"), params["include-dashboard"], message, "head-port")
    if (host := params.get("dashboard-host", _ANYWHERE[0])) not in _ANYWHERE:
        message = f"only {host} would reach the dashboard, and jobs would not: remove it"
        yield Problem((*at, "dashboard-host"), host, message, "head-port")


def hook_that_ends_ray(pod: ReadOnlyBody) -> str | None:
    """The command of a preStop hook in Ray's container that ends Ray before it drains; None without one."""
    hook = (pod["containers"][0].get("lifecycle") or {}).get("preStop") or {}
    command = (hook.get("exec") or {}).get("command") or ()
    return " ".join(map(str, command)) if ends_ray(command) else None


def ends_ray(command: Iterable[Any]) -> bool:
    """Whether the command of a hook ends Ray, in the words of one line or as words of their own."""
    return bool(ENDS_RAY.search(" ".join(map(str, command))))


def drain_of(pod: ReadOnlyBody, ray_version: str | None) -> int | None:
    """The most seconds for which a worker drains before its pod ends, by the spec of the pod: 0 for a Ray that does not
    drain, or that a hook ends; None for an unknown one."""
    drain = drain_before_hook(pod, ray_version)
    return 0 if drain and hook_that_ends_ray(pod) else drain


def drain_before_hook(pod: ReadOnlyBody, ray_version: str | None) -> int | None:
    """The same without a look at hooks."""
    release = release_numbers(ray_version)
    if release is None:
        return None
    if release < version_tuple(FIRST_RAY_WITH_DRAIN):
        return 0
    grace = pod.get("terminationGracePeriodSeconds")
    given = [each.get("value") for each in pod["containers"][0].get("env") or () if each["name"] == DRAIN_VARIABLE]
    drain = int(given[-1]) if given and str(given[-1]).isdecimal() else _DRAIN
    return min(drain, _GRACE if grace is None else grace)
