"""`ray-platform status`, `logs` and `dashboard`: output and exit codes, with a cluster that each test sets."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.cluster import Cluster, ClusterUnreachableError, ForbiddenError, path_of
from stacks.commands.status import live
from stacks.commands.status.snapshot import Found, Live
from stacks.commands.status.targets import WHO_WAKES
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from tests.unit.status.live import NOW, READY, STARTING, SUSPENDED, found, pod, ray_cluster

STACK = """\
config:
  ray-platform:kubernetes: {context: prod}
  ray-platform:nodes:
    - {pool: a100, count: 2, cpu: 64, memory: 1000Gi, gpus: 8}
  ray-platform:tenants:
    - name: team-a
      clusters:
        - {name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {pool: a100}}
    - {name: team-b, namespace: research}
"""

Serve = Callable[[dict[str, Found]], None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Sets what exists in the namespaces."""

    def answers(existing: dict[str, Found]) -> None:
        def look(cluster: Cluster, namespaces: Iterator[str], operator: str, _backend: None) -> Live:
            assert (cluster.connection.context, operator) == ("prod", "ray-system")
            return Live(NOW, {each: existing.get(each, found()) for each in namespaces})

        monkeypatch.setattr(live, "look", look)

    return answers


READY_TEAM = {"team-a": found(rayclusters=[ray_cluster("training", *READY)], pods=[pod("head")])}


def test_a_stack_that_is_as_desired_ends_with_0(serve: Serve) -> None:
    serve(READY_TEAM)
    done = stacks("status", "prod")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("prod: 1 of 1 RayClusters ready; GPUs: 0 of 16 held\n")
    assert "team-b, namespace research: nothing" in done.stdout


