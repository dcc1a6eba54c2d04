"""Which plugins `PLUGINS=auto|real|stand-in` gives a user."""

from importlib.metadata import version
from pathlib import Path

import pytest

from core.provider import PROVIDER_VERSION
from local.errors import RehearsalError
from local.plugins import Selection, select
from local.plugins.selection import STAND_IN
from local.tools import KUBERNETES_PROVIDER, PULUMI_KUBERNETES, TOOLS

KUBERNETES = "pulumi-resource-kubernetes"
LANGUAGE = "pulumi-language-python"


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    """An executable file, as an installation of Pulumi has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


OURS = {"language-python": "stand-in", "resource-kubernetes": "built"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user who has no Pulumi. Our provider is built."""
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    program(PULUMI_KUBERNETES.program(KUBERNETES))
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


def chosen(selection: Selection) -> dict[str, str]:
    return {plugin.name: plugin.kind for plugin in selection.plugins}


def test_without_pulumi_ours_are_used(machine: dict[str, str]) -> None:
    selection = select("auto", machine)
    assert chosen(selection) == OURS
    assert selection.tools == TOOLS
    assert selection.environment[PROVIDER_VERSION] == KUBERNETES_PROVIDER
    assert selection.plugins[0].path.stat().st_mode & 0o111


def test_a_provider_of_the_user_is_neither_built_nor_asked_for_in_another_version(
    machine: dict[str, str], tmp_path: Path
) -> None:
    program(tmp_path / "bin" / KUBERNETES)
    selection = select("auto", machine)
    assert chosen(selection) == OURS | {"resource-kubernetes": "real"}
    assert [tool for tool in TOOLS if tool not in selection.tools] == [PULUMI_KUBERNETES]
    assert PROVIDER_VERSION not in selection.environment


def test_a_real_plugin_on_the_path_is_used_and_only_for_the_missing_one_ours(
    machine: dict[str, str], tmp_path: Path
) -> None:
    real = program(tmp_path / "bin" / LANGUAGE)
    selection = select("auto", machine)
    assert chosen(selection) == OURS | {"language-python": "real"}
    assert selection.plugins[0].path == real


def test_the_language_host_beside_a_linked_pulumi_is_found(machine: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path / "opt" / LANGUAGE)
    (tmp_path / "bin" / "pulumi").symlink_to(program(tmp_path / "opt" / "pulumi"))
    assert chosen(select("auto", machine))["language-python"] == "real"


@pytest.mark.parametrize("home", ["home/.pulumi", "elsewhere"])
def test_an_installed_plugin_is_found_in_pulumis_home(machine: dict[str, str], tmp_path: Path, home: str) -> None:
    if home == "elsewhere":
        machine["PULUMI_HOME"] = str(tmp_path / home)
    sdk = version("pulumi-kubernetes")
    real = program(tmp_path / home / "plugins" / f"resource-kubernetes-v{sdk}" / KUBERNETES)
    assert select("auto", machine).plugins[1].path == real


def test_of_several_installed_versions_the_newest_is_used_and_none_older_than_the_python_package(
    machine: dict[str, str], tmp_path: Path
) -> None:
    plugins = tmp_path / "home" / ".pulumi" / "plugins"
    program(plugins / "resource-kubernetes-v4.0.0" / KUBERNETES)
    assert chosen(select("auto", machine)) == OURS
    for number in ("4.90.0", "4.100.0", "5.0.0"):
        program(plugins / f"resource-kubernetes-v{number}" / KUBERNETES)
    assert select("auto", machine).plugins[1].path.parent.name == "resource-kubernetes-v4.100.0"


def test_ours_can_be_forced_where_real_plugins_exist_and_an_unknown_mode_is_an_error(
    machine: dict[str, str], tmp_path: Path
) -> None:
    program(tmp_path / "bin" / LANGUAGE)
    program(tmp_path / "bin" / KUBERNETES)
    assert chosen(select("stand-in", machine)) == OURS
    assert set(chosen(select("real", machine)).values()) == {"real"}
    with pytest.raises(RehearsalError, match="PLUGINS is 'fake'; allowed are auto, real and stand-in"):
        select("fake", machine)  # type: ignore[arg-type]  # what a user may type


def test_another_checkouts_stand_in_on_the_path_is_not_taken_for_a_real_one(
    machine: dict[str, str], tmp_path: Path
) -> None:
    program(tmp_path / "bin" / LANGUAGE, (STAND_IN / LANGUAGE).read_text())
    assert chosen(select("auto", machine)) == OURS


def test_the_error_for_a_missing_real_plugin_names_the_places_and_how_to_install_it(
    machine: dict[str, str], tmp_path: Path
) -> None:
    program(tmp_path / "bin" / LANGUAGE)
    with pytest.raises(RehearsalError) as failure:
        select("real", machine)
    assert KUBERNETES in str(failure.value)
    assert machine["PATH"] in str(failure.value)
    assert f"pulumi plugin install resource kubernetes {version('pulumi-kubernetes')}" in str(failure.value)


def installed(home: Path) -> dict[str, Path]:
    return {str(link.relative_to(home / "plugins")): link.resolve() for link in home.glob("plugins/*/*")}


def test_the_engine_gets_the_plugins_where_it_looks_for_installed_ones(machine: dict[str, str], tmp_path: Path) -> None:
    select("stand-in", machine).install(tmp_path)
    sdk, built = version("pulumi"), PULUMI_KUBERNETES.program(KUBERNETES)
    assert installed(tmp_path) == {
        f"language-python-v{sdk}/{LANGUAGE}": STAND_IN / LANGUAGE,
        f"resource-pulumi-python-v{sdk}/pulumi-resource-pulumi-python": STAND_IN / "pulumi-resource-pulumi-python",
        f"resource-kubernetes-v{version('pulumi-kubernetes')}/{KUBERNETES}": built,
        f"resource-kubernetes-v{KUBERNETES_PROVIDER}/{KUBERNETES}": built,
    }


def test_another_selection_replaces_what_the_last_one_installed(machine: dict[str, str], tmp_path: Path) -> None:
    select("stand-in", machine).install(tmp_path)
    real = program(tmp_path / "bin" / LANGUAGE)
    shim = program(tmp_path / "bin" / f"{LANGUAGE}-exec")
    select("auto", machine).install(tmp_path)
    folder = f"language-python-v{version('pulumi')}"
    links = installed(tmp_path)
    assert links[f"{folder}/{LANGUAGE}"] == real
    assert links[f"{folder}/{LANGUAGE}-exec"] == shim
    assert not list(tmp_path.glob("plugins/resource-pulumi-python-v*/"))
    assert links[f"resource-kubernetes-v{KUBERNETES_PROVIDER}/{KUBERNETES}"] == PULUMI_KUBERNETES.program(KUBERNETES)


def test_installing_the_same_selection_again_touches_nothing(machine: dict[str, str], tmp_path: Path) -> None:
    select("stand-in", machine).install(tmp_path)
    before = {path: path.lstat().st_ino for path in tmp_path.glob("plugins/*/*")}
    select("stand-in", machine).install(tmp_path)
    assert {path: path.lstat().st_ino for path in tmp_path.glob("plugins/*/*")} == before


def test_a_newer_plugin_of_an_earlier_python_package_is_not_used(machine: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path / "plugins" / "resource-kubernetes-v99.0.0" / KUBERNETES)
    select("stand-in", machine).install(tmp_path)
    folders = {path.name for path in tmp_path.glob("plugins/resource-kubernetes-v*/")}
    assert folders == {f"resource-kubernetes-v{each}" for each in (version("pulumi-kubernetes"), KUBERNETES_PROVIDER)}
