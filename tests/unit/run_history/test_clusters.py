"""What the program records of jobs without a RayJob, which heads of RayClusters and external clusters list."""

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from components.payloads.run_history import clusters
from components.payloads.run_history.api import ask_head
from components.payloads.run_history.collector import Collector
from components.payloads.run_history.configured import READ_SECONDS, TRIES_SECONDS
from components.payloads.run_history.heads import Head
from testbed.web_server import Answers, running, serving
from tests.unit.run_history.api import (
    BEGIN,
    NAMESPACE,
    Cluster,
    collector,
    give_token,
    head_of,
    only,
    rayjob,
    standing,
)

TOKEN = "of-this-cluster"  # noqa: S105 (of a test)

ANSWERS: dict[str, Any] = {}
"""Of the dashboard, by path; without one it knows no job."""


class Dashboard(Answers):
    """A dashboard that requires the token."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401, b"")
        if self.path not in ANSWERS:
            return self.reply(404, b"")
        return self.reply(200, json.dumps(ANSWERS[self.path]).encode())


@pytest.fixture
def dashboard() -> Iterator[str]:
    """Its address."""
    ANSWERS.clear()
    ANSWERS["/api/jobs/"] = []
    with serving(Dashboard) as url:
        yield url.removeprefix("http://")


@pytest.fixture
def cluster(dashboard: str) -> Cluster:
    """A namespace with a RayCluster that stands by itself."""
    made = Cluster()
    made.objects |= {"rayclusters": [standing()], "pods": [head_of("training", dashboard)]}
    give_token(made, "training", TOKEN)
    return made


@pytest.fixture
def program(cluster: Cluster, tmp_path: Path) -> Collector:
    return collector(cluster, tmp_path, read_heads=True)


def submission(identifier: str = "raysubmit_Ab1", log: str = "epoch 1\n", **changed: Any) -> dict[str, Any]:
    """A job as a head lists it, which has its log, too."""
    ANSWERS[f"/api/jobs/{identifier}/logs"] = {"logs": log}
    return {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": identifier,
        "status": "RUNNING",
        "entrypoint": "python train.py --hf-token hunter2",
        "message": "Job is currently running.",
        "error_type": None,
        "start_time": round(BEGIN * 1000),
        "end_time": None,
        "metadata": {"user": "eve"},
        "runtime_env": {"env_vars": {"HF_TOKEN": "hunter2", "EPOCHS": "3"}},
        "driver_exit_code": None,
        **changed,
    }


def ended(status: str = "SUCCEEDED", code: int = 0) -> dict[str, Any]:
    return {"status": status, "end_time": round(BEGIN * 1000) + 60_000, "driver_exit_code": code}


def driver(identifier: str = "01000000", **changed: Any) -> dict[str, Any]:
    """A driver that has connected by itself."""
    return submission(**{"type": "DRIVER", "submission_id": None, "job_id": identifier, "metadata": {}, **changed})


def record(program: Collector) -> Any:
    return only(map(program.store.whole, program.store.records))


def test_a_submitted_job_has_a_record_and_its_log_and_no_secret(program: Collector) -> None:
    ANSWERS["/api/jobs/"] = [submission()]
    program.look(BEGIN)
    assert (record(program)["status"], record(program)["complete"]) == ("RUNNING", False)
    ANSWERS["/api/jobs/"] = [submission(log="epoch 1\nlost\n", **ended("FAILED", 3), message="exit code 3")]
    program.look(BEGIN + READ_SECONDS)
    found = record(program)
    assert (found["name"], found["onCluster"], found["submissionMode"]) == ("raysubmit_Ab1", "training", "SUBMISSION")
    assert (found["author"], found["image"]) == ("eve", "rayproject/ray:2.60.0")
    assert (found["entrypoint"], found["runtimeEnv"]["env_vars"]) == (
        "python train.py --hf-token ***",
        {"HF_TOKEN": "***", "EPOCHS": "3"},
    )
    assert (found["started"], found["ended"]) == ("2026-05-28T20:00:10Z", "2026-05-28T20:01:10Z")
    assert (found["status"], found["exitCode"], found["message"]) == ("FAILED", 3, "exit code 3")
    assert found["gpuHours"] is None
    assert found["missing"] == ["GPU-hours, because others may use the cluster at the same time"]
    (name,) = program.store.records
    assert (program.store.log(name, 1), found["complete"], program.problems) == (b"epoch 1\nlost\n", True, {})
    assert "hunter2" not in json.dumps(found)


def test_a_driver_that_has_connected_has_a_record_without_a_log(program: Collector) -> None:
    ANSWERS["/api/jobs/"] = [driver(**ended())]
    program.look(BEGIN + READ_SECONDS)
    found = record(program)
    assert (found["name"], found["submissionMode"], found["complete"]) == ("01000000", "DRIVER", True)
    assert [each.partition(",")[0] for each in found["missing"]] == ["GPU-hours", "the log and the exit code"]


def test_a_job_of_a_rayjob_is_recorded_once_also_when_the_rayjob_is_gone(program: Collector, cluster: Cluster) -> None:
    selects = rayjob(rayClusterName="training", jobId="train-1")
    selects["spec"] |= {"clusterSelector": {"ray.io/cluster": "training"}, "submissionMode": "HTTPMode"}
    cluster.objects["rayjobs"] = [selects]
    ANSWERS["/api/jobs/"] = [submission("train-1"), submission("by-hand")]
    program.look(BEGIN)
    cluster.objects["rayjobs"] = []
    program.look(BEGIN + READ_SECONDS)
    assert sorted(each["name"] for each in program.store.records.values()) == ["by-hand", "train"]


@pytest.mark.parametrize("gone", ["the RayCluster", "the RayCluster of this UID", "the job", "readHeads"])
def test_a_job_that_is_not_listed_any_more_keeps_its_log_and_its_status_as_last_seen(
    program: Collector, cluster: Cluster, tmp_path: Path, gone: str
) -> None:
    ANSWERS["/api/jobs/"] = [submission()]
    program.look(BEGIN)
    if gone == "the RayCluster":
        cluster.objects |= {"rayclusters": [], "pods": []}
    elif gone == "the RayCluster of this UID":
        cluster.objects["rayclusters"][0]["metadata"]["uid"] = "another"
        cluster.objects["pods"] = []
    elif gone == "readHeads":
        program = collector(cluster, tmp_path)
    ANSWERS["/api/jobs/"] = []
    program.look(BEGIN + READ_SECONDS)
    found = record(program)
    assert (found["status"], found["lastSeen"], found["complete"]) == ("RUNNING", "2026-05-28T20:00:10Z", True)
    assert found["missing"][-1].startswith("its end, because ")
    (name,) = program.store.records
    assert program.store.log(name, 1) == b"epoch 1\n"


def test_a_job_that_is_listed_again_goes_on(program: Collector, cluster: Cluster) -> None:
    """As after a suspended RayCluster with fault tolerance has started again."""
    ANSWERS["/api/jobs/"] = [submission()]
    program.look(BEGIN)
    cluster.objects["rayclusters"][0]["spec"]["suspend"] = True
    program.look(BEGIN + READ_SECONDS)
    assert record(program)["lastSeen"]
    del cluster.objects["rayclusters"][0]["spec"]["suspend"]
    ANSWERS["/api/jobs/"] = [submission(**ended())]
    program.look(BEGIN + 2 * READ_SECONDS)
    found = record(program)
    assert (found["status"], found["lastSeen"], found["complete"]) == ("SUCCEEDED", None, True)


def test_a_head_that_has_started_again_counts_its_drivers_anew(program: Collector) -> None:
    ANSWERS["/api/jobs/"] = [driver()]
    program.look(BEGIN)
    ANSWERS["/api/jobs/"] = [driver(start_time=round(BEGIN * 1000) + 90_000)]
    program.look(BEGIN + READ_SECONDS)
    assert [bool(each["lastSeen"]) for each in program.store.records.values()] == [True, False]


def test_without_a_head_that_is_ready_jobs_stay_as_last_seen_and_it_is_said(
    program: Collector, cluster: Cluster
) -> None:
    ANSWERS["/api/jobs/"] = [submission()]
    program.look(BEGIN)
    cluster.objects["pods"][0]["status"]["conditions"] = []
    program.look(BEGIN + READ_SECONDS)
    assert program.problems == {
        "cluster training": "has no head that is ready: its jobs are shown as they were last seen"
    }
    assert not record(program)["complete"]


@pytest.mark.parametrize("owner", ["RayJob", "RayService"])
def test_clusters_of_jobs_and_services_are_not_asked(program: Collector, cluster: Cluster, owner: str) -> None:
    cluster.objects["rayclusters"][0]["metadata"]["ownerReferences"] = [{"kind": owner}]
    program.look(BEGIN)
    assert not [each for each in cluster.asked if "secrets" in each]


def test_of_an_external_cluster_the_tenants_jobs_are_recorded(dashboard: str, tmp_path: Path) -> None:
    cluster = Cluster()
    give_token(cluster, "lab", f"{TOKEN}\n")
    token = {"name": "lab", "key": "auth_token"}
    lab = {"name": "lab", "address": f"http://{dashboard}", "token": token, "authority": None, "others": ["team-a-b-"]}
    of_others = [submission("team-b-secret"), submission("team-a-b-secret"), driver()]
    ANSWERS["/api/jobs/"] = [submission("team-a-finetune-1a2b3c4d", **ended()), *of_others]
    program = collector(cluster, tmp_path, read_heads=True, external=[lab])
    program.look(BEGIN)
    found = record(program)
    assert (found["name"], found["onCluster"], found["image"]) == ("team-a-finetune-1a2b3c4d", "lab", None)
    assert program.problems == {}


def test_an_external_cluster_by_https_is_asked_if_its_authority_is_the_secrets(dashboard: str, tmp_path: Path) -> None:
    authority, cluster = trustme.CA(), Cluster()
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(secure)
    give_token(cluster, "lab", TOKEN)
    key = {"name": "lab", "key": "auth_token"}
    ANSWERS["/api/jobs/"] = [submission("team-a-finetune", **ended())]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Dashboard)
    server.socket = secure.wrap_socket(server.socket, server_side=True)
    with running(server) as url:
        lab = {"name": "lab", "address": url.replace("http:", "https:"), "token": key, "others": []}
        for name, known in (("right", authority), ("wrong", trustme.CA())):
            give_token(cluster, name, known.cert_pem.bytes().decode())
            asked = {**lab, "authority": {**key, "name": name}}
            program = collector(cluster, tmp_path / name, read_heads=True, external=[asked])
            program.look(BEGIN)
            assert len(program.store.records) == (name == "right")
            assert ("CERTIFICATE_VERIFY_FAILED" in str(program.problems)) == (name == "wrong")


def test_jobs_of_long_ago_are_not_recorded(program: Collector) -> None:
    ANSWERS["/api/jobs/"] = [submission(**ended())]
    program.look(BEGIN + 31 * 24 * 3600)
    assert program.store.records == {}


def test_a_log_that_cannot_be_read_is_tried_for_a_minute(program: Collector) -> None:
    ANSWERS["/api/jobs/"] = [submission(**ended())]
    del ANSWERS["/api/jobs/raysubmit_Ab1/logs"]
    program.look(BEGIN)
    assert not record(program)["complete"]
    program.look(BEGIN + TRIES_SECONDS)
    found = record(program)
    assert found["complete"]
    assert found["missing"][-1] == "the log, or its end, which cannot be read: HTTP Error 404: Not Found"


@pytest.mark.parametrize(
    "changed",
    [
        {"submission_id": None},
        {"submission_id": "x" * 300},
        {"start_time": None},
        {"start_time": 1e30},
        {"start_time": (BEGIN + 7200) * 1000},
        {"type": "DRIVER"},
        {"metadata": "text"},
    ],
)
def test_what_a_head_makes_up_is_counted_and_keeps_no_job_from_its_record(
    program: Collector, changed: dict[str, Any]
) -> None:
    ANSWERS["/api/jobs/"] = ["text", submission("first", **changed), submission()]
    program.look(BEGIN)
    assert record(program)["name"] == "raysubmit_Ab1"
    assert program.problems == {"cluster training": "lists 2 jobs that cannot be read"}


@pytest.mark.parametrize("answer", [None, 7, {"a": "mapping"}])
def test_a_head_without_a_list_is_named(program: Collector, answer: Any) -> None:
    ANSWERS["/api/jobs/"] = answer
    program.look(BEGIN)
    assert program.problems.keys() == {"cluster training"}


def test_many_jobs_are_recorded_in_parts_and_only_what_changes_is_read_again(
    program: Collector, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_MOST_AT_ONCE", 3)
    ANSWERS["/api/jobs/"] = [submission(f"job-{number}", **ended()) for number in range(4)] + [submission("runs")]
    program.look(BEGIN)
    assert len(program.store.records) == 3
    program.look(BEGIN + READ_SECONDS)
    assert len(program.store.records) == 5
    for each in list(ANSWERS):
        if each.endswith("/logs"):
            del ANSWERS[each]
    program.look(BEGIN + 2 * READ_SECONDS)
    assert [each["name"] for each in program.store.records.values() if not each["complete"]] == ["runs"]
    monkeypatch.setattr(clusters, "_MOST_RECORDS", 5)
    ANSWERS["/api/jobs/"][-1:] = [*(submission(f"more-{number}") for number in range(9)), submission("runs", **ended())]
    program.look(BEGIN + 3 * READ_SECONDS)
    assert len(program.store.records) == 5
    assert {each["status"] for each in program.store.records.values()} == {"SUCCEEDED"}
    assert program.problems == {"cluster training": "has more than 5 recorded jobs: new ones are not recorded"}


def test_a_head_that_does_not_answer_is_asked_less_often_and_keeps_no_other_from_its_turn(
    program: Collector, cluster: Cluster
) -> None:
    cluster.objects["rayclusters"].insert(0, standing("gone", headGroupSpec={"template": {"spec": {"containers": []}}}))
    cluster.objects["pods"].insert(0, head_of("gone", "127.0.0.1:1"))
    give_token(cluster, "gone", TOKEN)
    ANSWERS["/api/jobs/"] = [submission()]
    for after, times in ((0, 1), (READ_SECONDS, 1), (TRIES_SECONDS, 2)):
        program.look(BEGIN + after)
        assert len([each for each in cluster.asked if each.endswith("/secrets/gone")]) == times
    assert record(program)["name"] == "raysubmit_Ab1"
    assert program.problems["cluster gone"].startswith("cannot be asked for its jobs: ")


class Endless(Answers):
    """Answers a byte at a time, and never ends: headers, or what follows them."""

    def do_GET(self) -> None:
        self.wfile.write(b"HTTP/1.0 200 OK\r\n" + (b"X-Endless: " if self.path.startswith("/headers") else b"\r\n"))
        with suppress(OSError):
            for _ in range(200):
                self.wfile.write(b"x")
                time.sleep(0.05)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_does_not_end_is_left(part: str) -> None:
    begun = time.monotonic()
    with serving(Endless) as url:
        with pytest.raises((OSError, ValueError)):
            Head(f"{url}/{part}", None, seconds=0.2).jobs()
        assert time.monotonic() - begun < 5


def test_a_token_that_cannot_be_sent_is_not_shown() -> None:
    with pytest.raises(ValueError, match="unprintable") as raised:
        ask_head("http://127.0.0.1:1", "hunter2\nmore")
    assert "hunter2" not in str(raised.value)


def test_records_of_jobs_go_with_their_retention(program: Collector, tmp_path: Path) -> None:
    ANSWERS["/api/jobs/"] = [submission(**ended())]
    program.look(BEGIN)
    program.look(BEGIN + 31 * 24 * 3600)
    assert list((tmp_path / NAMESPACE).iterdir()) == []