def test_something_that_is_not_ready_ends_with_1_and_its_reason(serve: Serve) -> None:
    serve({"team-a": found(rayclusters=[ray_cluster("training", *STARTING)])})
    done = stacks("status", "prod")
    assert done.exit_code == 1
    assert "- RayCluster training: HeadPodReady is False: containers not ready\n" in done.stdout
    as_json = stacks("status", "prod", "--format", "json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["tenants"][0]["clusters"][0]["state"] == "not ready"


@pytest.mark.parametrize("name", ["team-b", "research"])
def test_one_tenant_is_chosen_by_its_name_or_namespace(serve: Serve, name: str) -> None:
    serve({})
    done = stacks("status", "prod", "--tenant", name, "--format", "json")
    assert (done.exit_code, [each["tenant"] for each in json.loads(done.stdout)["tenants"]]) == (0, ["team-b"])


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("status", "stage"), "Pulumi.stage.yaml"),
        (("status", "wrong.yaml"), "wrong.yaml"),
        (("status", "prod", "--tenant", "team-c"), "prod has no tenant 'team-c': did you mean 'team-b'?"),
        (("status", "prod"), "the cluster cannot be read: no usable kubeconfig"),
        (("logs", "prod", "training"), "the cluster cannot be read: no usable kubeconfig"),
        (("dashboard", "prod", "training"), "the cluster cannot be read: no usable kubeconfig"),
    ],
)
def test_wrong_use_and_an_unreachable_cluster_end_with_2_and_one_message(
    folder: Path, in_memory: FakeCluster, arguments: tuple[str, ...], shown: str
) -> None:
    (folder / "wrong.yaml").write_text("config: {ray-platform:tenants: 1}\n")
    in_memory.fail(ClusterUnreachableError("no usable kubeconfig"))
    done = stacks(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert shown in done.stderr


@pytest.mark.parametrize("verb", ["logs", "dashboard"])
def test_an_unknown_name_ends_with_2_and_a_near_one(serve: Serve, verb: str) -> None:
    serve(READY_TEAM)
    done = stacks(verb, "prod", "trainin")
    assert (done.exit_code, "did you mean 'training'?" in done.stderr) == (2, True)


class Interrupted:
    """Ctrl-C after a number of looks. Threads of other tests may sleep meanwhile."""

    def __init__(self, looks: int) -> None:
        self.left, self.sleep = looks, time.sleep

    def __call__(self, seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.sleep(seconds)
            return
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("output", ["text", "json"])
def test_watching_shows_report_after_report_until_ctrl_c(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    serve(READY_TEAM)
    monkeypatch.setattr(time, "sleep", Interrupted(2))
    done = stacks("status", "prod", "--watch", "--format", output)
    assert done.exit_code == 130
    assert "Traceback" not in done.output
    reports = [line for line in done.stdout.splitlines() if line.startswith(("prod: 1 of 1", '{"stack": "prod", "at"'))]
    assert len(reports) == 2


def test_while_watching_an_outage_is_shown_below_the_last_report(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(READY_TEAM)
    looks = [live.look]

    def look(*arguments: Any) -> Live:
        if not looks:
            raise ClusterUnreachableError("connection refused")
        return looks.pop()(*arguments)

    monkeypatch.setattr(live, "look", look)
    monkeypatch.setattr(time, "sleep", Interrupted(2))
    done = stacks("status", "prod", "--watch")
    assert done.exit_code == 130
    assert done.stdout.count("prod: 1 of 1 RayClusters ready") == 2
    assert done.stdout.endswith("the cluster could not be read again: connection refused\n")


LOG = path_of("v1", "pods", "team-a", "head") + "/log"


def test_a_log_is_shown_as_it_is(serve: Serve, in_memory: FakeCluster) -> None:
    serve(READY_TEAM)
    in_memory.streams[LOG] = [b"first\n", b"second\n"]
    done = stacks("logs", "prod", "team-a/training", "--tail", "2")
    assert (done.exit_code, done.stdout) == (0, "first\nsecond\n")
    assert done.stderr == "# pod team-a/head, container ray\n"
    assert in_memory.requests[-1].query == {"container": "ray", "tailLines": "2"}


def test_following_a_log_ends_with_ctrl_c(serve: Serve, in_memory: FakeCluster) -> None:
    serve(READY_TEAM)
    in_memory.streams[LOG] = [b"first\n", KeyboardInterrupt()]
    done = stacks("logs", "prod", "training", "--follow")
    assert (done.exit_code, done.stdout) == (130, "first\n")
    assert in_memory.requests[-1].query == {"container": "ray", "follow": "true"}


def test_simulated_nodes_have_no_logs_and_no_ports_and_status_says_so(serve: Serve, in_memory: FakeCluster) -> None:
    serve(READY_TEAM)
    node = {"name": "a100-0", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    in_memory.add({"apiVersion": "v1", "kind": "Node", "metadata": node})
    done = stacks("logs", "prod", "training")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "The nodes are simulated" in done.stderr
    assert "The nodes are simulated" in stacks("dashboard", "prod", "training").stderr
    assert "no job runs, no service answers" in stacks("status", "prod").stdout


def test_a_log_that_does_not_exist_ends_with_1(serve: Serve) -> None:
    serve({"team-a": found(rayclusters=[ray_cluster("training")])})
    done = stacks("logs", "prod", "training")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the head of RayCluster team-a/training has no pod now" in done.stderr


STORED = "/api/v1/namespaces/ray-logs/services/logs-team-a/proxy/select/logsql/query"


@pytest.fixture
def log_store(folder: Path) -> None:
    """The stack has a log store of its own."""
    (folder / "Pulumi.prod.yaml").write_text(
        STACK.replace("config:\n", "config:\n  ray-platform:logs: {mode: install}\n")
    )


@pytest.mark.usefixtures("log_store")
def test_stored_lines_of_a_job_that_is_gone_are_shown_oldest_first(in_memory: FakeCluster) -> None:
    in_memory.fail(ForbiddenError("services/proxy is forbidden"), "services/logs-research")
    named = {"k8s.pod.name": "nightly-x7k2p-head", "log.file.name": "job-driver-1.log"}
    in_memory.streams[STORED] = [b"".join(json.dumps({**named, "_msg": each}).encode() + b"\n" for each in ("b", "a"))]
    done = stacks("logs", "prod", "nightly", "--stored", "--tail", "2")
    lines = "".join(f"[nightly-x7k2p-head/job-driver-1.log] {each}\n" for each in ("a", "b"))
    assert (done.exit_code, done.stdout, done.stderr) == (0, lines, "")
    [asked] = [each.query["query"] for each in in_memory.requests if each.path == STORED]
    assert asked.startswith('"ray.cluster":~"^nightly(-(raycluster-)?[a-z0-9]{5})?$" ')
    assert asked.endswith(" | sort by (_time desc) limit 2")


@pytest.mark.usefixtures("log_store")
@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["nightly", "--stored"], 1, "the log store has no such line of 'nightly'"),
        (["team-c/nightly", "--stored"], 2, "the log store has no namespace 'team-c'"),
        (["nightly", "--stored", "--follow"], 2, "--follow shows a pod that runs"),
        (["nightly", "--file", "raylet.*"], 2, "--file selects stored logs: add --stored"),
        (["training"], 1, "If it has ended, its lines may be in the log store: add --stored"),
        (["nightly"], 2, "If it has ended, its lines may be in the log store: add --stored"),
    ],
)
def test_what_a_log_store_has_not(serve: Serve, arguments: list[str], code: int, error: str) -> None:
    serve({"team-a": found(rayclusters=[ray_cluster("training")])})
    done = stacks("logs", "prod", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert error in " ".join(done.stderr.split())


def test_an_account_that_may_read_no_stored_logs_is_refused(log_store: None, in_memory: FakeCluster) -> None:
    in_memory.fail(ForbiddenError("services/proxy is forbidden"), "services/logs-")
    done = stacks("logs", "prod", "nightly", "--stored")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "services/proxy is forbidden" in done.stderr


def test_a_stack_without_a_log_store_has_no_stored_lines() -> None:
    done = stacks("logs", "prod", "nightly", "--stored")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the stack file has no log store: leave out --stored, or set logs.mode to install" in done.stderr


def test_without_the_right_to_read_ingresses_the_stack_files_host_is_the_url(
    serve: Serve, folder: Path, in_memory: FakeCluster
) -> None:
    serve(READY_TEAM)
    port_forward = "kubectl --context prod port-forward -n team-a service/training-head-svc 8265"
    assert port_forward in stacks("dashboard", "prod", "training").stdout
    in_memory.fail(ForbiddenError("ingresses is forbidden"), "ingresses")
    assert port_forward in stacks("dashboard", "prod", "training").stdout
    ingress = "ingress: {host: ray.example.com, className: nginx, tlsSecretName: tls}"
    with_ingress = STACK.replace("workers: {pool: a100}}", f"workers: {{pool: a100}}, {ingress}}}")
    with_ingress = with_ingress.replace("team-a\n", "team-a\n      network: {ingress: true}\n")
    with_ingress = with_ingress.replace("config:\n", "config:\n  ray-platform:network: {ingressController: ingress}\n")
    (folder / "Pulumi.prod.yaml").write_text(with_ingress)
    done = stacks("dashboard", "prod", "training")
    assert "https://ray.example.com\n" in done.stdout, done.output


RESTING = {"team-a": found(rayclusters=[ray_cluster("training", SUSPENDED, suspend=True)])}


def test_a_suspended_cluster_is_woken_and_one_that_runs_is_left_alone(serve: Serve, in_memory: FakeCluster) -> None:
    serve(RESTING)
    done = stacks("wake", "prod", "training")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "RayCluster team-a/training starts: `ray-platform status` shows when it is ready\n"
    assert [each.body for each in in_memory.changes] == [{"spec": {"suspend": False}}]
    assert in_memory.connection.context == "prod"
    serve(READY_TEAM)
    done = stacks("wake", "prod", "training")
    assert (done.exit_code, done.stdout) == (0, "RayCluster team-a/training is not suspended\n")


def test_without_the_right_to_wake_it_those_who_have_it_are_named(serve: Serve, in_memory: FakeCluster) -> None:
    serve(RESTING)
    in_memory.fail(ForbiddenError("the API server refuses: may not patch"))
    done = stacks("wake", "prod", "training")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"the API server refuses: may not patch. {WHO_WAKES}\n"
