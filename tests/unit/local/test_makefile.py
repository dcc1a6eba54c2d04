"""`make` in a folder whose Python and .venv are small scripts: what it prints where, and when it installs packages."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from local import paths

PYTHON = """#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv ;;
  "-m local "*) echo "local: $*" ;;
esac
"""
"""It makes a .venv of itself, and prints the commands of the rehearsal."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder without .venv."""
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements-dev.txt").write_text("uv==1\n")
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-s", "PYTHON=./python", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)


def test_the_output_of_the_first_command_is_that_of_the_command_alone(checkout: Path) -> None:
    """It may be evaluated by a shell: eval "$(make -s env)"."""
    made = make(checkout, "env")
    assert made.stdout == "local: -m local env --stack dev\n"
    assert "Installing the Python packages" in made.stderr


def test_down_without_a_rehearsal_installs_nothing(checkout: Path) -> None:
    assert make(checkout, "down").stdout == "Nothing to stop.\n"
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("run", [".rehearsal", ".rehearsal-prod"])
def test_down_stops_a_rehearsal_whose_packages_were_removed(checkout: Path, run: str) -> None:
    (checkout / run).mkdir()
    assert make(checkout, "down", "CLEAN=1").stdout == "local: -m local down --clean\n"
    assert not (checkout / ".venv").exists()
