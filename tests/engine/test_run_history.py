"""A run history of a live stack: what its program records with the rights of its account alone, and who may read."""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from components.cluster import ForbiddenError
from components.payloads.run_history import NAME as PROGRAM
from components.payloads.run_history import PORT
from components.payloads.run_history.api import ApiServer
from components.payloads.run_history.collector import Collector
from components.payloads.run_history.configured import READ_SECONDS, Configured
from components.payloads.run_history.store import Store
from components.ray_job.settings import JOB_LABEL
from components.run_history.manifests import POD
from local.rehearsal import Rehearsal
from testbed.client_session import ClientSession
from testbed.platform_stack import Rays, Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE, NAME = "team-a", "recorded"


def add(settings: dict[str, Any]) -> None:
    """A job with a worker of two GPUs, which runs until it is deleted: Ray is simulated."""
    image = {key: training(settings)[key] for key in ("rayVersion", "image")}
    groups = [{"groupName": "gpu", "pool": "a100", "gpus": 2, "replicas": 1}]
    # `check` does not take it for a key, and the record masks it by the name of the option.
    job = {"entrypoint": "python train.py --passphrase=hunter", "submissionMode": "HTTPMode"}
    tenant = settings["tenants"][0]
    tenant["jobs"] = [{"name": NAME, **job, "cluster": {**image, "autoscaling": False, "workerGroups": groups}}]
    tenant["storage"] = [{"name": "runs", "storageClass": "disks", "size": "1Gi", "retain": False}]
    tenant["runHistory"] = {"storage": "runs", "readHeads": True}


@pytest.fixture(scope="module")
def up(stack_on_operator: MakeStack) -> Stack:
    """The dev stack with this job and a run history."""
    made = stack_on_operator("dev")
    made.edit(add)
    made.up()
    return made


@pytest.fixture
def program(up: Stack, cluster: Rehearsal, core: client.CoreV1Api, tmp_path: Path) -> Callable[[], Collector]:
    """Starts the program of the pod, which is simulated, with its argument and the token of its account."""
    api = cluster.client()
    body: Any = client.AppsV1Api(api).read_namespaced_stateful_set(PROGRAM, NAMESPACE)
    argument = json.loads(body.spec.template.spec.containers[0].command[3])
    request: Any = {"spec": {}}
    token: Any = core.create_namespaced_service_account_token(PROGRAM, NAMESPACE, request)
    (tmp_path / "token").write_text(token.status.token)
    (tmp_path / "ca.crt").write_bytes(Path(api.configuration.ssl_ca_cert).read_bytes())
    server = ApiServer(api.configuration.host, tmp_path)
    return lambda: Collector(server, Store(tmp_path / "records" / NAMESPACE), Configured(**argument))


def test_a_job_is_recorded_and_its_record_outlives_it(
    program: Callable[[], Collector], cluster: Rehearsal, rays: Rays
) -> None:
    def record(later: float = 0) -> dict[str, Any]:
        running.look(time.time() + later)
        # Of the tenant's RayCluster; no simulated head lists jobs.
        assert running.problems.keys() <= {"cluster training"}
        return dict(next(iter(running.store.records.values())))

    running = program()
    until(lambda: record().get("gpuHours"), "a worker of the job holds its GPUs")
    times = itertools.count(1)

    def objects() -> set[str]:
        events = record(later=next(times) * READ_SECONDS)["events"].values()
        return {each["object"].partition("/")[0] for each in events}

    until(lambda: objects() >= {"RayJob", "RayCluster", "Pod"}, "it has events of each kind")
    found = record()
    assert (found["name"], found["entrypoint"]) == (NAME, "python train.py --passphrase=***")
    assert sorted(each["gpus"] for each in found["pods"].values()) == [0, 2]
    Rays(cluster, "rayjobs").delete(NAMESPACE, NAME)
    until(lambda: not rays.named(NAMESPACE, f"{JOB_LABEL}={NAME}"), "its RayCluster is deleted")
    before = found["gpuHours"]
    found = record()
    assert (found["complete"], found["deleted"]) == (True, True)
    assert found["gpuHours"] >= before > 0
    assert program().store.records == running.store.records


def test_who_is_nobody_of_the_tenant_may_not_ask_its_pod(up: Stack, cluster: Rehearsal, core: client.CoreV1Api) -> None:
    """Such as the account of Ray's workers. docs/access.md has those who may; a simulated pod answers nobody."""
    request: Any = {"spec": {}}
    token: Any = core.create_namespaced_service_account_token("default", NAMESPACE, request)
    configuration = client.Configuration(host=cluster.client().configuration.host)
    configuration.ssl_ca_cert = cluster.client().configuration.ssl_ca_cert
    configuration.api_key = {"authorization": f"Bearer {token.status.token}"}
    with pytest.raises(ForbiddenError, match=f"pod {NAMESPACE}/{POD} cannot be asked: 403 Forbidden"):
        ClientSession(client.ApiClient(configuration)).ask_pod(NAMESPACE, POD, PORT, "/runs")


def test_a_history_that_does_not_answer_is_named(up: Stack) -> None:
    command = [sys.executable, "-m", "stacks", "runs", str(up.file)]
    done = subprocess.run(command, cwd=up.folder, env=up.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the run history of namespace {NAMESPACE} cannot be read: pod {NAMESPACE}/{POD} " in done.stderr
    assert "Traceback" not in done.stderr
