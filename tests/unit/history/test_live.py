"""A live RayCluster as a history of jobs: what its Ray reports, what is collected, and the note for the reader."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.cluster import Cluster, ClusterUnreachableError
from components.rollout.pods import Pods, UnknownRayError
from stacks.commands.plan.history import live
from stacks.commands.plan.history.jobs import HistoryError, Job, keep, read
from stacks.commands.plan.history.live import demand_of
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from tests.unit.history.test_history import STACK, jobs

BEGIN, NOW = 1_800_000_000.0, 1_800_001_000.0


def asked(name: str, gpus: float, begin: float | None, end: float | None, waited: float = 0.0) -> dict[str, Any]:
    """The head's report of a task. Times are seconds since BEGIN."""
    started, ended = (None if each is None else BEGIN + each for each in (begin, end))
    return {"id": name, "gpus": gpus, "asked": BEGIN + (begin or 0.0) - waited, "started": started, "ended": ended}


def reported(*demands: dict[str, Any]) -> dict[str, Any]:
    return {"cluster": "c", "now": NOW, "demands": list(demands)}


ENDED = asked("ended", 2, 60, 90, waited=50)


def test_jobs_that_have_ended_run_or_wait_are_counted_with_their_times() -> None:
    found = demand_of(reported(ENDED))
    assert found.jobs == {"c-ended": Job(2, 30.0, BEGIN + 10)}
    assert found.sentence("a/b") == "Ray of a/b knows of 1 tasks, actors and bundles with GPUs."
    found = demand_of(
        reported(asked("runs", 1, 400, None), asked("waits", 4, None, None), asked("cancelled", 1, None, 5))
    )
    assert found.jobs == {"c-runs": Job(1, 600.0, BEGIN + 400)}
    assert (found.running, found.waiting) == (1, 1)
    assert "1 of them still run" in found.sentence("a/b")
    assert "1 more wait" in found.sentence("a/b")
    found = demand_of(reported(asked("half", 0.5, 0, 10), ENDED))
    assert [job.gpus for job in found.jobs.values()] == [1, 2]
    assert found.shared == 1


def test_jobs_are_collected_and_a_job_that_continued_is_not_listed_twice(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    assert keep(file, {"runs": Job(1, 5.0, BEGIN), "ended": Job(4, 7.0, BEGIN + 1)}) == [
        Job(1, 5.0, BEGIN),
        Job(4, 7.0, BEGIN + 1),
    ]
    # Ray has forgotten the other one by now.
    both = keep(file, {"runs": Job(1, 50.0, BEGIN)})
    assert both == [Job(1, 50.0, BEGIN), Job(4, 7.0, BEGIN + 1)] == read(file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpus,duration,arrival\n1,1,1\n", "no column id: jobs can only be added to a file that --save has written"),
        ("something else\n", "no column gpus, duration, arrival"),
    ],
)
def test_another_file_does_not_change(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(text)
    with pytest.raises(HistoryError, match=message):
        keep(file, {"one": Job(1, 1.0, BEGIN)})
    assert file.read_text() == text


_JOBS = list(enumerate(jobs()))


class Played:
    """The pods of a RayCluster whose Ray has run sixty jobs."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self.asked = (cluster.connection.context, namespace, name)

    def all(self) -> list[dict[str, Any]]:
        return []

    def run_in_head(self, _pods: object, script: str) -> dict[str, Any]:
        assert self.asked == (None, "team-a", "training")
        assert "GlobalStateAccessor" in script
        return reported(*(asked(str(each), job.gpus, job.arrival, job.arrival + job.duration) for each, job in _JOBS))


class Silent(Played):
    """A RayCluster whose head does not answer."""

    def run_in_head(self, _pods: object, _script: str) -> dict[str, Any]:
        raise UnknownRayError("its head does not exist")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live, "Pods", Played)
    (tmp_path / "Pulumi.a.yaml").write_text(STACK.replace("WORKERS", "variants: [{gpus: 8}]"))
    return tmp_path


plan = partial(stacks, "plan", "a", "--history")


def test_workers_are_proposed_for_the_clusters_jobs(folder: Path) -> None:
    result = plan("live")
    assert result.exit_code == 0, result.output
    assert "Ray of team-a/training knows of 60 tasks" in result.output
    assert "{gpus: 1, maxReplicas:" in result.output


def test_saved_jobs_are_used_as_well(folder: Path) -> None:
    keep(folder / "jobs.csv", {"earlier": Job(8, 600.0, BEGIN - 5000)})
    found = json.loads(plan("live", "--save", "jobs.csv", "--format", "json").output)
    assert found["jobs"] == 61
    assert found["notes"] == ["Ray of team-a/training knows of 60 tasks, actors and bundles with GPUs."]
    assert len(read(folder / "jobs.csv")) == 61


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["live"], "RayCluster team-a/training cannot be asked for its history: its head does not exist"),
        (["jobs.csv", "--save", "more.csv"], "--save is for --history live"),
        (["live", "--cluster", "team-a/alone"], "set --cluster to one of these: team-a/training"),
    ],
)
def test_wrong_use_and_a_cluster_that_cannot_be_asked_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, in_memory: FakeCluster, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(live, "Pods", Silent)
    result = plan(*arguments)
    assert (result.exit_code, message in result.output) == (2, True)
    assert "Traceback" not in result.output
    monkeypatch.setattr(live, "Pods", Pods)
    in_memory.fail(ClusterUnreachableError("no usable kubeconfig"))
    result = plan("live")
    assert (result.exit_code, "cannot be asked for its history: no usable kubeconfig" in result.output) == (2, True)
