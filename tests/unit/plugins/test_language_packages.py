"""The plugins that the packages of a Python environment need."""

import os
import sys
from importlib.metadata import version

import pytest

from core.provider import PROVIDER_VERSION
from local.plugins.language.errors import HostError
from local.plugins.language.packages import Distribution, installed, plugin_version, required_plugins, top_level


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


def test_an_interpreter_that_does_not_run_is_reported() -> None:
    with pytest.raises(HostError, match="false cannot list its packages"):
        installed("false", dict(os.environ))


def test_the_plugin_file_overrides_the_name_and_version_of_its_package() -> None:
    plugin_json: dict[str, object] = {
        "resource": True,
        "name": "gcp",
        "version": "9.9.9",
        "server": "https://example.com",
    }
    (plugin,) = required_plugins([distribution("pulumi-google", plugin_json)])
    assert (plugin.name, plugin.version, plugin.server) == ("gcp", "v9.9.9", "https://example.com")


def test_a_pulumi_package_without_a_file_needs_the_plugin_of_its_name() -> None:
    (plugin,) = required_plugins([distribution("pulumi-random")])
    assert (plugin.name, plugin.version) == ("random", "v1.2.3")


def test_a_parameterized_package_passes_its_parameter_on() -> None:
    parameter = {"name": "pinecone", "version": "2.0.0", "value": "eyJhIjoxfQ=="}
    plugin_json: dict[str, object] = {
        "resource": True,
        "name": "terraform-provider",
        "version": "1.0.0",
        "parameterization": parameter,
    }
    (plugin,) = required_plugins([distribution("pulumi-pinecone", plugin_json)])
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
