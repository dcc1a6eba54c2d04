"""Jobs that `up` submits to a real head of Ray, with the real engine and without Kubernetes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.remote_job.jobs import Jobs, RemoteJobError
from local import paths
from local.plugins import Selection
from testbed.harness import Project
from testbed.pods.steps import until
from testbed.ray_python import TOKEN, head, serve_python

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

VARIABLE = "TOKEN_OF_THE_LABORATORY"
NAME = "test-count"
"""How the IDs of the job in Ray begin."""


class Outside:
    """A stack with a job on a head of Ray, and nothing else."""

    def __init__(self, address: str, project: Project) -> None:
        self.project = project
        self.cluster = {"name": "lab", "dashboardAddress": f"http://{address}", "tokenVariable": VARIABLE}
        target = {"cluster": "lab", "address": f"http://{address}", "tokenVariable": "", "token": TOKEN, "caFile": ""}
        self.ray = Jobs({**target, "seconds": 60})

    def set(self, *jobs: dict[str, Any]) -> None:
        settings = {
            "ray-platform:externalClusters": [self.cluster],
            "ray-platform:jobs": [{"name": "count", "externalCluster": "lab", **each} for each in jobs],
        }
        file = self.project.folder / "Pulumi.test.yaml"
        content = yaml.safe_load(file.read_text()) if file.exists() else {}
        file.write_text(yaml.safe_dump({**content, "config": settings}))

    def up(self, *, fails: bool = False, **environment: str) -> str:
        return self.project.pulumi("up", "--yes", "--skip-preview", fails=fails, environment=environment).output

    def statuses(self) -> dict[str, str]:
        """Those of the jobs in Ray, by their IDs."""
        return {each["submission_id"]: each["status"] for each in self.ray.listed()}

    def runs(self, *arguments: str) -> str:
        return self.project.ray_platform("runs", self.project.name, "--cluster", "lab", *arguments).output

    def answers(self) -> bool:
        """Whether the head has started."""
        try:
            return self.statuses() == {}
        except RemoteJobError:
            return False

    @property
    def output(self) -> dict[str, Any]:
        found: dict[str, Any] = self.project.outputs()["submittedJobs"]["count"]
        return found


@pytest.fixture
def outside(tmp_path: Path, plugins: Selection) -> Iterator[Outside]:
    project = Project.make(tmp_path / "pulumi", paths.ROOT / "__main__.py", plugins, name="ray-platform")
    project.environment |= {"PYTHONPATH": str(paths.ROOT), "KUBECONFIG": os.devnull, VARIABLE: TOKEN}
    with head(serve_python()) as (_, address):
        made = Outside(address, project)
        until(made.answers, "the dashboard answers")
        yield made


def test_a_job_is_submitted_once_again_after_an_edit_and_stopped_with_the_stack(outside: Outside) -> None:
    outside.set({"entrypoint": "echo counted", "waitFor": "succeeded", "waitTimeout": "3m"})
    outside.up()
    [(first, status)] = outside.statuses().items()
    assert first.startswith(NAME)
    assert status == "SUCCEEDED"
    assert (outside.output["submissionId"], outside.output["status"]) == (first, "SUCCEEDED")
    outside.project.changes_nothing()
    outside.up()
    assert outside.statuses().keys() == {first}
    assert f"lab/{first}" in outside.runs()
    assert "they end with the head" in outside.runs()
    assert f"lab/{first}: SUCCEEDED" in outside.runs(first)
    assert "\ncounted\n" in outside.runs(first, "--logs")

    long = {"entrypoint": "sleep 600", "waitFor": "running", "waitTimeout": "3m"}
    outside.set(long)
    outside.project.killed(lambda: len(outside.statuses()) == 2)
    outside.project.recover()
    outside.up()
    [second] = outside.statuses().keys() - {first}
    assert outside.statuses()[second] == "RUNNING"

    outside.set({"entrypoint": "sleep 600", "runId": "again"}, {"name": "other", "entrypoint": "sleep 600"})
    outside.up()
    assert outside.statuses()[second] == "STOPPED"
    assert len(outside.statuses()) == 4

    outside.set({"entrypoint": "sleep 600", "runId": "again"})
    outside.up()
    assert sorted(outside.statuses().values()).count("STOPPED") == 2
    outside.project.pulumi("destroy", "--yes", "--skip-preview")
    assert set(outside.statuses().values()) == {"SUCCEEDED", "STOPPED"}
    assert len(outside.statuses()) == 4


def test_an_up_fails_with_the_reason_and_what_to_change(outside: Outside) -> None:
    printed = "printf 'bear%s abcdefghijklmnop0815' er"
    outside.set({"entrypoint": f"{printed}; echo ': the reason' && exit 3", "waitFor": "succeeded"})
    shown = outside.up(fails=True)
    assert "bearer abcdefgh" not in shown
    assert "bearer ***" in shown
    assert "exit code 3" in shown
    assert "the reason" in shown
    assert "Its log: `ray job logs --address http://127.0.0.1:" in shown
    assert "Traceback" not in shown
    shown = outside.up(fails=True)
    assert "To submit it again, correct it or set another runId" in shown
    assert list(outside.statuses().values()) == ["FAILED"]

    outside.set({"entrypoint": "true", "runtimeEnv": {"pip": ["--no-such-option"]}})
    outside.up()
    outside.set({"entrypoint": "true"})
    shown = outside.up(fails=True, **{VARIABLE: "another-token"})
    assert f"refuses the token (403): correct {VARIABLE}" in shown
    shown = outside.up(fails=True, **{VARIABLE: ""})
    assert f"the environment has no {VARIABLE} with the token of Ray cluster lab: export it" in shown
    assert "Traceback" not in shown
    assert TOKEN not in shown
    outside.up()
    outside.project.pulumi("destroy", "--yes", "--skip-preview")
