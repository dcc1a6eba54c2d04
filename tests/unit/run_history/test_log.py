"""The log of a job in its record: what is read of it, when, and from which container."""

from pathlib import Path

from components.payloads.run_history.collector import READ_SECONDS, TRIES_SECONDS
from tests.unit.run_history.api import (
    BEGIN,
    ENDED,
    HOUR,
    ID,
    NAMESPACE,
    Cluster,
    collector,
    rayjob,
    record,
    submitter,
    worker,
)


def test_the_end_of_the_log_is_kept_from_its_first_whole_line_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob(**ENDED)]
    submitter(cluster, b"".join(b"line %d\n" % number for number in range(1000)))
    program = collector(cluster, tmp_path, log_bytes=100)
    program.look(BEGIN + 2 * HOUR)
    log = program.store.log(ID, 1)
    assert log
    assert log.startswith(b"line 9")
    assert log.endswith(b"line 999\n")
    assert record(tmp_path)["attempts"][0]["log"] == {"bytes": len(log), "cut": True, "grows": False}


def test_a_running_jobs_log_is_read_at_times_and_survives_its_deletion(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    submitter(cluster, b"epoch 1\n")
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    read = len(cluster.asked)
    program.look(BEGIN + 5)
    assert not [each for each in cluster.asked[read:] if "/log" in each]
    submitter(cluster, b"epoch 2\n")
    program.look(BEGIN + READ_SECONDS)
    cluster.objects = {"rayjobs": [], "pods": [], "events": []}
    program.look(BEGIN + READ_SECONDS + 5)
    found = record(tmp_path)
    assert (found["complete"], found["deleted"], found["status"]) == (True, True, "RUNNING")
    assert program.store.log(ID, 1) == b"epoch 2\n"


def test_a_log_is_read_again_until_its_container_has_ended(cluster: Cluster, tmp_path: Path) -> None:
    """KubeRay ends a RayJob when Ray reports its end, which may be before the lines are printed."""
    cluster.objects["rayjobs"] = [rayjob(**ENDED)]
    submitter(cluster, b"Tailing logs until the job exits:\n", ended=False)
    program = collector(cluster, tmp_path)
    program.look(BEGIN + HOUR)
    found = record(tmp_path)
    assert (found["complete"], found["missing"]) == (
        False,
        ["the end of the log may be missing: it was still being written"],
    )
    cluster.objects["pods"] = []
    submitter(cluster, b"Tailing logs until the job exits:\nprepared\n")
    program.look(BEGIN + HOUR + 5)
    found = record(tmp_path)
    assert (found["complete"], found["missing"]) == (True, [])
    assert program.store.log(ID, 1) == b"Tailing logs until the job exits:\nprepared\n"


def test_a_log_whose_end_went_with_its_pod_is_not_reported_as_whole(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    submitter(cluster, b"Tailing logs until the job exits:\n", ended=False)
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    cluster.objects |= {"rayjobs": [rayjob(**ENDED)], "pods": []}
    program.look(BEGIN + HOUR)
    program.look(BEGIN + HOUR + TRIES_SECONDS)
    found = record(tmp_path)
    assert (found["complete"], found["attempts"][0]["log"]["grows"]) == (True, True)
    assert found["missing"] == ["the end of the log cannot be read: no pod has submitted the job"]


def test_each_attempt_has_its_own_log(cluster: Cluster, tmp_path: Path) -> None:
    program = collector(cluster, tmp_path)
    for number, text in enumerate((b"out of memory\n", b"done\n"), 1):
        cluster.objects["rayjobs"] = [rayjob(jobId=f"train-{number}", rayClusterName=f"train-{number}abcd")]
        cluster.objects["pods"] = []
        submitter(cluster, text)
        program.look(BEGIN + number * READ_SECONDS)
    assert [program.store.log(ID, number) for number in (1, 2, 3)] == [b"out of memory\n", b"done\n", None]
    assert [each["cluster"] for each in record(tmp_path)["attempts"]] == ["train-1abcd", "train-2abcd"]


def test_what_cannot_be_read_is_tried_for_a_minute_and_then_named(cluster: Cluster, tmp_path: Path) -> None:
    job = rayjob(**ENDED)
    job["spec"]["submissionMode"] = "HTTPMode"
    cluster.objects["rayjobs"] = [job]
    program = collector(cluster, tmp_path)
    program.look(BEGIN + HOUR)
    assert not record(tmp_path)["complete"]
    program.look(BEGIN + HOUR + TRIES_SECONDS)
    found = record(tmp_path)
    assert found["complete"]
    assert found["missing"] == ["the log cannot be read: in HTTPMode only the head has it, and readHeads is not set"]


def test_in_sidecar_mode_the_log_is_that_of_a_container_of_the_head(cluster: Cluster, tmp_path: Path) -> None:
    job = rayjob(**ENDED)
    job["spec"]["submissionMode"] = "SidecarMode"
    head = worker("h", 0)
    head["metadata"]["labels"]["ray.io/node-type"] = "head"
    head["status"]["containerStatuses"] = [
        {"name": "ray-head", "state": {"running": {}}},
        {"name": "ray-job-submitter", "state": {"terminated": {"exitCode": 0}}},
    ]
    cluster.objects |= {"rayjobs": [job], "pods": [worker("a", 4), head]}
    cluster.answers[f"/api/v1/namespaces/{NAMESPACE}/pods/train-abcde-h/log"] = b"done\n"
    program = collector(cluster, tmp_path)
    program.look(BEGIN + HOUR)
    assert program.store.log(ID, 1) == b"done\n"
    assert record(tmp_path)["missing"] == []
