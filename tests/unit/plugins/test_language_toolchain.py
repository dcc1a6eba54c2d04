"""The Python that a project's `runtime.options` select."""

import sys
from pathlib import Path

import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2

from local.plugins.language.errors import HostError
from local.plugins.language.toolchain import resolve


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


def test_a_virtualenv_is_found_from_the_projects_root(tmp_path: Path) -> None:
    venv = virtualenv(tmp_path / ".venv")
    assert resolve(project(tmp_path, virtualenv=".venv")).python() == str(venv / "bin" / "python")


def test_a_virtualenv_may_be_anywhere(tmp_path: Path) -> None:
    venv = virtualenv(tmp_path / "elsewhere")
    assert resolve(project(tmp_path, virtualenv=str(venv))).python() == str(venv / "bin" / "python")


def test_the_error_for_a_missing_virtualenv_names_the_command_that_creates_it(tmp_path: Path) -> None:
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
