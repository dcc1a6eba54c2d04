"""A compiler that is too old is an error at once, not after the minutes of a build."""

from pathlib import Path

import pytest

from local.errors import RehearsalError
from local.install.build import Build
from local.install.origin import Auto, Origin
from local.tools import Tool


def answers(folder: Path, version: str, toolchain: str) -> None:
    """A `go` of this version alone on the PATH. It fails as a compiler."""
    go = folder / "go"
    go.write_text(f'#!/bin/sh\n[ "$1" = env ] && printf "%s\\n" "{version}" "{toolchain}" || exit 1\n')
    go.chmod(0o755)


@pytest.mark.parametrize("origin", [Auto(), Build()])
@pytest.mark.parametrize(
    ("version", "toolchain"), [("go1.23.9", "local"), ("go1.24rc1", "local"), ("go1.9", "go1.9"), ("go1.20", "")]
)
def test_go_that_is_too_old_and_gets_no_other_version_is_refused(
    tool: Tool, without_go: Path, version: str, toolchain: str, origin: Origin
) -> None:
    answers(without_go, version, toolchain)
    with pytest.raises(RehearsalError) as refused:
        origin.check([tool])
    problem = f"example needs Go 1.24.0 or newer; the one on the PATH is {version} and gets no newer one "
    assert str(refused.value).startswith(f"{problem}(GOTOOLCHAIN={toolchain})")
    assert "Install Go 1.24.0 or newer" in str(refused.value)


@pytest.mark.parametrize(
    ("version", "toolchain"),
    [
        ("go1.24.0", "local"),
        ("go1.26.8", "local"),
        ("go2.0", "local"),
        ("go1.21.0", "auto"),
        ("go1.21.0", "go1.21+auto"),
    ],
)
def test_go_that_is_new_enough_or_gets_a_newer_version_builds(
    tool: Tool, without_go: Path, version: str, toolchain: str
) -> None:
    answers(without_go, version, toolchain)
    Build().check([tool])


def test_the_newest_of_the_required_versions_counts(tool: Tool, checkout: Path, without_go: Path) -> None:
    other = Tool("other", tool.module, {})
    (checkout / "local/tools/other").mkdir()
    (checkout / "local/tools/other/go.mod").write_text("module m\n\ngo 1.25.11\n")
    answers(without_go, "go1.25.9", "local")
    with pytest.raises(RehearsalError, match=r"other needs Go 1\.25\.11 or newer"):
        Build().check([tool, other])
