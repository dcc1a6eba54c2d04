"""Choosing workers by past jobs: reading, proposal, output."""

import json
import random
from functools import partial
from pathlib import Path

import pytest
import yaml

from stacks.commands.plan.history.jobs import HistoryError, Job, read
from stacks.commands.plan.history.replay import Outcome, Size, at_once, outcome, proposal
from stacks.load import parse
from testbed.commands import stacks

ROOT = Path(__file__).parents[3]

STACK = """\
config:
  ray-platform:nodes:
    - {pool: a100, count: 4, cpu: 64, memory: 1000Gi, gpus: 8}
    - {pool: cpu, count: 1, cpu: 64, memory: 1000Gi}
  ray-platform:tenants:
    - name: team-a
      clusters:
        - {name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {pool: a100, WORKERS}}
        - {name: alone, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0"}
"""


def sizes(*gpus: int, most: int = 4, idle: float = 60.0) -> dict[str, Size]:
    return {f"{each}gpu": Size(each, 7 * each, most, idle) for each in gpus}


def jobs(count: int = 60) -> list[Job]:
    """Jobs of 1, 2 and 4 GPUs, one minute apart."""
    seeded = random.Random(1)  # noqa: S311 -- it makes the same numbers each time
    return [Job(seeded.choice([1, 1, 2, 4]), seeded.uniform(100, 900), 60.0 * number) for number in range(count)]


def played(outcome: Outcome) -> int:
    assert outcome.played
    return len(outcome.played.waits)


def test_a_history_is_read_by_its_columns_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("\ufeffuser,arrival,gpus,duration\na,20,2,5.5\nb,10,1.0,7\nc,15,0,9\n", encoding="utf-8")
    assert read(file) == [Job(1, 7.0, 10.0), Job(2, 5.5, 20.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "jobs.csv: cannot be read: No such file"),
        ("", "no column gpus, duration, arrival"),
        ("gpus,length\n1,2\n", "no column duration, arrival: the first line must be gpus,duration,arrival"),
        ("gpus,duration,arrival\n0.5,1,1\n", r":2: gpus is '0.5': set a whole number of GPUs"),
        ("gpus,duration,arrival\n1,5m,1\n", r":2: duration is '5m': set a number of seconds, 0 or more"),
        ("gpus,duration,arrival\n1,1,1\n1,1,-3\n", r":3: arrival is '-3'"),
        ("gpus,duration,arrival\n1,nan,1\n", "duration is 'nan'"),
        ("gpus,duration,arrival\n1,1\n", "arrival is None"),
        ("gpus,duration,arrival\n0,1,1\n", "no job has GPUs"),
    ],
)
def test_an_invalid_history_is_reported_with_its_line(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "jobs.csv"
    file.unlink(missing_ok=True)
    if text is not None:
        file.write_text(text)
    with pytest.raises(HistoryError, match=message):
        read(file)


def test_smaller_workers_use_fewer_gpu_hours_than_whole_nodes_and_no_job_waits_longer() -> None:
    present = outcome(sizes(8), jobs(), 32)
    proposed = proposal(present, [sizes(1, 2, 4, 8, most=32)], jobs(), 32)
    assert proposed.held < present.held
    assert proposed.p95 <= present.p95
    assert played(proposed) == played(present) == 60


def test_caps_exceed_the_workers_that_existed_at_once_and_unused_sizes_are_omitted() -> None:
    proposed = proposal(outcome(sizes(8), jobs(), 64), [sizes(1, 2, 4, 8, 16, most=100)], jobs(), 64)
    assert proposed.played
    assert "16gpu" not in proposed.sizes
    for name, size in proposed.sizes.items():
        assert at_once(proposed.played, name) < size.most <= 2 * at_once(proposed.played, name)
    assert outcome(proposed.sizes, jobs(), 64).held == pytest.approx(proposed.held)


def test_the_present_workers_are_kept_if_no_others_are_better() -> None:
    best = proposal(outcome(sizes(8), jobs(), 32), [sizes(1, 2, 4, 8, most=32)], jobs(), 32)
    assert proposal(best, [sizes(8)], jobs(), 32) is best


def test_a_job_that_no_worker_fits_is_better_run() -> None:
    mixed = [*jobs(20), Job(8, 100.0, 5000.0)]
    present = outcome(sizes(1, 2, 4), mixed, 32)
    assert present.infeasible == 1
    assert proposal(present, [sizes(1, 2)], mixed, 32) is present


def test_sizes_with_a_maximum_of_zero_do_not_count() -> None:
    none = outcome({**sizes(8, most=0)}, jobs(3), 32)
    assert (none.played, none.held, none.sizes) == (None, 0.0, {})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.a.yaml").write_text(STACK.replace("WORKERS", "variants: [{gpus: 8}]"))
    lines = [f"{job.gpus},{job.duration},{job.arrival}" for job in jobs()]
    (tmp_path / "jobs.csv").write_text("\n".join(["gpus,duration,arrival", *lines]))
    return tmp_path


plan = partial(stacks, "plan")


def test_the_proposal_is_printed_as_workers_that_the_stack_file_takes() -> None:
    result = plan("a", "--history", "jobs.csv")
    assert result.exit_code == 0, result.output
    workers = yaml.safe_load(result.output[result.output.index("workers:\n") :])["workers"]
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workers": workers}
    nodes = [{"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8}]
    parse({"nodes": nodes, "tenants": [{"name": "team-a", "clusters": [cluster]}]})
    assert {each["gpus"] for each in workers["variants"]} >= {1}


def test_sizes_that_the_stack_file_sets_are_proposed_unchanged(folder: Path) -> None:
    """Workers with fewer CPUs than GPUs run as many tasks as their GPUs hold, because tasks there request fewer CPUs,
    too."""
    (folder / "Pulumi.pods.yaml").write_text((ROOT / "Pulumi.pods.yaml").read_text())
    found = json.loads(plan("pods", "--history", "jobs.csv", "--format", "json").output)
    assert [found[each]["tooGreat"] for each in ("present", "proposed")] == [0, 0]
    assert {(each["cpu"], each["memory"]) for each in found["proposed"]["variants"]} == {("1", "2Gi")}


def test_programs_get_numbers() -> None:
    found = json.loads(plan("a", "--history", "jobs.csv", "--format", "json").output)
    assert found["usedGpuHours"] <= found["proposed"]["gpuHours"] < found["present"]["gpuHours"]
    assert found["present"]["variants"] == [{"gpus": 8, "maxReplicas": 4, "idleTimeout": "60s"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--history", "none.csv", "a"], "none.csv: cannot be read"),
        (["--history", "jobs.csv", "a", "a"], "--history is for one stack"),
        (["--history", "jobs.csv", "a", "--format", "svg"], "--history is for one stack"),
        (["--history", "jobs.csv", "a", "--cluster", "team-a/alone"], "set --cluster to one of these: team-a/training"),
    ],
)
def test_wrong_use_is_reported(arguments: list[str], message: str) -> None:
    result = plan(*arguments)
    assert result.exit_code == 2
    assert message in result.output
