"""The run history of a real head of Ray that is killed. Without Kubernetes: the head's RayCluster is in memory."""

import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.payloads.run_history.configured import READ_SECONDS
from testbed.pods.steps import until
from testbed.ray_python import ENVIRONMENT, TOKEN, head, serve_python
from tests.unit.run_history.api import Cluster, collector, give_token, head_of, standing

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

SUBMIT = """
import sys
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient(sys.argv[1])
given = {"metadata": {"user": "eve"}, "runtime_env": {"env_vars": {"HF_TOKEN": "hunter2"}}}
client.submit_job(submission_id="ends", entrypoint="echo the end && exit 3", **given)
client.submit_job(submission_id="runs", entrypoint="echo epoch 1 && sleep 600")
"""

CONNECT = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False)"


def test_jobs_of_a_head_that_is_killed_keep_their_records_and_logs(tmp_path: Path) -> None:
    python = serve_python()
    cluster = Cluster()
    give_token(cluster, "training", TOKEN)
    program, looks = collector(cluster, tmp_path, read_heads=True), 0

    def records() -> dict[str, Any]:
        nonlocal looks
        looks += 1
        program.look(time.time() + looks * READ_SECONDS)
        return {each["name"]: each for each in program.store.records.values()}

    with head(python) as (addresses, dashboard):
        cluster.objects |= {"rayclusters": [standing()], "pods": [head_of("training", dashboard)]}

        def run(script: str, argument: str) -> bool:
            command = [str(python), "-c", script, argument]
            return not subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False).returncode

        until(lambda: run(SUBMIT, f"http://{dashboard}"), "the jobs are submitted")
        for address in addresses:
            until(partial(run, CONNECT, address), f"a driver has connected to {address}")
        until(lambda: records().get("ends", {}).get("complete"), "the record of the job that has ended is complete")
        until(lambda: (records()["runs"]["attempts"][0]["log"] or {}).get("bytes"), "the other one has a log")
        assert program.problems == {}
    cluster.objects["pods"] = []
    assert records()["runs"]["status"] == "RUNNING"
    assert program.problems == {
        "cluster training": "has no head that is ready: its jobs are shown as they were last seen"
    }
    with head(python) as (_, dashboard):
        cluster.objects["pods"] = [head_of("training", dashboard)]
        until(lambda: records()["runs"]["complete"], "another head, which does not know the job, has answered")
    found = records()
    ends, runs = found["ends"], found["runs"]
    assert (ends["status"], ends["exitCode"], ends["author"], ends["lastSeen"]) == ("FAILED", 3, "eve", None)
    [whole] = [program.store.whole(name) for name, each in program.store.records.items() if each["name"] == "ends"]
    assert whole
    assert (whole["runtimeEnv"], whole["failed"]) == ({"env_vars": {"HF_TOKEN": "***"}}, 1)
    assert (runs["status"], runs["complete"]) == ("RUNNING", True)
    assert runs["lastSeen"]
    connected = [each for each in found.values() if each["submissionMode"] == "DRIVER"]
    assert [(each["status"], each["attempts"][0]["log"]) for each in connected] == [("SUCCEEDED", None)] * 2
    logs = {each["name"]: program.store.log(name, 1) for name, each in program.store.records.items()}
    assert b"the end\n" in (logs["ends"] or b"")
    assert b"epoch 1\n" in (logs["runs"] or b"")
