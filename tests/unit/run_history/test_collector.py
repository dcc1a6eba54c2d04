"""What the program records of RayJobs and their logs, look by look, and what damage does not end it."""

import os
from pathlib import Path
from typing import Any

import pytest

from components.payloads.run_history.configured import READ_SECONDS, TRIES_SECONDS
from tests.unit.run_history.api import (
    BEGIN,
    CODE,
    ENDED,
    HOUR,
    ID,
    NAMESPACE,
    Cluster,
    collector,
    only,
    rayjob,
    record,
    submitter,
    worker,
)


def test_a_record_has_the_facts_of_its_job_and_no_secret(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    collector(cluster, tmp_path).look(BEGIN)
    found = record(tmp_path)
    assert (found["name"], found["template"], found["size"], found["author"], found["status"]) == (
        "train",
        "finetune",
        "large",
        "bob",
        "RUNNING",
    )
    assert found["entrypoint"] == "python train.py --hf-token *** --epochs=3"
    assert found["runtimeEnv"] == {"env_vars": {"HF_TOKEN": "***", "EPOCHS": "3"}}
    assert found["image"] == "rayproject/ray:2.60.0"
    assert found["code"] == CODE
    assert not found["complete"]
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert [each.relative_to(tmp_path) for each in files] == [Path(NAMESPACE, ID, "record.json")]
    assert "hunter2" not in files[0].read_text()


def test_gpu_hours_are_those_of_pods_from_their_binding_until_they_are_gone(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    cluster.objects["pods"] = [worker("a", 4), worker("b", 8), worker("other", 8)]
    cluster.objects["pods"][2]["metadata"]["labels"]["ray.io/cluster"] = "someone-elses"
    program = collector(cluster, tmp_path)
    program.look(BEGIN + HOUR / 2)
    cluster.objects["pods"] = [worker("a", 4)]
    program.look(BEGIN + HOUR / 2 + 5)
    submitter(cluster, b"done\n")
    cluster.objects["rayjobs"] = [rayjob(**ENDED)]
    program.look(BEGIN + HOUR)
    assert not record(tmp_path)["complete"]
    cluster.objects["pods"] = []
    program.look(BEGIN + HOUR + 30)
    found = record(tmp_path)
    assert found["complete"]
    assert found["gpuHours"] == 4 * 1 + 8 * 0.5
    assert cluster.objects["rayjobs"]


def test_a_job_that_is_gone_before_the_program_has_looked_is_recorded_without_gpu_hours(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.objects["rayjobs"] = [rayjob(**ENDED)]
    submitter(cluster, b"done\n")
    collector(cluster, tmp_path).look(BEGIN + 2 * HOUR)
    found = record(tmp_path)
    assert (found["complete"], found["gpuHours"], found["ended"]) == (True, None, "2026-05-28T21:00:10Z")


def test_after_a_pause_pods_count_until_the_end_of_their_job(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    cluster.objects["pods"] = [worker("a", 4)]
    collector(cluster, tmp_path).look(BEGIN + HOUR / 2)
    cluster.objects = {"rayjobs": [rayjob(**ENDED)], "pods": [], "events": []}
    submitter(cluster, b"done\n")
    collector(cluster, tmp_path).look(BEGIN + 5 * HOUR)
    assert record(tmp_path)["gpuHours"] == 4


def test_the_time_of_a_cluster_that_stays_ends_with_its_job(cluster: Cluster, tmp_path: Path) -> None:
    job = rayjob(**ENDED)
    del job["spec"]["shutdownAfterJobFinishes"]
    cluster.objects |= {"rayjobs": [job], "pods": [worker("a", 4)]}
    submitter(cluster, b"done\n")
    collector(cluster, tmp_path).look(BEGIN + 5 * HOUR)
    found = record(tmp_path)
    assert (found["complete"], found["gpuHours"]) == (True, 4)


def test_gpu_hours_on_a_cluster_that_others_share_are_not_known(cluster: Cluster, tmp_path: Path) -> None:
    job = rayjob(rayClusterName="training", **ENDED)
    job["spec"] |= {"clusterSelector": {"ray.io/cluster": "training"}}
    cluster.objects["rayjobs"] = [job]
    submitter(cluster, b"done\n")
    collector(cluster, tmp_path).look(BEGIN + 5 * HOUR)
    found = record(tmp_path)
    assert (found["complete"], found["gpuHours"], found["onCluster"]) == (True, None, "training")


def test_events_of_the_job_its_cluster_and_its_pods_are_kept_without_secrets(cluster: Cluster, tmp_path: Path) -> None:
    about = {
        "RayJob": "train",
        "RayCluster": "train-abcde",
        "Pod": "train-abcde-a",
        "PodGroup": "ray-train-pg",
        "Workload": "rayjob-train-1a2b3",
        "Service": "another",
    }
    cluster.objects |= {
        "rayjobs": [rayjob()],
        "pods": [worker("a", 4)],
        "events": [
            {
                "metadata": {"uid": kind},
                "involvedObject": {"kind": kind, "name": name},
                "reason": "Pulled",
                "message": "pulled https://bob:hunter2@registry/x",
                "lastTimestamp": "2026-05-28T20:00:20Z",
            }
            for kind, name in about.items()
        ],
    }
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    cluster.objects["events"] = []
    program.look(BEGIN + READ_SECONDS)
    events = record(tmp_path)["events"]
    assert events.keys() == about.keys() - {"Service"}
    assert "hunter2" not in str(events)


def test_records_end_with_their_retention_and_do_not_come_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob(**ENDED)]
    submitter(cluster, b"done\n")
    program = collector(cluster, tmp_path, retention_days=2)
    program.look(BEGIN + 2 * HOUR)
    assert ID in program.store.records
    for _ in range(2):
        program.look(BEGIN + 72 * HOUR)
        assert program.store.records == {}
    assert list((tmp_path / NAMESPACE).iterdir()) == []


def full(*_: object) -> None:
    raise OSError("No space left on device")


def test_a_full_volume_is_reported_and_what_is_known_can_still_be_asked_for(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    program = collector(cluster, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        program.look(BEGIN)
    assert program.problems == {ID: "cannot be recorded: OSError('No space left on device')"}
    assert program.store.records[ID]["status"] == "RUNNING"
    program.look(BEGIN + READ_SECONDS)
    assert program.problems == {}
    assert "No space left" in capsys.readouterr().out
    assert record(tmp_path)["status"] == "RUNNING"


def test_a_record_that_cannot_be_written_is_not_complete(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    cluster.objects["rayjobs"] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        program.look(BEGIN + 5)
    program.look(BEGIN + 10)
    assert record(tmp_path)["deleted"]


def test_details_of_complete_records_are_on_the_volume_alone(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects |= {"rayjobs": [rayjob(**ENDED)], "pods": [worker("a", 4)]}
    submitter(cluster, b"done\n")
    program = collector(cluster, tmp_path)
    program.look(BEGIN + HOUR)
    cluster.objects["pods"] = []
    program.look(BEGIN + HOUR + 5)
    for store in (program.store, collector(cluster, tmp_path).store):
        assert "pods" not in store.records[ID]
        assert only([store.whole(ID)])["pods"].keys() == {"a"}
    assert program.store.whole("none") is None


def test_an_api_server_that_does_not_answer_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    class Gone(Cluster):
        def read(self, path: str) -> Any:
            raise ConnectionRefusedError(path)

    program = collector(Gone(), tmp_path)
    program.look(BEGIN)
    assert "RayJobs" in program.problems


def test_events_are_listed_once_in_a_look(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob(name) for name in ("train", "tune", "evaluate")]
    program = collector(cluster, tmp_path)
    for look in (1, 2):
        program.look(BEGIN + look * READ_SECONDS)
        assert len([each for each in cluster.asked if "/events" in each]) == look


def test_slices_of_gpus_count_as_kuberay_counts_them(cluster: Cluster, tmp_path: Path) -> None:
    cluster.objects["rayjobs"] = [rayjob()]
    sliced = worker("a", 0)
    sliced["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-2g.32gb": "3", "nvidia.com/gpumem": "9"}
    cluster.objects["pods"] = [sliced]
    collector(cluster, tmp_path).look(BEGIN + HOUR)
    assert record(tmp_path)["gpuHours"] == 3


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


def test_a_log_whose_end_went_with_its_pod_is_recorded_as_missing(cluster: Cluster, tmp_path: Path) -> None:
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


def test_a_job_that_cannot_be_recorded_keeps_no_other_from_it_and_its_problem_ends_with_it(tmp_path: Path) -> None:
    cluster = Cluster()
    strange, recursive = rayjob("strange"), rayjob("recursive")
    strange["spec"]["rayClusterSpec"] = "not a mapping"
    recursive["spec"]["runtimeEnvYAML"] = "&a [*a]"
    cluster.objects["rayjobs"] = [strange, recursive, rayjob()]
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    assert program.store.records.keys() == {"recursive.uid-of-recursive", ID}
    assert program.problems.keys() == {"strange.uid-of-strange"}
    cluster.objects["rayjobs"] = [rayjob()]
    program.look(BEGIN + 5)
    assert program.problems == {}


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"complete": true}', '{"name": "a", "recorded": "yesterday"}'])
def test_what_is_no_record_is_left_alone(tmp_path: Path, text: str) -> None:
    damaged = tmp_path / NAMESPACE / "old.uid" / "record.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text(text)
    program = collector(Cluster(), tmp_path)
    program.look(BEGIN)
    assert (damaged.read_text(), program.store.records, program.problems) == (text, {}, {})
