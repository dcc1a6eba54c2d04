"""The rehearsal's programs and run folder, and the variables with which Pulumi runs."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local import paths, pki
from local.control_plane import choose_ports
from local.errors import RehearsalError
from local.install import install_missing
from local.plugins import Selection
from local.proxies import corrections
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal
from local.tools import (
    ALL,
    KUBERAY,
    KUBERAY_1_5,
    KUBERNETES,
    KUBERNETES_NODE,
    NODE_TOOLS,
    TEST_TOOLS,
    TOOLS,
    Tool,
    kuberay,
    prometheus_release,
)


@pytest.mark.parametrize("tool", [*TOOLS, *NODE_TOOLS, *TEST_TOOLS], ids=lambda tool: tool.name)
def test_each_tool_has_a_version_and_checksums(tool: Tool) -> None:
    assert tool.version.startswith("v")
    assert f"{tool.module} {tool.version} h1:" in (tool.source / "go.sum").read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_version_of_go_that_all_tools_need(page: str) -> None:
    numbers = max(tuple(map(int, tool.go.split(".")[:2])) for tool in ALL)
    assert f"[Go](https://go.dev/dl) {numbers[0]}.{numbers[1]} or newer" in (paths.ROOT / page).read_text()


def test_the_version_of_kubernetes_is_stamped_into_its_programs_and_that_of_the_real_node() -> None:
    stamps = KUBERNETES.stamps("v1.36.5")
    assert stamps["k8s.io/component-base/version.gitVersion"] == "v1.36.5"
    assert stamps["k8s.io/component-base/version.gitMinor"] == "36"
    assert KUBERNETES_NODE.version == KUBERNETES.version


@pytest.mark.parametrize(
    ("version", "tool"), [("1.5.1", KUBERAY_1_5), ("1.6.2", KUBERAY), ("1.6.0", KUBERAY), (None, KUBERAY)]
)
def test_a_pinned_version_of_the_operator_is_used(version: str | None, tool: Tool) -> None:
    assert kuberay(version) == tool


@pytest.mark.parametrize(("module", "release"), [("v0.313.5", "3.13.5"), ("v0.300.0", "3.0.0")])
def test_the_release_of_prometheus_has_the_numbers_of_its_module(module: str, release: str) -> None:
    assert prometheus_release(module) == release


def test_another_pin_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    tool = _tool(tmp_path, "v1.0.0")
    first = tool.folder
    assert first.name.startswith("example-v1.0.0-")
    (tool.source / "go.sum").write_text("changed")
    second = tool.folder
    (tool.source / "sdk").mkdir()
    (tool.source / "sdk" / "sdk.go").write_text("package sdk")
    assert len({first, second, tool.folder, replace(tool, tags=("netgo",)).folder}) == 4


def test_without_go_the_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("TOOLS", "build")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RehearsalError, match=r"Install Go 1\.24\.0 or newer"):
        install_missing((_tool(tmp_path, "v1.0.0"),))


def test_a_failed_build_reports_the_compilers_output_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TOOLS", "build")
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.setenv("GOPROXY", "off")
    tool = _tool(tmp_path, "v1.0.0")
    with pytest.raises(RehearsalError, match=r"of example v1\.0\.0 failed"):
        install_missing((tool,))
    assert list((tmp_path / "cache" / "tools").iterdir()) == []


def _tool(root: Path, version: str) -> Tool:
    tool = Tool("example", "example.test/tool", {"tool": "example.test/tool"})
    folder = root / "local" / "tools" / "example"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text(f"module m\n\ngo 1.24.0\n\nrequire example.test/tool {version}\n")
    (folder / "go.sum").write_text("")
    return tool


CREDENTIALS = pki.Credentials("127.0.0.1")


def test_credentials_are_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError("No space left on device")

    folder = tmp_path / "pki"
    with monkeypatch.context() as patch:
        patch.setattr(pki, "_write_service_account_key", full)
        with pytest.raises(OSError, match="No space left"):
            pki.issue(folder, CREDENTIALS)
    assert not folder.exists()
    pki.issue(folder, CREDENTIALS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pki"]
    assert folder.stat().st_mode & 0o777 == 0o700
    authority = (folder / "ca.crt").read_text()
    pki.issue(folder, CREDENTIALS)
    assert (folder / "ca.crt").read_text() == authority


def test_credentials_with_an_empty_file_are_issued_again(tmp_path: Path) -> None:
    pki.issue(tmp_path / "pki", CREDENTIALS)
    (tmp_path / "pki" / "ca.crt").write_text("")
    pki.issue(tmp_path / "pki", CREDENTIALS)
    assert "BEGIN CERTIFICATE" in (tmp_path / "pki" / "ca.crt").read_text()


@pytest.mark.parametrize("text", ["", '{"api": 2', "[]", '{"api": 20001}'])
def test_ports_that_cannot_be_read_are_chosen_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ports.json"
    file.write_text(text)
    ports = choose_ports(file)
    assert len(set(vars(ports).values())) == 5
    assert choose_ports(file) == ports


def test_a_kind_of_nodes_that_cannot_be_read_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("")
    assert Rehearsal(tmp_path).kind == "simulated"
    assert Rehearsal(tmp_path, "real").kind == "real"


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
