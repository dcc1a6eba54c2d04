"""The checkers: their commands for a folder of manifests, and parsers of their output.

checkov is installed from PyPI into a separate virtual environment, which requirements.txt pins by digests. kube-score
is built from its Go module (local/tools/kube-score). Both are in the cache of built tools.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import paths
from local.install import install_missing
from local.tools import KUBE_SCORE

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")

_GRADE_OK = 10
"""kube-score's grade of a check that finds nothing (scorecard/scorecard.go: GradeAllOK)."""


@dataclass(frozen=True)
class Found:
    """A finding."""

    file: str
    """Name of the file in the folder."""
    check: str
    """Id of the check."""
    what: str
    """Distinguishes it from other findings of the check in the file."""
    kind: str
    """Kind of the object."""


@dataclass(frozen=True)
class Run:
    """The result of a checker for a folder."""

    found: tuple[Found, ...]
    seconds: float
    """Includes the start of the program."""


@dataclass(frozen=True)
class Checker:
    """A program that finds faults in manifests."""

    name: str
    command: Callable[[Path], list[str]]
    """Command to check a folder; it prints JSON."""
    findings: Callable[[Any, Path], Iterator[Found]]
    """Parses the JSON."""

    def run(self, folder: Path) -> Run:
        """Checks a folder. The exit codes of the checkers only indicate whether there is a finding."""
        start = time.perf_counter()
        done = subprocess.run(self.command(folder), cwd=paths.ROOT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        try:
            output = json.loads(done.stdout)
        except json.JSONDecodeError as error:
            raise RuntimeError(f"{self.name} ended with {done.returncode}: {done.stderr or done.stdout}") from error
        return Run(tuple(self.findings(output, folder)), seconds)


def checkers() -> list[Checker]:
    """All checkers; builds and installs missing ones."""
    install_missing((KUBE_SCORE,))
    checkov, score = _checkov(), KUBE_SCORE.program("kube-score")
    return [
        Checker(
            "ray-platform policies",
            lambda folder: [sys.executable, "-m", "stacks", "policies", "--format", "json", str(folder)],
            _of_policies,
        ),
        Checker(
            f"checkov {_pinned('checkov')}",
            lambda folder: [
                *(str(checkov), "--directory", str(folder), "--framework", "kubernetes", "secrets"),
                *("--output", "json", "--compact", "--quiet", "--skip-download"),
            ],
            _of_checkov,
        ),
        Checker(
            f"kube-score {KUBE_SCORE.version.removeprefix('v')}",
            lambda folder: [
                *(str(score), "score", "--output-format", "json"),
                *map(str, sorted(folder.rglob("*.yaml"))),
            ],
            _of_kube_score,
        ),
    ]


def _of_policies(output: Any, folder: Path) -> Iterator[Found]:
    for each in output["findings"]:
        if each["known"]:
            file = str(Path(each["source"]).relative_to(folder))
            yield Found(file, each["rule"], each["place"], each["object"].partition("/")[0])


def _of_checkov(output: Any, folder: Path) -> Iterator[Found]:
    for framework in output if isinstance(output, list) else [output]:
        for each in framework.get("results", {}).get("failed_checks", []):
            kind = str(each["resource"]).partition(".")[0]
            # Findings of secrets refer to lines of text, not to objects.
            yield Found(each["file_path"].lstrip("/"), each["check_id"], kind, kind)


def _of_kube_score(output: Any, folder: Path) -> Iterator[Found]:
    for scored in output or []:
        for check in scored["checks"]:
            if check["grade"] < _GRADE_OK and not check["skipped"]:
                for comment in check["comments"] or [{"path": "", "summary": ""}]:
                    what = f"{comment['path']} {comment['summary']}"
                    file = str(Path(scored["file_name"]).relative_to(folder))
                    yield Found(file, check["check"]["id"], what, scored["type_meta"]["kind"])


def _pinned(package: str) -> str:
    lines = _REQUIREMENTS.read_text().splitlines()
    return next(each.partition("==")[2].split()[0] for each in lines if each.startswith(f"{package}=="))


def _checkov() -> Path:
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = paths.cache() / "tools" / f"checkov-{_pinned('checkov')}-{digest}"
    if not folder.is_dir():
        # A virtual environment contains its own path: create it in place, and remove it if it is incomplete.
        try:
            venv.create(folder, with_pip=False)
            install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes"]
            subprocess.run([*install, "--python", folder / "bin" / "python", "-r", _REQUIREMENTS], check=True)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder / "bin" / "checkov"


def folder_of(manifests: dict[str, str]) -> "tempfile.TemporaryDirectory[str]":
    """A folder with these files, by their names."""
    folder = tempfile.TemporaryDirectory()
    for name, text in manifests.items():
        file = Path(folder.name) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
