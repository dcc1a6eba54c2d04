"""The script in the pods that connect to an external cluster: how it ends, and what it reports."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.payloads import external_cluster
from components.payloads.external_cluster import ENDED, follow, nodes, submit


class Jobs:
    """Ray's client of the jobs API, for one job with these statuses, one for each look; the last one stays."""

    def __init__(self, *statuses: str, log: tuple[str, ...] = (), known: bool = True) -> None:
        self.statuses, self.log, self.known = list(statuses), log, known
        self.submitted: list[dict[str, Any]] = []
        self.stopped: list[str] = []

    def get_job_info(self, identity: str) -> Any:
        if not self.known:
            raise RuntimeError(f"Request failed with status code 404: Job {identity} does not exist.")
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return SimpleNamespace(status=status, message="Job entrypoint command failed with exit code 3")

    def submit_job(self, **job: Any) -> None:
        self.submitted.append(job)

    def stop_job(self, identity: str) -> None:
        self.stopped.append(identity)

    async def tail_job_logs(self, _: str) -> AsyncIterator[str]:
        for text in self.log:
            await asyncio.sleep(0)
            if text == "lost":
                self.log = tuple(each for each in self.log if each != "lost")
                raise RuntimeError("WebSocket connection closed unexpectedly")
            yield text


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_cluster, "MESSAGE", tmp_path / "message")
    monkeypatch.setattr(external_cluster, "RUNNING", tmp_path / "running")
    monkeypatch.setattr(external_cluster, "PAUSE", 0.01)


def end_of(jobs: Jobs, seconds: float | None = None) -> tuple[Any, str]:
    """The exit code and the message."""
    with pytest.raises(SystemExit) as ended:
        asyncio.run(follow(jobs, "count", seconds))  # type: ignore[arg-type] # whole seconds are too long here
    return ended.value.code, external_cluster.MESSAGE.read_text()


class Nodes:
    """Ray's client, for a cluster whose nodes have these resources, one list for each look."""

    def __init__(self, *looks: list[dict[str, float] | None]) -> None:
        self.looks = list(looks)

    def _do_request(self, *_: str) -> Any:
        found = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        nodes = [
            {"state": "ALIVE", "is_head_node": number == 0, "resources_total": resources}
            for number, resources in enumerate(found)
        ]
        dead = {"state": "DEAD", "is_head_node": False, "resources_total": {}}
        return SimpleNamespace(json=lambda: {"data": {"result": {"result": [*nodes, dead]}}})


def test_resources_of_nodes_that_have_just_started_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Nodes([], [None], [{"GPU": 3.0}, {}], [{"GPU": 3.0}, {"GPU": 8.0}])
    assert nodes(starts) == {"workers": 1, "largestGpus": 8}
    monkeypatch.setattr(external_cluster, "SETTLED", 0.05)
    assert nodes(Nodes([{"CPU": 1.0}, {}])) == {"workers": 1, "largestGpus": 0}


def test_a_job_that_succeeds_ends_the_pod_and_its_log_is_the_pods(capsys: pytest.CaptureFixture[str]) -> None:
    assert end_of(Jobs("PENDING", "RUNNING", "SUCCEEDED", log=("one\n", "two\n"))) == (0, "SUCCEEDED")
    assert capsys.readouterr().out == "one\ntwo\n"
    assert external_cluster.RUNNING.exists()


def test_a_failed_job_has_rays_reason_and_no_second_try() -> None:
    assert end_of(Jobs("FAILED")) == (ENDED, "FAILED: Job entrypoint command failed with exit code 3")
    assert not external_cluster.RUNNING.exists()


def test_after_a_lost_connection_no_line_is_printed_twice(capsys: pytest.CaptureFixture[str]) -> None:
    end_of(Jobs(*["RUNNING"] * 9, "SUCCEEDED", log=("one\n", "lost", "two\n")))
    lines = capsys.readouterr().out.splitlines()
    assert [each for each in lines if each in ("one", "two")] == ["one", "two"]


def test_a_deleted_pod_stops_its_job_also_while_it_submits() -> None:
    class Deleted(Jobs):
        def get_job_info(self, identity: str) -> Any:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().get_job_info(identity)

    jobs = Deleted("RUNNING")
    assert end_of(jobs) == (ENDED, external_cluster.DELETED)
    assert jobs.stopped == ["count"]
    external_cluster.MESSAGE.unlink()
    submits = Jobs("PENDING")
    with pytest.raises(SystemExit):
        external_cluster.stop(submits, "count")
    assert (submits.stopped, external_cluster.MESSAGE.read_text()) == (["count"], external_cluster.DELETED)


def test_a_job_is_stopped_at_its_deadline_and_unknown_to_a_cluster_that_has_started_again() -> None:
    jobs = Jobs("RUNNING")
    code, message = end_of(jobs, 0.05)
    assert (code, jobs.stopped) == (ENDED, ["count"])
    assert "deadline" in message
    code, message = end_of(Jobs("RUNNING", known=False))
    assert code == ENDED
    assert message.startswith("the cluster no longer knows the job")


def test_an_error_about_a_job_named_404_is_not_the_end_of_it() -> None:
    class Failing(Jobs):
        def get_job_info(self, identity: str) -> Any:
            if len(self.statuses) == 2:
                self.statuses.pop(0)
                raise RuntimeError(f"Request failed with status code 500: cannot read {identity}-404.")
            return super().get_job_info(identity)

    assert end_of(Failing("RUNNING", "SUCCEEDED")) == (0, "SUCCEEDED")


def test_a_job_that_cannot_be_stopped_is_asked_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(Jobs):
        def stop_job(self, identity: str) -> None:
            super().stop_job(identity)
            raise RuntimeError("Request failed with status code 500: busy")

    monkeypatch.setattr(external_cluster, "LOST", 0.5)
    monkeypatch.setattr(external_cluster, "PAUSE", 0.05)
    jobs = Busy("RUNNING")
    code, message = end_of(jobs, 0.01)
    assert (code, message.startswith("the cluster has not answered")) == (1, True)
    assert 1 <= len(jobs.stopped) <= 11


def test_the_next_pod_follows_the_job_that_a_lost_one_has_submitted() -> None:
    jobs = Jobs("RUNNING")
    submit(jobs, "count", {"entrypoint": "python count.py"})
    assert jobs.submitted == []
    jobs.known = False
    submit(jobs, "count", {"entrypoint": "python count.py"})
    assert jobs.submitted == [{"submission_id": "count", "entrypoint": "python count.py"}]


def test_a_cluster_that_does_not_listen_is_reported_with_its_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SystemExit) as ended:
        external_cluster.connected({"cluster": "lab", "address": f"http://127.0.0.1:{port}", "seconds": 0.03})
    assert ended.value.code == 1
    assert external_cluster.MESSAGE.read_text().startswith(
        f"lab at http://127.0.0.1:{port} cannot be reached: Connection"
    )


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    with pytest.raises(SystemExit):
        external_cluster.end(1, f"begin{'x' * 10_000}end")
    message = external_cluster.MESSAGE.read_text()
    assert (message[:5], message[-3:], len(message) <= external_cluster.LONGEST) == ("begin", "end", True)
