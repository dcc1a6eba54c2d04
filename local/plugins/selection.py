"""The plugins that the engine uses: those of the user's Pulumi, or the ones that this checkout brings.

The engine looks for them where an ordinary installation has its plugins, in a PULUMI_HOME: `Selection.install` puts
links there. (On the PATH it would find them too, but warn about each one at every command.)
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from core.provider import PROVIDER_VERSION
from local.errors import RehearsalError
from local.tools import KUBERNETES_PROVIDER, PULUMI_KUBERNETES, TOOLS, Tool

Mode = Literal["auto", "real", "stand-in"]
"""`real` takes the user's or fails; `auto` takes them if they exist, else ours; `stand-in` always takes ours."""

STAND_IN = Path(__file__).resolve().parent / "bin" / "language-python"
"""The folder of the stand-in for the language host."""

_MARK = b"-m local.plugins."
"""A text of the stand-in's launcher: identifies stand-ins, also those of another checkout."""


@dataclass(frozen=True)
class Known:
    """A plugin that the program needs."""

    name: str
    """Its kind and name, as the engine writes them: `resource-kubernetes`."""
    sdk: str
    """The Python package of the plugin; both have the same version."""
    folders: Mapping[str, tuple[str, ...]]
    """The programs that the engine expects in each plugin folder; the first of all is the plugin itself."""
    advice: str
    """How a user gets Pulumi's own."""
    ours: Literal["stand-in", "built"]
    """What is used without it: a replacement, or Pulumi's own in the version that can be built."""

    @property
    def program(self) -> str:
        return next(iter(self.folders.values()))[0]


KNOWN = (
    Known(
        name="language-python",
        sdk="pulumi",
        folders={
            "language-python": ("pulumi-language-python", "pulumi-language-python-exec"),
            "resource-pulumi-python": ("pulumi-resource-pulumi-python",),
        },
        advice="install Pulumi (https://www.pulumi.com/docs/install/); it comes with it",
        ours="stand-in",
    ),
    Known(
        name="resource-kubernetes",
        sdk="pulumi-kubernetes",
        folders={"resource-kubernetes": ("pulumi-resource-kubernetes",)},
        advice=f"run `pulumi plugin install resource kubernetes {version('pulumi-kubernetes')}`",
        ours="built",
    ),
)


@dataclass(frozen=True)
class Plugin:
    """The chosen plugin: the user's (`real`) or ours, and the path of its program."""

    known: Known
    kind: Literal["real", "stand-in", "built"]
    path: Path

    @property
    def name(self) -> str:
        """`language-python` or `resource-kubernetes`."""
        return self.known.name


@dataclass(frozen=True)
class Selection:
    """The plugins of one rehearsal."""

    plugins: tuple[Plugin, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that the engine and the program need besides PULUMI_HOME, so that the engine ignores
        plugins on the PATH, and the program asks for the provider that there is."""
        built = {PROVIDER_VERSION: KUBERNETES_PROVIDER} if self._builds else {}
        return {"PULUMI_IGNORE_AMBIENT_PLUGINS": "true", **built}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the rehearsal: without the provider if the user has one."""
        return tuple(tool for tool in TOOLS if self._builds or tool is not PULUMI_KUBERNETES)

    @property
    def _builds(self) -> bool:
        return any(plugin.kind == "built" for plugin in self.plugins)

    def install(self, pulumi_home: Path) -> None:
        """Puts links to the plugins into `pulumi_home`/plugins, and removes those of an earlier selection.

        The folders have the version of the Python package, which the engine requires of a program that has it, and that
        of the built provider, which our program asks for. The engine asks the plugin itself for its version.
        """
        for plugin in self.plugins:
            built = (KUBERNETES_PROVIDER,) if plugin.kind == "built" else ()
            for folder, programs in plugin.known.folders.items():
                beside = {name: plugin.path.with_name(name) for name in programs}
                links = {name: path for name, path in beside.items() if path.exists()}
                _link(pulumi_home / "plugins", folder, (version(plugin.known.sdk), *built), links)


def select(mode: Mode, environ: Mapping[str, str] = os.environ) -> Selection:
    """The plugins for a mode; `environ` is the user's environment (PATH, HOME, PULUMI_HOME).

    Raises:
        RehearsalError: the mode is `real` and one of Pulumi's own is missing, or the mode is not known.
    """
    if mode not in ("auto", "real", "stand-in"):
        raise RehearsalError(f"PLUGINS is {mode!r}; allowed are auto, real and stand-in")
    return Selection(tuple(_choose(known, mode, environ) for known in KNOWN))


def prepare_home(home: Path, plugins: Selection) -> None:
    """A PULUMI_HOME with these plugins, in which the engine keeps no log.

    Since 3.259 the engine writes all properties of all resources into an encrypted log at every command. With KubeRay's
    CRDs, a megabyte of properties, that takes most of a command's time. No option disables it, but the engine continues
    without a log if it cannot create the folder (pkg/logging/encrypted.go, StartLogging).
    """
    plugins.install(home)
    logs = home / "logs"
    if not logs.exists():
        logs.write_text("A file in place of the folder, so that Pulumi keeps no log here.\n")


def _choose(known: Known, mode: Mode, environ: Mapping[str, str]) -> Plugin:
    if mode != "stand-in":
        for place in _places(known, environ):
            found = shutil.which(known.program, path=str(place))
            if found and not _is_stand_in(Path(found)):
                return Plugin(known, "real", Path(found).resolve())
    if mode == "real":
        places = "".join(f"\n  {place}" for place in _places(known, environ))
        raise RehearsalError(
            f"PLUGINS=real, but Pulumi's own {known.program} was found in none of these folders:{places}\n"
            f"To get it {known.advice}. Or use PLUGINS=auto, which takes ours where it is missing."
        )
    ours = PULUMI_KUBERNETES.program(known.program) if known.ours == "built" else STAND_IN / known.program
    return Plugin(known, known.ours, ours)


def _places(known: Known, environ: Mapping[str, str]) -> Iterator[Path]:
    """The places of Pulumi's own plugin, in the engine's order: PATH, beside `pulumi`, installed."""
    search = environ.get("PATH", "")
    yield from (Path(folder) for folder in search.split(os.pathsep) if folder)
    if pulumi := shutil.which("pulumi", path=search):
        yield Path(pulumi).resolve().parent
    home = Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME", "/")) / ".pulumi")
    yield home / "bin"
    required = _numbers(version(known.sdk))
    installed = {_numbers(folder.name): folder for folder in (home / "plugins").glob(f"{known.name}-v*")}
    # The engine takes the newest of the same major version that is no older than the package.
    for numbers, folder in sorted(installed.items(), reverse=True):
        if numbers[:1] == required[:1] and numbers >= required:
            yield folder


def _numbers(text: str) -> tuple[int, ...]:
    """The version in a text, for comparing: `resource-kubernetes-v4.34.2` is (4, 34, 2)."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else ()


def _is_stand_in(program: Path) -> bool:
    with program.open("rb") as file:
        return _MARK in file.read(2048)


def _link(plugins: Path, folder: str, versions: Iterable[str], links: Mapping[str, Path]) -> None:
    """Makes `plugins` contain exactly these links of a plugin, for all its versions; changes nothing if it does
    already."""
    desired = {plugins / f"{folder}-v{each}" / name: target for each in versions for name, target in links.items()}
    existing = {file: file.readlink() if file.is_symlink() else None for file in plugins.glob(f"{folder}-v*/*")}
    if existing == desired:
        return
    for old in plugins.glob(f"{folder}-v*"):
        if old.is_dir():
            shutil.rmtree(old)
    for link, target in desired.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
