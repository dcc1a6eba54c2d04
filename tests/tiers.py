"""`python -m tests.tiers`, which `make test` calls: runs the tiers of tests.

The first tier runs alone. Then those that mostly wait run beside the others. It prints what runs, what is left out and
why, and how long each tier took.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from local import paths
from local.real_node import unmet
from tests.suites import MODE, SEED, decision, session_seed

TIMES = paths.ROOT / ".test-times"
"""JUnit XML of the last run of each tier, of which `python -m tests.times` makes a page."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Tier:
    """Fields: `shows`: what its tests show; `arguments`: pytest's; `suites`: those of tests/suites.py in it; `real`: it
    needs programs and images of the real node, and mostly waits for them."""

    shows: str
    arguments: tuple[str, ...]
    suites: tuple[str, ...] = ()
    real: bool = False


@dataclass(frozen=True)
class Ran:
    """How a tier ended. Fields: `code`: pytest's exit code; `minutes`: how long it took."""

    code: int
    minutes: float


_BY_FILE = ("--numprocesses", "logical", "--maxprocesses", "6", "--dist", "loadfile", "--no-loadscope-reorder")
"""At most six processes, as each has a control plane or more (tests/conftest.py counts them)."""

_NOT_UNIT = ("--ignore", "tests/unit", "--ignore", "tests/pods")
"""Each process collects all files that are not ignored."""

