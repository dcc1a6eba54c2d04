"""Jobs that `up` submits: resources, what an edit does, and clusters that do not answer. With Ray itself they are in
tests/engine/test_remote_jobs.py and test_cml.py."""

import http.server
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import dill
import pytest
import yaml

from components.dynamic.remote_job import RunProvider
from components.remote_job import jobs
from components.remote_job.jobs import Jobs, RemoteJobError, UnreachableError
from local.control_plane import free_ports
from stacks.commands.impact.comparison import impact_of
from stacks.load import load, parse
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.commands import stacks
from testbed.recorder import record

FILE = Path(__file__).parents[1] / "stack_files" / "good" / "outside-kubernetes.yaml"
JOB = {"name": "count", "externalCluster": "lab", "entrypoint": "python count.py"}


def stack(*jobs: dict[str, Any], port: int = 8265) -> StackSettings:
    lab = {"name": "lab", "dashboardAddress": f"http://localhost:{port}"}
    return parse({"externalClusters": [lab], "jobs": list(jobs)})


def target(address: str, **changes: Any) -> dict[str, Any]:
    plain = {"cluster": "lab", "address": address, "token": "", "tokenVariable": "", "caFile": "", "seconds": 0}
    return {**plain, **changes}


def test_a_stack_of_external_clusters_alone_needs_no_kubernetes() -> None:
    recorded = record(lambda: build(stack(JOB)), stack="dev")
    assert {name: each.type.rpartition(":")[2] for name, each in recorded.registered.items()} == {
        "job-count": "RemoteJob",
        "job-count-run": "RemoteJobRun",
        "job-count-submission": "RemoteJobSubmission",
    }
    assert recorded.registered["job-count-run"].inputs["prefix"] == "dev-count"


def test_a_job_on_cloudera_ml_is_submitted_once_its_cluster_is_ready() -> None:
    recorded = record(lambda: build(load(FILE)), stack="dev")
    assert recorded.made_before("cml-training-nodes", "job-finetune")
    assert not recorded.made_before("cml-training-nodes", "job-evaluate")


def test_impact_reports_what_is_submitted_and_what_is_stopped() -> None:
    def texts(before: StackSettings | None, after: StackSettings) -> list[str]:
        found = impact_of(before, after).objects
        return [f"{each.name} {effect.verdict}: {effect.text}" for each in found for effect in each.effects]

    assert texts(None, stack(JOB)) == ["count creates: `up` submits it to Ray cluster lab"]
    assert texts(stack(JOB), stack({**JOB, "waitFor": "running"})) == []
    [edited] = texts(stack(JOB), stack({**JOB, "runId": "2"}))
    assert edited.endswith("if it still runs on Ray cluster lab, it is stopped; `up` submits it to lab again")
    [moved] = texts(stack(JOB), stack(JOB, port=8266))
    assert moved.endswith("one that runs at the old address is left there")
    [removed] = texts(stack(JOB), stack())
    assert removed == "count deletes: if it still runs on Ray cluster lab, it is stopped; Ray keeps its log"


def test_manifests_of_a_stack_with_tenants_lack_its_jobs_outside_kubernetes(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    both = {
        "operator": {"install": "existing"},
        "tenants": [{"name": "team-a"}],
        "externalClusters": [{"name": "lab", "dashboardAddress": "http://localhost:8265"}],
        "jobs": [JOB],
    }
    file.write_text(yaml.safe_dump({"config": {f"ray-platform:{key}": value for key, value in both.items()}}))
    shown = stacks("render", file, "--output", tmp_path / "out").output
    assert "Jobs count outside Kubernetes: `up` submits them from its own machine: use `ray job submit`" in shown
    assert stacks("render", FILE, "--output", tmp_path / "none").exit_code == 1


def test_a_cluster_that_does_not_answer_is_named_and_does_not_keep_a_job_in_the_state(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(jobs, "PAUSE_SECONDS", 0.0)
    [port] = islice(free_ports(), 1)
    address = f"http://127.0.0.1:{port}"
    with pytest.raises(UnreachableError, match=rf"Ray cluster lab at {address} does not answer \(.*refused\)"):
        Jobs(target(address)).submit("dev-count-1", {"entrypoint": "true"}, print)
    [provider] = dill.loads(dill.dumps([RunProvider()]))  # noqa: S301 (its own)
    provider.delete("", {**target(address), "submission": "dev-count-1"})
    assert f"so may the job: `ray job stop --address {address} dev-count-1`" in capfd.readouterr().err
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(f"config:\n  ray-platform:externalClusters: [{{name: lab, dashboardAddress: '{address}'}}]\n")
    ended = stacks("runs", file, "--cluster", "lab")
    assert ended.exit_code == 1
    assert f"Ray cluster lab at {address} does not answer" in ended.output


class _Other(http.server.BaseHTTPRequestHandler):
    """What a server that is not Ray answers."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def other() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_answer_that_is_not_rays_is_no_answer_about_the_job(other: str) -> None:
    with pytest.raises(UnreachableError, match=r"answers 404, and not as Ray's jobs API: .*is this the address of its"):
        Jobs(target(other)).find("dev-count-1")


def test_a_token_that_is_not_set_or_not_a_token_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with_token = target("http://localhost:8265", tokenVariable="TOKEN_OF_LAB")
    with pytest.raises(RemoteJobError, match="the environment has no TOKEN_OF_LAB with the token of Ray cluster lab"):
        Jobs(with_token)
    monkeypatch.setenv("TOKEN_OF_LAB", "two\nlines")
    with pytest.raises(RemoteJobError, match="TOKEN_OF_LAB has a space or a letter that no token has"):
        Jobs(with_token)
