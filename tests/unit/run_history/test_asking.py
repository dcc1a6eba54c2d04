"""How the program asks the API server and heads, and how it answers."""

import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from components.payloads.run_history import api as program_api
from components.payloads.run_history.api import ApiServer, ask_head
from components.payloads.run_history.configured import TRIES_SECONDS
from components.payloads.run_history.server import serve
from components.payloads.run_history.store import Store
from testbed.web_server import Answers, serving
from tests.unit.run_history.api import (
    BEGIN,
    ENDED,
    ID,
    NAMESPACE,
    Cluster,
    collector,
    give_token,
    only,
    rayjob,
    submitter,
)

pytestmark = pytest.mark.thorough

TOKEN = "of-this-cluster"  # noqa: S105 (of a test)

ANSWERS = {
    "/api/jobs/train-1": {"driver_exit_code": 3, "error_type": None},
    "/api/jobs/train-1/logs": {"logs": "driver\nlog\n"},
    "/api/v0/cluster_events": {
        "data": {"result": {"result": [{"event_id": "e", "severity": "ERROR", "message": "lost", "time": "later"}]}}
    },
}


class Dashboard(Answers):
    """A dashboard that requires the token."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/moved":
            return self.reply(302, b"", {"Location": "/api/jobs/train-1"})
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        return self.reply(200 if allowed else 401, json.dumps(ANSWERS.get(path)).encode())


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address. A proxy that does not exist is in the environment."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(Dashboard) as url:
        yield url.removeprefix("http://")


def in_http_mode(dashboard: str) -> dict[str, Any]:
    job = rayjob(dashboardURL=dashboard, **ENDED)
    job["spec"]["submissionMode"] = "HTTPMode"
    return job


@pytest.mark.parametrize(("most", "kept"), [(1024, b"driver\nlog\n"), (12, b"log\n")])
def test_the_head_is_asked_with_the_token_of_its_cluster_and_of_a_long_log_the_end_is_kept(
    dashboard: str, tmp_path: Path, most: int, kept: bytes
) -> None:
    cluster = Cluster()
    give_token(cluster, "train-abcde", TOKEN)
    cluster.objects["rayjobs"] = [in_http_mode(dashboard)]
    program = collector(cluster, tmp_path, read_heads=True, log_bytes=most)
    program.look(BEGIN)
    found = only(map(program.store.whole, program.store.records))
    assert (found["complete"], found["exitCode"], found["missing"]) == (True, 3, [])
    assert [each["message"] for each in found["rayEvents"].values()] == ["lost"]
    assert program.store.log(ID, 1) == kept
    assert found["attempts"][0]["log"] == {"bytes": len(kept), "cut": most == 12, "grows": False}


def test_without_read_heads_no_head_and_no_secret_is_asked_for(dashboard: str, tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.objects["rayjobs"] = [rayjob(dashboardURL=dashboard, **ENDED)]
    submitter(cluster, b"done\n")
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    assert only(program.store.records.values())["complete"]
    assert not [each for each in cluster.asked if "secrets" in each]


@pytest.mark.parametrize("state", ["Initializing", "Retrying"])
def test_a_head_that_is_not_ready_or_goes_is_not_asked(state: str, tmp_path: Path) -> None:
    """It would keep the program waiting while another job ends."""
    cluster = Cluster()
    cluster.objects["rayjobs"] = [rayjob(dashboardURL="192.0.2.1:8265", jobDeploymentStatus=state)]
    collector(cluster, tmp_path, read_heads=True).look(BEGIN)
    assert not [each for each in cluster.asked if "secrets" in each or "/log" in each]


def test_a_head_that_is_gone_is_named_and_what_it_has_answered_before_stays(dashboard: str, tmp_path: Path) -> None:
    cluster = Cluster()
    give_token(cluster, "train-abcde", TOKEN)
    job = in_http_mode(dashboard)
    cluster.objects["rayjobs"] = [{**job, "status": {**job["status"], "jobDeploymentStatus": "Running"}}]
    program = collector(cluster, tmp_path, read_heads=True)
    program.look(BEGIN)
    cluster.answers.clear()
    cluster.objects["rayjobs"] = [job]
    program.look(BEGIN + 5)
    program.look(BEGIN + 5 + TRIES_SECONDS)
    found = only(program.store.records.values())
    assert (found["complete"], found["exitCode"]) == (True, 3)
    assert [each.partition(":")[0] for each in found["missing"]] == [
        "the end of the log cannot be read",
        "the head cannot be read",
    ]
    assert program.store.log(ID, 1) == b"driver\nlog\n"


@pytest.mark.parametrize("answer", [["a", "list"], "text", None, 7])
def test_a_head_that_answers_something_else_is_named(
    dashboard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    cluster = Cluster()
    give_token(cluster, "train-abcde", TOKEN)
    cluster.objects["rayjobs"] = [in_http_mode(dashboard)]
    monkeypatch.setitem(ANSWERS, "/api/jobs/train-1", answer)
    program = collector(cluster, tmp_path, read_heads=True)
    program.look(BEGIN)
    (missing,) = only(program.store.records.values())["missing"]
    assert missing.startswith("the head cannot be read")


def test_an_answer_of_a_head_has_a_largest_size(dashboard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_api, "_MOST_OF_HEAD", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        ask_head(f"http://{dashboard}/api/jobs/train-1", TOKEN)


def test_a_redirection_does_not_get_the_token(dashboard: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="302"):
        ask_head(f"http://{dashboard}/moved", TOKEN)


def test_the_accounts_token_is_read_at_each_request(dashboard: str, tmp_path: Path) -> None:
    api = ApiServer(f"http://{dashboard}", tmp_path)
    (tmp_path / "token").write_text("old")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        api.read("/api/jobs/train-1")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert api.read("/api/jobs/train-1")["driver_exit_code"] == 3
    assert api.read_end("/api/jobs/train-1/logs", 2) == b'"}'


def test_it_answers_on_loopback_with_records_and_logs_and_with_no_other_file(tmp_path: Path) -> None:
    store = Store(tmp_path / NAMESPACE)
    store.write("a.uid", {"name": "a", "pods": {}, "events": {}})
    store.write_log("a.uid", 1, b"log")
    (tmp_path / "secret").write_text("secret")
    server = serve(store, lambda: ["x cannot be recorded"], 0)

    def ask(path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{server.server_port}{path}") as answer:
            return bytes(answer.read())

    try:
        assert server.server_address[0] == "127.0.0.1"
        runs = {"problems": ["x cannot be recorded"], "runs": [{"id": "a.uid", "name": "a"}]}
        assert json.loads(ask("/runs")) == runs
        assert json.loads(ask("/runs/a.uid")) == {"name": "a", "pods": {}, "events": {}}
        assert ask("/runs/a.uid/log/1") == b"log"
        for path in ("/", "/runs/", "/runs/b.uid", "/runs/a.uid/log/2", "/runs/../secret", "/runs/..", "/runs/./log/1"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask(path)
    finally:
        server.shutdown()
        server.server_close()
