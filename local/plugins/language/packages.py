"""The Pulumi packages of a Python environment, and the plugins that they need."""

import base64
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from pulumi.runtime.proto import language_pb2, plugin_pb2

from core.provider import provider_version
from local.plugins.language.errors import HostError

_SCRIPT = Path(__file__).with_name("installed.py")

_WITHOUT_PLUGIN = frozenset({"pulumi-policy", "pulumi-esc-sdk"})
"""Packages with the prefix of plugins' SDKs that have no plugin."""

_PEP440 = re.compile(
    r"(?P<release>\d+(?:\.\d+)*)(?:(?P<stage>a|b|rc)(?P<pre>\d+))?(?:\.post(?P<post>\d+))?(?:\.dev(?P<dev>\d+))?"
)


class Distribution(TypedDict):
    """An installed distribution, as installed.py prints it."""

    name: str
    version: str
    requires: list[str]
    plugin: dict[str, object] | None


def installed(python: str, environment: dict[str, str]) -> list[Distribution]:
    """The packages of an interpreter.

    Raises:
        HostError: the interpreter does not run.
    """
    answer = subprocess.run([python, _SCRIPT], env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise HostError(f"{python} cannot list its packages:\n{answer.stderr.strip()}")
    found: list[Distribution] = json.loads(answer.stdout)
    return found


def top_level(distributions: Iterable[Distribution]) -> list[Distribution]:
    """The packages that no other one requires."""
    distributions = list(distributions)
    required = {name for distribution in distributions for name in distribution["requires"]}
    return [distribution for distribution in distributions if distribution["name"] not in required]


def dependencies(distributions: Iterable[Distribution]) -> list[language_pb2.DependencyInfo]:
    """The packages in the engine's format."""
    return [language_pb2.DependencyInfo(name=each["name"], version=each["version"]) for each in distributions]


def required_plugins(distributions: Iterable[Distribution]) -> list[plugin_pb2.PackageDependency]:
    """The plugins of the environment's Pulumi packages."""
    return [plugin for each in distributions if (plugin := _plugin_of(each)) is not None]


def _plugin_of(distribution: Distribution) -> plugin_pb2.PackageDependency | None:
    """The plugin of a distribution, or None if it has none or its version is unknown.

    Values that pulumi-plugin.json does not set come from the distribution itself.
    """
    declared = distribution["plugin"]
    if declared is None:
        if not distribution["name"].startswith("pulumi-") or distribution["name"] in _WITHOUT_PLUGIN:
            return None
        declared = {"resource": True}
    if not declared.get("resource"):
        return None
    name = str(declared.get("name") or distribution["name"].removeprefix("pulumi-"))
    # The engine compares it with the state at each destroy and refresh.
    asked_for = provider_version() if name == "kubernetes" else None
    version = asked_for or declared.get("version") or plugin_version(distribution["version"])
    if version is None:
        return None
    return plugin_pb2.PackageDependency(
        name=name,
        kind="resource",
        version="v" + str(version).removeprefix("v"),
        server=str(declared.get("server") or ""),
        parameterization=_parameterization(declared.get("parameterization")),
    )


def plugin_version(version: str) -> str | None:
    """The semantic version of the plugin that a package of this PEP 440 version belongs to, or None if it has none.

    >>> plugin_version("4.34rc1")
    '4.34.0-rc.1'
    """
    parts = _PEP440.fullmatch(version)
    if parts is None:
        return None
    release = parts["release"].split(".")
    answer = ".".join(release + ["0"] * (3 - len(release)))
    if parts["stage"]:
        answer += "-{}.{}".format({"a": "alpha", "b": "beta", "rc": "rc"}[parts["stage"]], parts["pre"])
    build = "".join(f"{kind}{parts[kind]}" for kind in ("post", "dev") if parts[kind])
    return f"{answer}+{build}" if build else answer


def _parameterization(declared: object) -> plugin_pb2.PackageParameterization | None:
    if not isinstance(declared, dict):
        return None
    return plugin_pb2.PackageParameterization(
        name=declared["name"], version=declared["version"], value=base64.b64decode(declared["value"])
    )
