"""`python -m tests.tiers`, which `make test` calls: runs the tiers of tests one after the other.

It shows which tiers run, which are skipped and why, and how long each tier took.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from local import paths
from local.real_node import unmet
from tests.suites import MODE, SEED, decision, session_seed

TIMES = paths.ROOT / ".test-times"
"""JUnit XML of the last run of each tier, from which `python -m tests.times` writes a page."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Tier:
    """Fields: `shows`: what its tests show; `arguments`: pytest's; `suites`: those of tests/suite_inputs in it;
    `only`: whether all of its tests are in these; `real`: whether it needs programs and images of the real node;
    `by_name`: whether it runs only when it is named, because its tests are in another tier too."""

    shows: str
    arguments: tuple[str, ...]
    suites: tuple[str, ...] = ()
    only: bool = False
    real: bool = False
    by_name: bool = False


_BY_FILE = ("--numprocesses", "logical", "--maxprocesses", "6", "--dist", "loadfile", "--no-loadscope-reorder")
"""At most six processes, as each has a control plane or more (tests/conftest.py counts them)."""

_NOT_UNIT = ("--ignore", "tests/unit", "--ignore", "tests/pods")
"""Each process collects all files that are not ignored."""

LOSSES = os.environ.get("FAILOVERS") or 5

_UNIT = ("tests/unit", "--numprocesses", str(CORES), "--dist", "worksteal")

TIERS: Mapping[str, Tier] = {
    "unit": Tier(
        "functions and components alone, no server",
        ("-m", "unit", *_UNIT),
        ("stack files", "ray start", "strategic merge", "Cloudera ML"),
    ),
    "quick": Tier(
        "the unit tests without those of many cases or of other processes, which take seconds each",
        ("-m", "unit and not thorough", *_UNIT),
        ("stack files", "ray start", "strategic merge"),
        by_name=True,
    ),
    "engine": Tier(
        "the real engine, API server and operators on simulated nodes; Redis and its gateway",
        ("-m", "engine", *_NOT_UNIT, "--verbose", *_BY_FILE),
        (
            "manifests",
            "Redis",
            "Ray on Cloudera ML",
            "draining",
            "full disk",
            "wheel",
            "pages",
            "Kueue",
            "Volcano",
            "operator",
            "Redis in a stack",
            "recovery",
            "split",
            "rehearsal",
            "workflows",
        ),
    ),
    "stand-ins": Tier(
        "the stand-ins for Pulumi's plugins behave as Pulumi's own",
        ("-m", "stand_ins", "tests/engine", "--verbose", *_BY_FILE),
        ("stand-ins",),
        only=True,
    ),
    "pods": Tier(
        f"real Ray in real pods; masters of Redis are lost beneath it, {LOSSES} of them",
        ("-m", "pods", "tests/pods", "--verbose", "--numprocesses", "2", "--dist", "loadscope", "--durations=25"),
        ("real node", "jobs", "services", "monitoring", "outages"),
        real=True,
    ),
    "failover": Tier(
        f"masters of Redis are lost beneath real Ray, {LOSSES} of them",
        ("-m", "pods", "tests/pods/failover", "--verbose"),
        ("outages",),
        real=True,
        by_name=True,
    ),
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def main(
    context: typer.Context,
    tiers: Annotated[list[str] | None, typer.Option("--tier", help=f"{', '.join(TIERS)}; else all tests.")] = None,
) -> None:
    """Run tiers of tests, with further arguments for pytest.

    The exit code is pytest's of the first tier that fails; those after it do not run.
    """
    if unknown := [name for name in tiers or () if name not in TIERS]:
        raise typer.BadParameter(f"no such tier: {', '.join(unknown)}; there are {', '.join(TIERS)}")
    raise typer.Exit(run(tiers or [name for name, tier in TIERS.items() if not tier.by_name], context.args))


def run(names: Sequence[str], more: Sequence[str] = ()) -> int:
    """Runs tiers in turn. Returns the exit code of the first that fails, else 0."""
    skipped = {name: reason for name in names if (reason := reason_to_skip(TIERS[name]))}
    plan(names, skipped)
    took: dict[str, float] = {}
    code = 0
    for number, name in enumerate(names, start=1):
        if name in skipped or code:
            continue
        title(f"tier {name} ({number} of {len(names)}): {TIERS[name].shows}")
        begun = time.monotonic()
        code = run_tier(name, TIERS[name], more)
        took[name] = time.monotonic() - begun
    title("tiers of tests")
    for name in names:
        outcome = f"skipped: {skipped[name]}" if name in skipped else "did not run"
        if name in took:
            failed = code and name == list(took)[-1]
            outcome = f"{took[name] / 60:5.1f} min, {'failed' if failed else 'passed'}"
        show(f"{name:<10} {outcome}")
    show(f"{'all':<10} {sum(took.values()) / 60:5.1f} min")
    return code


def plan(names: Sequence[str], skipped: Mapping[str, str]) -> None:
    """Prints what will run, in which order, and how much of each suite."""
    title("tiers of tests: what runs")
    for name in names:
        show(f"{name:<10} {'skipped: ' + skipped[name] if name in skipped else TIERS[name].shows}")
        for suite in TIERS[name].suites if name not in skipped else ():
            show(f"{'':<10} suite {suite}: {decision(suite)}")
    shares = [decision(suite).share for name in names for suite in TIERS[name].suites]
    if any(0 < share < 1 for share in shares):
        show(f"the cases of a small share are drawn with {SEED}={session_seed()}")
    if any(share < 1 for share in shares):
        show(f"to run all of every suite: {MODE}=full")


def reason_to_skip(tier: Tier) -> str:
    """Why the tier is skipped; empty if it runs. Continuous integration has to run tiers that other machines skip."""
    if tier.real and os.environ.get("CI") != "true" and (reasons := unmet()):
        return "; ".join(reasons)
    decided = [decision(suite) for suite in tier.suites if tier.only]
    return decided[0].reason if decided and not any(each.share for each in decided) else ""


def run_tier(name: str, tier: Tier, more: Sequence[str]) -> int:
    """Runs a tier; returns its exit code."""
    if tier.real:
        build = [sys.executable, "-m", "local", "build", "--nodes", "real"]
        if code := subprocess.run(build, cwd=paths.ROOT, check=False).returncode:
            return code
    TIMES.mkdir(exist_ok=True)
    report = f"--junitxml={TIMES / name}.xml"
    command = [sys.executable, "-m", "pytest", *tier.arguments, report, *more]
    return subprocess.run(command, cwd=paths.ROOT, check=False).returncode


def title(text: str) -> None:
    """A line that is easy to find in a log."""
    show(f"==> {text}")


def show(line: str) -> None:
    """Prints at once: what pytest prints next must not come before it."""
    print(line, flush=True)


if __name__ == "__main__":
    app()
