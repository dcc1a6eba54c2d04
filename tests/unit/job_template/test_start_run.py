"""What the pod of a schedule does, against an API server of its own kind on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.job_template.manifests import AUTHOR_ANNOTATION, TEMPLATE_LABEL, run_of, schedule_objects
from components.payloads import start_run
from testbed.web_server import Answers, serving
from tests.unit.job_template.test_job_template import SIZED, held, template

pytestmark = pytest.mark.thorough

AUTHOR = "system:serviceaccount:team-a:count.schedule"


class Cluster:
    """RayJobs by name, and one job template. Newer ones have greater creation times."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.refuses = self.moved = False
        self.deleted_meanwhile: set[str] = set()

    def exists(self, name: str, deployment: str, job: str = "", author: str = AUTHOR) -> None:
        metadata = {
            "name": name,
            "annotations": {AUTHOR_ANNOTATION: author},
            "creationTimestamp": f"2026-01-01T00:00:{len(self.jobs):02}Z",
        }
        self.jobs[name] = {"metadata": metadata, "status": {"jobDeploymentStatus": deployment, "jobStatus": job}}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        path = path.removeprefix("/apis/ray.io/v1/namespaces/team-a/")
        name = path.partition("/")[2].partition("?")[0]
        if path == "raycronjobs/count":
            return 200, held()
        if path == "raycronjobs/count-large":
            return 200, held("large", **SIZED)
        if method == "GET":
            assert path == f"rayjobs?labelSelector={TEMPLATE_LABEL}%3Dcount"
            return 200, {"items": list(self.jobs.values())}
        if self.moved:
            return 302, {}
        if self.refuses:
            return 403, {"message": "denied by a policy"}
        if method == "DELETE":
            return (404, {}) if name in self.deleted_meanwhile else (200, self.jobs.pop(name))
        if body["metadata"]["name"] in self.jobs:
            return 409, {"message": "already exists"}
        self.jobs[body["metadata"]["name"]] = body
        return 201, body


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    made = Cluster()

    class Handler(Answers):
        def do_GET(self) -> None:
            assert self.headers["Authorization"] == "Bearer secret"
            sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
            status, answer = made.answer(self.command, self.path, json.loads(sent) if sent else None)
            self.reply(status, json.dumps(answer).encode(), {"Location": "/elsewhere"} if status == 302 else {})

        do_POST = do_DELETE = do_GET

    (tmp_path / "token").write_text("secret\n")
    with serving(Handler) as url:
        monkeypatch.setenv("SERVER", url)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        yield made


@pytest.fixture
def starts(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the program as the pod of a schedule does."""

    def run(time: str = "count-29000000", more: dict[str, Any] | None = None, **cron: Any) -> int:
        settings = template(**(more or {}), cron={"schedule": "0 3 * * *", **cron})
        own = settings.job.own_cluster
        assert own
        assert settings.cron
        body = schedule_objects(settings, settings.cron, "team-a", own)["schedule"]
        (container,) = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        for each in container["env"]:
            if each["name"] != "SERVER":
                monkeypatch.setenv(each["name"], each.get("value", time))
        return start_run.main(tmp_path)

    return run


def test_it_starts_the_run_that_a_person_would_start(cluster: Cluster, starts: Any) -> None:
    assert starts(arguments=["--epochs", "3"]) == 0
    (run,) = cluster.jobs.values()
    by_hand = run_of(held(), ["--epochs", "3"], AUTHOR)
    assert run["metadata"]["name"][:-5] == by_hand["metadata"]["name"][:-5]
    for body in (run, by_hand):
        for key in ("name", "namespace"):
            body["metadata"].pop(key, None)
    assert run == by_hand


def test_it_starts_a_run_of_its_size(cluster: Cluster, starts: Any) -> None:
    assert starts(more=SIZED, size="large") == 0
    (run,) = cluster.jobs.values()
    assert run["metadata"]["name"].startswith("count-large-")
    assert run["metadata"]["labels"]["ray-platform/job-size"] == "large"


def test_a_second_try_of_the_same_time_starts_nothing_more(cluster: Cluster, starts: Any) -> None:
    assert (starts(), starts(), len(cluster.jobs)) == (0, 0, 1)
    assert starts("count-29000001", concurrencyPolicy="Allow") == 0
    assert len(cluster.jobs) == 2


def test_while_a_run_has_not_ended_the_policy_decides(
    cluster: Cluster, starts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.exists("count-still", "Running", "RUNNING")
    assert starts() == 0
    assert (list(cluster.jobs), capsys.readouterr().out) == (["count-still"], "skipped: count-still has not ended\n")
    assert starts(concurrencyPolicy="Allow") == 0
    assert len(cluster.jobs) == 2
    assert starts("count-29000001", concurrencyPolicy="Replace") == 0
    assert (len(cluster.jobs), "count-still" in cluster.jobs) == (1, False)


def test_a_run_that_somebody_has_deleted_meanwhile_is_no_failure(cluster: Cluster, starts: Any) -> None:
    cluster.exists("count-still", "Running", "RUNNING")
    cluster.deleted_meanwhile.add("count-still")
    assert starts(concurrencyPolicy="Replace") == 0
    assert len(cluster.jobs) == 2


def test_runs_of_people_neither_count_nor_are_deleted(cluster: Cluster, starts: Any) -> None:
    cluster.exists("count-bobs", "Running", author="bob")
    cluster.exists("count-done", "Complete", "SUCCEEDED", author="bob")
    assert starts(successfulJobsHistoryLimit=0) == 0
    assert len(cluster.jobs) == 3


def test_the_newest_ended_runs_are_kept(cluster: Cluster, starts: Any) -> None:
    for number in range(3):
        cluster.exists(f"count-good{number}", "Complete", "SUCCEEDED")
        cluster.exists(f"count-bad{number}", "Failed", "FAILED")
    cluster.exists("count-invalid", "ValidationFailed")
    assert starts(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1) == 0
    ended = [name for name, body in cluster.jobs.items() if "status" in body]
    assert ended == ["count-good1", "count-good2", "count-invalid"]


def test_a_refusal_fails_with_its_reason(cluster: Cluster, starts: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.refuses = True
    assert starts() == 1
    assert capsys.readouterr().out == 'the API server refuses: 403 {"message": "denied by a policy"}\n'


def test_a_redirection_does_not_get_the_token(
    cluster: Cluster, starts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.moved = True
    assert starts() == 1
    assert capsys.readouterr().out.startswith("the API server refuses: 302")


def test_an_api_server_that_does_not_answer_fails_with_its_reason(
    starts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVER", "http://127.0.0.1:1")
    assert starts() == 1
    assert "the API server does not answer" in capsys.readouterr().out
