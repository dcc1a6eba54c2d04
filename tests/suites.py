"""Suites that run in full only when what they test has changed since they last passed.

Each suite names its inputs (suite_inputs). After a full run in which all of its tests passed, the digests of these
files are recorded in the tool cache. As long as they stay the same, but at most for a week, the suite runs a small
share of its cases with a fresh seed, or is skipped. Without a record, or with one that cannot be read, it runs in full.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

from local import paths
from tests.imported import imported
from tests.suite_inputs import SUITES, Suite

Mode = Literal["auto", "full", "fresh", "share"]
"""`auto` decides by what has changed, `full` runs every suite in full, `fresh` too, with cases of a fresh seed, and
`share` only the small share of each."""

MODE, SEED = "SUITES", "SEED"
"""Variables of the environment: the mode, which is `full` unless set, and the seed of fresh cases."""

FEWEST = 20
"""Cases of a test that runs a small share."""

MOST_SECONDS = 7 * 24 * 3600.0
"""A record counts for a week: nobody can name all inputs of tests that run several programs."""

NAMED = 3
"""Changed files that a reason names."""

PINS = ("requirements.txt", "requirements-dev.txt", "tests/imported.py", "tests/suites.py")
"""Inputs of every suite: the Python packages, and how a share is drawn."""

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Decision:
    """How much of a suite runs (1 is all of it), and why."""

    share: float
    reason: str

    @property
    def full(self) -> bool:
        return self.share == 1.0

    def __str__(self) -> str:
        much = "in full" if self.full else f"{self.share:.0%} of its cases" if self.share else "skipped"
        return f"{much}: {self.reason}"


def mode() -> Mode:
    """The mode that the environment sets.

    Raises:
        ValueError: the environment has another value.
    """
    match os.environ.get(MODE) or "full":
        case ("auto" | "full" | "fresh" | "share") as known:
            return known
        case other:
            raise ValueError(f"{MODE} is {other!r}: use auto, full, fresh or share")


def digests(suite: Suite, root: Path = paths.ROOT) -> dict[str, str]:
    """The SHA-256 of each input by its path. What its tests and their helpers import is an input, and so are Python,
    Pulumi's plugins and where tools come from.

    Raises:
        ValueError: a pattern matches no file, so a file was moved or renamed.
    """
    found = {"Python": sys.version.split()[0]}
    found |= _content(imported(suite.files, root), root)
    found |= {choice: os.environ.get(choice) or "auto" for choice in ("PLUGINS", "TOOLS")}
    found |= {program: _version(program) for program in suite.programs}
    for pattern in (*suite.inputs, *PINS):
        files = [file for file in sorted(root.glob(pattern)) if file.is_file() and "__pycache__" not in file.parts]
        if not files:
            raise ValueError(f"no file matches {pattern!r}, an input of a suite of tests: correct tests/suite_inputs")
        found |= _content(files, root)
    return found


def _content(files: Iterable[Path], root: Path) -> dict[str, str]:
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _version(program: str) -> str:
    """What a program reports as its version; empty if the machine does not have it."""
    found = shutil.which(program)
    if found is None:
        return ""
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout


def record(name: str) -> Path:
    """The file with the digests of the suite's inputs when all of it last passed, and the time."""
    return paths.cache() / "suites" / f"{name.replace(' ', '-')}.json"


def decide(name: str, now: Mapping[str, str], chosen: Mode) -> Decision:
    """How much of a suite runs, with these digests."""
    suite = SUITES[name]
    if chosen in ("full", "fresh"):
        return Decision(1.0, f"{MODE}={chosen}")
    if chosen == "share":
        return Decision(suite.share, f"{MODE}=share")
    try:
        passed = json.loads(record(name).read_text())
        then, at = dict(passed["inputs"]), time.strftime("%Y-%m-%d %H:%M", time.localtime(passed["at"]))
    except FileNotFoundError:
        return Decision(1.0, "it has not passed on this machine yet")
    except (OSError, ValueError, TypeError, KeyError) as error:
        return Decision(1.0, f"the record of when it last passed cannot be read ({type(error).__name__})")
    if changed := sorted(path for path in then.keys() | now.keys() if then.get(path) != now.get(path)):
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        return Decision(1.0, f"{', '.join(changed[:NAMED])}{more} changed since it last passed")
    if time.time() - passed["at"] > MOST_SECONDS:
        return Decision(1.0, f"all of it last passed on {at}, more than a week ago")
    return Decision(suite.share, f"no input has changed since all of it passed on {at}")


def record_pass(name: str, passed: Mapping[str, str]) -> None:
    """Records that all of a suite passed with these digests."""
    file = record(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"at": time.time(), "inputs": dict(passed)}, indent=1))
    part.replace(file)


@cache
def _at_start(name: str) -> dict[str, str]:
    """The digests when this session began."""
    return digests(SUITES[name])


@cache
def decision(name: str) -> Decision:
    """The decision of this session."""
    return decide(name, _at_start(name), mode())


def inputs_if_unchanged(name: str) -> dict[str, str] | None:
    """The digests on which this session decided; None if a file has changed since."""
    return now if (now := digests(SUITES[name])) == _at_start(name) else None


def session_seed() -> int:
    """The seed of fresh cases. Worker processes of a session get it from the environment."""
    if not os.environ.get(SEED):
        os.environ[SEED] = str(random.SystemRandom().randrange(2**32))
    return int(os.environ[SEED])


def cases(name: str, count: int) -> Callable[[Test], Test]:
    """Decorates a Hypothesis test of a suite: `count` cases, the same each time or fresh ones, or a small share of
    fresh ones."""
    decided = decision(name)
    common = settings(
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    if decided.full and mode() != "fresh":
        return settings(common, derandomize=True, max_examples=count)
    number = max(FEWEST, round(count * decided.share))
    drawn = settings(common, derandomize=False, max_examples=number)
    return lambda test: seed(session_seed())(drawn(test))


def in_full(name: str) -> bool:
    """Whether all cases of a suite run."""
    return decision(name).full
