"""`ray-platform runs`: output and exit codes, with the program's own answers in place of a port-forward."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from components.cluster import ForbiddenError, NoKubeconfigError
from components.payloads.run_history.record import seconds
from components.payloads.run_history.server import answer
from components.payloads.run_history.store import Store
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from tests.unit.run_history.api import ENDED, NAMESPACE, Cluster, collector, rayjob, submitter, worker

BEGIN = seconds("2026-05-28T20:00:10Z")

STACK = """\
config:
  ray-platform:kubernetes: {context: prod}
  ray-platform:tenants:
    - name: team-a
      storage: [{name: runs, claim: runs}]
      runHistory: &history {storage: runs, image: "rayproject/ray:2.60.0"}
    - name: team-b
      storage: [{name: runs, claim: runs}]
      runHistory: *history
    - name: team-c
"""

FAILED = {
    **ENDED,
    "jobStatus": "FAILED",
    "jobDeploymentStatus": "Failed",
    "reason": "AppFailed",
    "message": "Job entrypoint command failed with exit code 3\nlast lines",
}


class Pods:
    """The programs of two tenants; that of team-b cannot be asked unless a test allows it."""

    def __init__(self, folder: Path) -> None:
        cluster = Cluster()
        cluster.objects |= {"rayjobs": [rayjob(), rayjob("other", **FAILED)], "pods": [worker("a", 4)]}
        for name, log in (("train", b"epoch 1\n"), ("other", b"Traceback\n")):
            submitter(cluster, log, name)
        running = collector(cluster, folder)
        running.look(BEGIN + 1800)
        self.stores = {NAMESPACE: running.store, "team-b": Store(folder / "team-b")}
        self.problems: list[str] = []
        self.refused = {"team-b"}

    def ask(self, namespace: str, pod: str, port: int, path: str) -> bytes | None:
        assert (pod, port) == ("ray-run-history-0", 8787)
        if namespace in self.refused:
            raise ForbiddenError(f"pod {namespace}/{pod} cannot be asked: 403 Forbidden")
        status, body = answer(self.stores[namespace], self.problems, path)
        return body if status == 200 else None


@pytest.fixture
def pods(tmp_path: Path, in_memory: FakeCluster) -> Iterator[Pods]:
    made = Pods(tmp_path)
    in_memory.pods = made.ask
    yield made
    assert in_memory.connection.context == ("prod" if in_memory.requests else None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(STACK)
    return file


def runs(file: Path, *arguments: str) -> Result:
    return stacks("runs", str(file), *arguments)


def test_the_list_has_status_hours_and_reason_of_each_run(pods: Pods, file: Path) -> None:
    done = runs(file, "--tenant", "team-a")
    assert (done.exit_code, done.stderr) == (0, "")
    header, running, failed, total = done.stdout.splitlines()
    assert header.split() == ["Run", "On", "Status", "Started", "Took", "GPU-hours", "By", "Why"]
    assert running.split() == ["team-a/train", "own", "RUNNING", "2026-05-28T20:00:10Z", "-", "2.00", "bob"]
    assert failed.split()[:7] == ["team-a/other", "own", "FAILED", "2026-05-28T20:00:10Z", "1h00m00s", "-", "bob"]
    assert "AppFailed: Job entrypoint command failed with exit code 3 last lines" in failed
    assert total == "2 runs, 2.00 GPU-hours (not known of 1)"


def test_the_newest_are_listed_and_the_others_counted_with_what_cannot_be_recorded(pods: Pods, file: Path) -> None:
    assert runs(file, "--tenant", "team-a", "--last", "1").stdout.splitlines()[-1].endswith("1 older ones: --last 2")
    pods.problems = ["train.uid cannot be recorded: OSError(28, 'No space left on device')"]
    assert runs(file, "--tenant", "team-a").stdout.splitlines()[-1].startswith("- namespace team-a: train.uid cannot")


def test_a_history_that_cannot_be_read_is_named_beside_the_others(pods: Pods, file: Path) -> None:
    done = runs(file)
    assert done.exit_code == 1
    why = "pod team-b/ray-run-history-0 cannot be asked: 403 Forbidden"
    assert done.stderr == f"the run history of namespace team-b cannot be read: {why}\n"
    assert "team-a/train" in done.stdout
    pods.refused.clear()
    assert runs(file).exit_code == 0


def test_a_run_by_itself_has_its_attempts_and_pods(pods: Pods, file: Path) -> None:
    lines = runs(file, "--tenant", "team-a", "team-a/train").stdout.splitlines()
    assert lines[0] == "team-a/train: RUNNING"
    assert "  entrypoint: python train.py --hf-token *** --epochs=3" in lines
    assert "  attempt 1: job train-1 on cluster train-abcde, log of 8 bytes" in lines
    assert "  pod train-abcde-a: 4 GPUs, 2026-05-28T20:00:10Z to 2026-05-28T20:30:10Z" in lines
    assert "  GPU-hours: 2.00" in lines


def test_its_log_is_the_output_also_if_it_is_newer_than_the_list(pods: Pods, file: Path) -> None:
    done = runs(file, "--tenant", "team-a", "other", "--logs")
    assert (done.exit_code, done.stdout) == (0, "Traceback\n")
    done = runs(file, "--tenant", "team-a", "other", "--logs", "--attempt", "2")
    assert done.exit_code == 1
    assert done.stderr == "there is no log of attempt 2 of team-a/other: it has 1 attempts\n"
    for record in pods.stores[NAMESPACE].records.values():
        record["attempts"][0]["log"] = None
    assert runs(file, "--tenant", "team-a", "other", "--logs").stdout == "Traceback\n"


def test_runs_of_a_cluster_are_selected_and_a_run_also_by_its_id(pods: Pods, file: Path) -> None:
    sent = next(iter(pods.stores[NAMESPACE].records.values())) | {"name": "01000000", "onCluster": "standing"}
    pods.stores[NAMESPACE].records["standing.1"] = {**sent, "attempts": [], "lastSeen": "2026-05-28T20:10:10Z"}
    _, row, total = runs(file, "--tenant", "team-a", "--cluster", "standing").stdout.splitlines()
    assert row.startswith("team-a/01000000  standing  RUNNING, last seen")
    assert total.startswith("1 runs")
    assert "train" in runs(file, "--tenant", "team-a", "--cluster", "train-abcde").stdout
    lines = runs(file, "--tenant", "team-a", "standing.1").stdout.splitlines()
    assert lines[0] == "team-a/01000000: RUNNING, last seen"
    assert "  last seen: 2026-05-28T20:10:10Z" in lines


def test_a_run_of_several_tenants_needs_its_namespace(pods: Pods, file: Path) -> None:
    pods.refused.clear()
    pods.stores["team-b"].records.update(pods.stores[NAMESPACE].records)
    done = runs(file, "other", "--logs")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "'other' exists in several namespaces: write team-a/other or team-b/other\n"
    assert runs(file, "team-a/other", "--logs").stdout == "Traceback\n"


def test_programs_get_json(pods: Pods, file: Path) -> None:
    found = json.loads(runs(file, "--tenant", "team-a", "--format", "json").stdout)
    assert [each["name"] for each in found["runs"]] == ["train", "other"]
    assert (found["problems"], found["unreadable"]) == ({}, {})
    whole = json.loads(runs(file, "--tenant", "team-a", "train", "--format", "json").stdout)
    assert [each["gpus"] for each in whole["pods"].values()] == [4]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--logs"], 2, "--logs and --attempt are for one run: write its name after the stack"),
        (["--tenant", "team-c"], 2, "tenant 'team-c' has no run history: `runHistory` in the stack file"),
        (["--tenant", "team-d"], 2, "prod has no tenant 'team-d'"),
        (["--tenant", "team-a", "none"], 1, "no run history has 'none': `ray-platform runs"),
    ],
)
def test_wrong_use_has_one_message(pods: Pods, file: Path, arguments: list[str], code: int, message: str) -> None:
    done = runs(file, *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(message)


def test_without_a_kubeconfig_nothing_is_shown(in_memory: FakeCluster, file: Path) -> None:
    in_memory.fail(NoKubeconfigError("no usable kubeconfig"), "pod")
    done = runs(file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "the cluster cannot be read: no usable kubeconfig\n"
