"""How the rehearsal's programs are pinned and found again."""

from pathlib import Path

import pytest

from local import paths
from local.errors import RehearsalError
from local.install import install_missing
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
)


@pytest.mark.parametrize("tool", [*TOOLS, *NODE_TOOLS, *TEST_TOOLS], ids=lambda tool: tool.name)
def test_each_tool_has_a_version_and_checksums(tool: Tool) -> None:
    assert tool.version.startswith("v")
    assert f"{tool.module} {tool.version} h1:" in (tool.source / "go.sum").read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_version_of_go_that_all_tools_need(page: str) -> None:
    numbers = max(tuple(map(int, tool.go.split(".")[:2])) for tool in ALL)
    assert f"[Go](https://go.dev/dl) {numbers[0]}.{numbers[1]} or newer" in (paths.ROOT / page).read_text()


def test_the_version_of_kubernetes_is_stamped_into_its_programs() -> None:
    stamps = KUBERNETES.stamps("v1.34.4")
    assert stamps["k8s.io/component-base/version.gitVersion"] == "v1.34.4"
    assert stamps["k8s.io/component-base/version.gitMinor"] == "34"


def test_the_real_node_has_the_versions_of_the_rest() -> None:
    assert KUBERNETES_NODE.version == KUBERNETES.version


@pytest.mark.parametrize(
    ("version", "tool"), [("1.5.1", KUBERAY_1_5), ("1.6.2", KUBERAY), ("1.6.0", KUBERAY), (None, KUBERAY)]
)
def test_a_pinned_version_of_the_operator_is_used(version: str | None, tool: Tool) -> None:
    assert kuberay(version) == tool


def test_another_pin_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    tool = _tool(tmp_path, "v1.0.0")
    first = tool.folder
    assert first.name.startswith("example-v1.0.0-")
    (tool.source / "go.sum").write_text("changed")
    second = tool.folder
    (tool.source / "sdk").mkdir()
    (tool.source / "sdk" / "sdk.go").write_text("package sdk")
    assert len({first, second, tool.folder}) == 3


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
