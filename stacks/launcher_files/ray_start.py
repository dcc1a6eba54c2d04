"""Converts the launcher's commands that start Ray on a machine into `rayStartParams` and environment variables.

KubeRay writes `ray start` itself, so only the flags are kept; other commands are noted.
"""

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from core.problems import Path
from stacks.launcher_files.reader import Reader, is_noted_secret

_KUBERAYS_OWN = {"head", "block", "address", "redis-address", "autoscaling-config", "no-monitor"}
"""Flags that KubeRay sets itself (ray-operator/controllers/ray/common/pod.go)."""

_SWITCHES = {
    "head",
    "block",
    "no-monitor",
    "no-redirect-output",
    "disable-usage-stats",
    "enable-object-reconstruction",
    "ray-debugger-external",
    "enable-resource-isolation",
}
"""Flags without a value (Ray, python/ray/scripts/scripts.py)."""

_CARRIED = {
    *("port", "object-manager-port", "node-manager-port", "min-worker-port", "max-worker-port", "worker-port-list"),
    *("ray-client-server-port", "memory", "object-store-memory", "num-cpus", "num-gpus", "resources"),
    *("include-dashboard", "dashboard-host", "dashboard-port", "dashboard-agent-listen-port"),
    *("dashboard-agent-grpc-port", "runtime-env-agent-port", "plasma-directory", "object-spilling-directory"),
    *("temp-dir", "metrics-export-port", "disable-usage-stats", "include-log-monitor", "tracing-startup-hook"),
    *("system-config", "no-redirect-output"),
}

_RENAMED = {"redis-port": "port", "webui-host": "dashboard-host", "internal-config": "system-config"}
"""Deprecated flags and their current names."""

_SEPARATORS = {";", "&&", "||", "&", "|", "\n"}


@dataclass
class RayStart:
    """The parts of the commands that a pod can have."""

    params: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


def ray_start(commands: Reader, of: Path) -> RayStart:
    """What the commands set. `of`: the place of the pods' settings in the cluster."""
    start = RayStart()
    for index, command in commands.items():
        text = commands.text(index)
        if text is None:
            continue
        for words in _simple_commands(text, command):
            _one(words, command, start, of)
    return start


def quoted(resources: dict[str, Any]) -> str:
    """Custom resources in the format of `rayStartParams.resources`: JSON twice, because a shell removes one pair of
    quotes."""
    return json.dumps(json.dumps(resources))


def _simple_commands(text: str, command: Reader) -> list[list[str]]:
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        command.note("the command cannot be read: a quote is not closed", "do what it does when the image is built")
        return []
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            found.append([])
        else:
            found[-1].append(word)
    return [each for each in found if each]


def _one(words: list[str], command: Reader, start: RayStart, of: Path) -> None:
    if words[0] == "export":
        words = words[1:]
    while words and (assignment := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
        name, value = assignment.groups()
        if "$" in value or "`" in value:
            why = f"{name} has a value that only a shell can compute"
            command.note(why, "set it in env", (*of, "env", name), ("env", name))
        elif not is_noted_secret(name, value, command):
            start.env[name] = value
        words = words[1:]
    match words:
        case [] | ["ray", "stop", *_]:
            pass
        case ["ray", "start", *flags]:
            _flags(flags, command, start)
        case ["ulimit", *_]:
            command.note(
                f"{_short(shlex.join(words))}: a pod has the limits of its node's container runtime",
                "raise them there if Ray reports too few open files",
            )
        case _:
            command.note(
                f"it runs {_short(words[0])}, and KubeRay only starts Ray",
                "do it when the image is built, or in an init container in podTemplate",
            )


def _flags(words: list[str], command: Reader, start: RayStart) -> None:
    rest = list(words)
    while rest:
        flag, has_value, value = rest.pop(0).partition("=")
        if not flag.startswith("--"):
            command.note(f"{_short(flag)} is not a flag of ray start", "remove it")
            continue
        name = flag.removeprefix("--")
        name = _RENAMED.get(name, name)
        if not has_value:
            value = "true" if name in _SWITCHES or not rest or rest[0].startswith("--") else rest.pop(0)
        _flag(name, value, command, start)


def _flag(name: str, value: str, command: Reader, start: RayStart) -> None:
    if name in _KUBERAYS_OWN or (name == "port" and value == "6379"):
        return
    if name == "redis-password":
        why, instead = "a password does not belong in a file", "protect the cluster with authOptions.mode token"
        command.note(why, instead, ("authOptions",))
    elif set(value) & set("$`~"):
        command.note(
            f"--{name} is {_short(value)}, which only a shell can compute",
            "KubeRay derives num-cpus, num-gpus and memory from the container; set others in rayStartParams",
        )
    elif name == "labels":
        start.labels.update(re.findall(r"([^,=]+)=([^,]*)", value))
    elif name == "resources":
        _resources(value, command, start)
    elif name in _CARRIED:
        # KubeRay's shell parses it once more.
        start.params[name] = shlex.quote(value)
    else:
        command.note(
            f"--{name} has no meaning in a pod, or Ray no longer knows it", "remove it, or see `ray start --help`"
        )


def _resources(value: str, command: Reader, start: RayStart) -> None:
    try:
        resources = json.loads(value)
    except ValueError:
        resources = None
    if isinstance(resources, dict):
        start.params["resources"] = quoted(resources)
    else:
        command.note(f"--resources {_short(value)} is not JSON", "set rayStartParams.resources")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
