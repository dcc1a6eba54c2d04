"""The Python that a project selects, and the plugins that its packages need."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2

from core.provider import PROVIDER_VERSION
from local.plugins.language.errors import HostError
from local.plugins.language.packages import Distribution, installed, plugin_version, required_plugins, top_level
from local.plugins.language.toolchain import resolve


def distribution(name: str, plugin: dict[str, object] | None = None, requires: tuple[str, ...] = ()) -> Distribution:
    return {"name": name, "version": "1.2.3", "requires": list(requires), "plugin": plugin}


def test_this_environment_needs_the_kubernetes_plugin_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROVIDER_VERSION, raising=False)
    (plugin,) = required_plugins(installed(sys.executable, dict(os.environ)))
    assert (plugin.name, plugin.kind) == ("kubernetes", "resource")
    assert plugin.version == f"v{version('pulumi-kubernetes')}"


def test_a_program_that_asks_for_another_kubernetes_plugin_needs_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROVIDER_VERSION, "4.25.0")
    found = required_plugins([distribution("pulumi-kubernetes"), distribution("pulumi-random")])
    assert [(plugin.name, plugin.version) for plugin in found] == [("kubernetes", "v4.25.0"), ("random", "v1.2.3")]


def test_installed_packages_have_names_as_pip_writes_them() -> None:
    found = {each["name"]: each for each in installed(sys.executable, dict(os.environ))}
    assert found["pulumi-kubernetes"]["version"] == version("pulumi-kubernetes")
    assert "pulumi" in found["pulumi-kubernetes"]["requires"]
    with pytest.raises(HostError, match="false cannot list its packages"):
        installed("false", dict(os.environ))


def test_the_plugin_of_a_package_is_that_of_its_name_or_of_its_file() -> None:
    (plugin,) = required_plugins([distribution("pulumi-random")])
    assert (plugin.name, plugin.version) == ("random", "v1.2.3")
    file: dict[str, object] = {"resource": True, "name": "gcp", "version": "9.9.9", "server": "https://example.com"}
    (plugin,) = required_plugins([distribution("pulumi-google", file)])
    assert (plugin.name, plugin.version, plugin.server) == ("gcp", "v9.9.9", "https://example.com")
    parameter = {"name": "pinecone", "version": "2.0.0", "value": "eyJhIjoxfQ=="}
    file = {"resource": True, "name": "terraform-provider", "version": "1.0.0", "parameterization": parameter}
    (plugin,) = required_plugins([distribution("pulumi-pinecone", file)])
    assert plugin.name == "terraform-provider"
    assert (plugin.parameterization.name, plugin.parameterization.value) == ("pinecone", b'{"a":1}')


@pytest.mark.parametrize(
    "without", [distribution("requests"), distribution("pulumi-policy"), distribution("x", {"resource": False})]
)
def test_a_package_without_a_plugin_needs_none(without: Distribution) -> None:
    assert required_plugins([without]) == []


@pytest.mark.parametrize(
    ("package", "plugin"),
    [
        ("4.34.2", "4.34.2"),
        ("4.34", "4.34.0"),
        ("1.2.3a4", "1.2.3-alpha.4"),
        ("1.2.3rc4", "1.2.3-rc.4"),
        ("1.2.3.post4", "1.2.3+post4"),
        ("1.2.3.post4.dev5", "1.2.3+post4dev5"),
        ("1!1.2.3", None),
        ("latest", None),
    ],
)
def test_the_version_of_a_package_becomes_a_semantic_version(package: str, plugin: str | None) -> None:
    assert plugin_version(package) == plugin


def test_only_packages_that_no_other_requires_are_direct_dependencies() -> None:
    found = [distribution("pulumi"), distribution("pulumi-kubernetes", requires=("pulumi",))]
    assert [each["name"] for each in top_level(found)] == ["pulumi-kubernetes"]


def project(root: Path, **options: str | bool) -> language_pb2.ProgramInfo:
    """The engine's description of a project whose program is in a separate folder (`main: program`)."""
    settings = struct_pb2.Struct()
    settings.update(options)
    (root / "program").mkdir(exist_ok=True)
    return language_pb2.ProgramInfo(
        root_directory=str(root), program_directory=str(root / "program"), entry_point=".", options=settings
    )


def virtualenv(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder


def test_a_virtualenv_may_be_anywhere_and_a_missing_one_is_named_with_the_command_that_creates_it(
    tmp_path: Path,
) -> None:
    for venv, named in ((tmp_path / ".venv", ".venv"), (tmp_path / "elsewhere", str(tmp_path / "elsewhere"))):
        virtualenv(venv)
        assert resolve(project(tmp_path, virtualenv=named)).python() == str(venv / "bin" / "python")
    toolchain = resolve(project(tmp_path, virtualenv="venv"))
    with pytest.raises(HostError, match=f"missing: {tmp_path / 'venv'} .*Run `pulumi install`"):
        toolchain.python()


def test_without_options_it_is_the_python_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(virtualenv(tmp_path) / "bin"))
    monkeypatch.delenv("PULUMI_PYTHON_CMD", raising=False)
    assert resolve(project(tmp_path)).python() == str(tmp_path / "bin" / "python")


def test_the_user_can_name_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_PYTHON_CMD", sys.executable)
    assert resolve(project(tmp_path)).python() == sys.executable
    monkeypatch.setenv("PULUMI_PYTHON_CMD", "python9")
    with pytest.raises(HostError, match="found no python9 on the PATH"):
        resolve(project(tmp_path)).python()


def test_a_plugin_never_runs_with_the_python_on_the_path(tmp_path: Path) -> None:
    assert resolve(project(tmp_path), plugin=True).virtualenv == tmp_path / "venv"


def test_the_programs_tools_come_from_its_virtualenv(tmp_path: Path) -> None:
    environment = resolve(project(tmp_path, virtualenv="venv")).environment({"PATH": "/usr/bin", "PYTHONHOME": "/usr"})
    assert environment == {"PATH": f"{tmp_path}/venv/bin:/usr/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}


def test_a_lock_file_of_uv_selects_uv_and_the_environment_beside_it(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").touch()
    toolchain = resolve(project(tmp_path))
    assert (toolchain.name, toolchain.virtualenv) == ("uv", tmp_path / ".venv")


def test_pip_creates_the_environment_once_and_installs_the_listed_packages(tmp_path: Path) -> None:
    info = project(tmp_path, virtualenv="venv")
    (tmp_path / "program" / "requirements.txt").touch()
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-r", "requirements.txt"]
    create, *then = resolve(info).install_commands()
    assert create[1:] == ["-m", "venv", str(tmp_path / "venv")]
    assert then == [install]
    virtualenv(tmp_path / "venv")
    assert resolve(info).install_commands() == [install]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"toolchain": "conda"}, "'toolchain' under 'runtime.options' is 'conda'; allowed are pip, poetry, uv"),
        ({"typechecker": "pyre"}, "'typechecker' under 'runtime.options' is 'pyre'; allowed are mypy, pyright"),
        ({"virtualenv": True}, "'virtualenv' under 'runtime.options' is True; it must be the path of a folder"),
    ],
)
def test_the_error_for_an_unknown_option_names_the_allowed_ones(
    tmp_path: Path, options: dict[str, str | bool], message: str
) -> None:
    with pytest.raises(HostError) as failure:
        resolve(project(tmp_path, **options))
    assert str(failure.value) == message


def test_a_toolchain_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="no `uv` on the PATH; install it"):
        resolve(project(tmp_path, toolchain="uv")).install_commands()
