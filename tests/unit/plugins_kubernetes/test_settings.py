"""Settings of a provider: where they come from, which are refused, and which mean another cluster."""

from typing import Any

import yaml

from local.plugins.kubernetes.settings import Settings, changes, complaints
from local.plugins.kubernetes.values import UNKNOWN


def kubeconfig(server: str, user: str = "a") -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "main", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"username": user}}],
            "contexts": [{"name": "here", "context": {"cluster": "main", "user": "me"}}],
            "current-context": "here",
        }
    )


def replaces(olds: dict[str, Any], news: dict[str, Any]) -> list[str]:
    return changes(olds, news)[1]


def test_a_flag_of_the_program_overrides_the_environment() -> None:
    environment = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true", "PULUMI_K8S_DELETE_UNREACHABLE": "true"}
    settings = Settings.read({"kubernetes:config:enablePatchForce": "false"}, environment)
    assert not settings.enable_patch_force
    assert settings.delete_unreachable


def test_unsupported_settings_are_refused() -> None:
    assert "use the real plugin" in complaints({"renderYamlToDirectory": "out"}, False, {})["renderYamlToDirectory"]
    assert "enableServerSideApply" in complaints({"enableServerSideApply": "false"}, False, {})
    assert "enableServerSideApply" in complaints({}, False, {"PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY": "false"})
    assert complaints({"kubeconfig": "x", "context": "y"}, False, {}) == {}


def test_strict_mode_requires_an_explicit_provider_with_kubeconfig_and_context() -> None:
    assert set(complaints({"strictMode": "true"}, True, {})) == {"", "kubeconfig", "context"}
    assert complaints({"strictMode": "true", "kubeconfig": "x", "context": "y"}, False, {}) == {}


def test_new_credentials_for_the_same_server_replace_nothing() -> None:
    olds, news = {"kubeconfig": kubeconfig("https://a", "old")}, {"kubeconfig": kubeconfig("https://a", "new")}
    assert changes(olds, news) == (["kubeconfig"], [])


def test_another_server_replaces() -> None:
    assert replaces({"kubeconfig": kubeconfig("https://a")}, {"kubeconfig": kubeconfig("https://b")}) == ["kubeconfig"]


def test_with_the_same_cluster_identifier_nothing_is_replaced() -> None:
    olds = {"kubeconfig": kubeconfig("https://a"), "clusterIdentifier": "x"}
    assert replaces(olds, {"kubeconfig": kubeconfig("https://b"), "clusterIdentifier": "x"}) == []
    assert replaces(olds, olds | {"clusterIdentifier": "y"}) == ["clusterIdentifier"]
    assert replaces({"clusterIdentifier": "x"}, {}) == []


def test_an_unknown_kubeconfig_counts_as_another_cluster() -> None:
    assert replaces({"kubeconfig": kubeconfig("https://a")}, {"kubeconfig": UNKNOWN}) == ["kubeconfig"]