TIERS: Mapping[str, Tier] = {
    "unit": Tier(
        "functions and components by themselves, no server",
        ("-m", "unit", "tests/unit", "--numprocesses", str(CORES), "--dist", "worksteal"),
        ("stack files", "strategic merge"),
    ),
    "engine": Tier(
        "the real engine, API server and operators on simulated nodes; Redis and its gateway",
        ("-m", "engine", *_NOT_UNIT, "--verbose", *_BY_FILE),
        ("manifests",),
    ),
    "stand-ins": Tier(
        "the stand-ins for Pulumi's plugins behave as Pulumi's own",
        ("-m", "stand_ins", "tests/engine", "--verbose", *_BY_FILE),
        ("stand-ins",),
    ),
    "pods": Tier(
        "real Ray in real pods",
        (
            *("-m", "pods", "tests/pods", "--ignore", "tests/pods/failover"),
            *("--verbose", "--numprocesses", "2", "--dist", "loadscope", "--durations=25"),
        ),
        real=True,
    ),
    "failover": Tier(
        f"masters of Redis are lost beneath real Ray, {os.environ.get('FAILOVERS') or 5} of them",
        ("-m", "pods", "tests/pods/failover", "--verbose"),
        real=True,
    ),
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def main(
    context: typer.Context,
    tiers: Annotated[list[str] | None, typer.Option("--tier", help=f"{', '.join(TIERS)}; else all.")] = None,
) -> None:
    """Run tiers of tests, with further arguments for pytest.

    The exit code is pytest's of the first tier that fails.
    """
    if unknown := [name for name in tiers or () if name not in TIERS]:
        raise typer.BadParameter(f"no such tier: {', '.join(unknown)}; there are {', '.join(TIERS)}")
    raise typer.Exit(run(tiers or list(TIERS), context.args))


def run(names: Sequence[str], more: Sequence[str] = ()) -> int:
    """Runs tiers. Returns the exit code of the first that fails, in the order of `names`; else 0."""
    left_out = {name: reason for name in names if (reason := reason_to_leave_out(TIERS[name]))}
    plan(names, left_out)
    begun = time.monotonic()
    chosen = [name for name in names if name not in left_out]
    ran = run_lane(chosen[:1], more)
    if not any(each.code for each in ran.values()):
        ran |= run_beside(chosen[1:], more)
    title("tiers of tests")
    for name in names:
        outcome = f"left out: {left_out[name]}" if name in left_out else "did not run"
        if name in ran:
            outcome = f"{ran[name].minutes:5.1f} min, {'failed' if ran[name].code else 'passed'}"
        show(f"{name:<10} {outcome}")
    show(f"{'all':<10} {(time.monotonic() - begun) / 60:5.1f} min")
    return next((ran[name].code for name in names if name in ran and ran[name].code), 0)


def run_beside(names: Sequence[str], more: Sequence[str]) -> dict[str, Ran]:
    """Runs those with real pods, which mostly wait, beside the others, which leave them the processors."""
    waiting, busy = [name for name in names if TIERS[name].real], [name for name in names if not TIERS[name].real]
    if not waiting or not busy:
        return run_lane(names, more)
    with ThreadPoolExecutor(1) as lane:
        beside = lane.submit(run_lane, waiting, more, logged=True)
        ran = run_lane(busy, more, yields=True) | beside.result()
    for name in waiting:
        if name in ran:
            title(f"output of tier {name}")
            show(log_of(name).read_text(errors="replace"))
    return ran


def run_lane(names: Sequence[str], more: Sequence[str], logged: bool = False, yields: bool = False) -> dict[str, Ran]:
    """Runs tiers in turn until one fails. `logged`: their output goes to files. `yields`: they let others go first."""
    ran: dict[str, Ran] = {}
    for name in names:
        where = f" (output: {log_of(name)})" if logged else ""
        title(f"tier {name}: {TIERS[name].shows}{where}")
        begun = time.monotonic()
        code = run_tier(name, more, logged, yields)
        ran[name] = Ran(code, (time.monotonic() - begun) / 60)
        title(f"tier {name} {'failed' if code else 'passed'} after {ran[name].minutes:.1f} min")
        if code:
            break
    return ran


def plan(names: Sequence[str], left_out: Mapping[str, str]) -> None:
    """What will run, in which order, and how much of each suite."""
    title("tiers of tests: what runs")
    for name in names:
        show(f"{name:<10} {'left out: ' + left_out[name] if name in left_out else TIERS[name].shows}")
        for suite in TIERS[name].suites if name not in left_out else ():
            show(f"{'':<10} suite {suite}: {decision(suite)}")
    shares = [decision(suite).share for name in names for suite in TIERS[name].suites]
    if any(0 < share < 1 for share in shares):
        show(f"the cases of a small share are drawn with {SEED}={session_seed()}")
    if any(share < 1 for share in shares):
        show(f"to run all of every suite: {MODE}=full")


def reason_to_leave_out(tier: Tier) -> str:
    """Why none of it runs; empty if it does. Continuous integration has to run what others cannot."""
    if tier.real and os.environ.get("CI") != "true" and (reasons := unmet()):
        return "; ".join(reasons)
    decided = [decision(suite) for suite in tier.suites]
    return decided[0].reason if decided and not any(each.share for each in decided) else ""


def run_tier(name: str, more: Sequence[str], logged: bool, yields: bool) -> int:
    """Its exit code."""
    TIMES.mkdir(exist_ok=True)
    commands = [[sys.executable, "-m", "pytest", *TIERS[name].arguments, f"--junitxml={TIMES / name}.xml", *more]]
    if TIERS[name].real:
        commands.insert(0, [sys.executable, "-m", "local", "build", "--nodes", "real"])
    with ExitStack() as stack:
        output = stack.enter_context(log_of(name).open("w")) if logged else None
        for command in commands:
            full = ["nice", "-n", "10", *command] if yields else command
            if code := subprocess.run(full, cwd=paths.ROOT, stdout=output, stderr=output, check=False).returncode:
                return code
    return 0


def log_of(name: str) -> Path:
    """Where the output of a tier goes that runs beside others."""
    return TIMES / f"{name}.log"


def title(text: str) -> None:
    """A line that is easy to find in a log."""
    show(f"==> {text}")


def show(line: str) -> None:
    """Prints at once: what pytest prints next must not come before it."""
    print(line, flush=True)


if __name__ == "__main__":
    app()
