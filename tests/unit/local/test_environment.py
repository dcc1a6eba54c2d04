"""The variables with which Pulumi runs in the rehearsal, and the effect of a proxy in the environment."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.plugins import Selection
from local.proxies import corrections
from local.pulumi import RehearsalStack


def test_variables_of_other_stacks_do_not_reach_the_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi prefers even an empty PULUMI_CONFIG_PASSPHRASE to a file of one."""
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK", "PULUMI_DIY_BACKEND_GZIP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/of/another")
    monkeypatch.setenv("PULUMI_DEBUG_COMMANDS", "true")
    rehearsal: Any = SimpleNamespace(run=tmp_path, kubeconfig=tmp_path / "admin")
    environment = RehearsalStack(rehearsal, Selection(()), "dev").environment
    passphrase, stack = environment["PULUMI_CONFIG_PASSPHRASE_FILE"], environment["PULUMI_OPTION_STACK"]
    assert (passphrase, stack) == (str(tmp_path / "pulumi" / "passphrase"), "dev")
    assert environment["PULUMI_DEBUG_COMMANDS"] == "true"
    assert not environment.keys() & {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK", "PULUMI_DIY_BACKEND_GZIP"}


def test_without_a_proxy_the_environment_stays_as_it_is() -> None:
    assert corrections({"PATH": "/bin", "NO_PROXY": "corp.example", "https_proxy": ""}) == {}


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "grpc_proxy"])
def test_with_a_proxy_the_rehearsals_addresses_are_exceptions(name: str) -> None:
    changed = corrections({name: "http://proxy.corp.example:3128"})
    assert changed["no_proxy"] == changed["NO_PROXY"]
    assert {"127.0.0.1", "198.18.0.0/15", "10.96.0.0/16", ".svc"} <= set(changed["no_proxy"].split(","))


def test_a_proxy_in_capitals_is_one_for_apt_too() -> None:
    assert corrections({"HTTP_PROXY": "http://proxy:3128"})["http_proxy"] == "http://proxy:3128"
    configured = {"HTTP_PROXY": "http://one:3128", "http_proxy": "http://other:3128"}
    assert corrections(configured)["http_proxy"] == "http://other:3128"


def test_the_users_own_exceptions_stay_and_none_is_repeated() -> None:
    configured = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "corp.example, 127.0.0.1", "no_proxy": "git.example"}
    exceptions = corrections(configured)["no_proxy"].split(",")
    assert exceptions[:3] == ["git.example", "corp.example", "127.0.0.1"]
    assert len(exceptions) == len(set(exceptions))
    again = corrections({**configured, **corrections(configured)})
    assert again == corrections(configured)
