"""People of a tenant read logs of a pod that is gone in the stack's own log store, without secrets."""

import base64
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from components.logs.manifests import NAME as COLLECTOR
from components.logs.settings import DEFAULT_NAMESPACE
from components.logs.store import NAME as STORE
from components.logs.store import PORT, PROXY_PORT, service_of
from components.ray_job.settings import JOB_LABEL
from local.images import LOG_COLLECTOR, LOGS_PROXY, VICTORIA_LOGS
from testbed.pods.platform import NAMESPACE, SMALL, Platform, pods_cluster
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(400, func_only=True)]

READER = "reads"
"""An account of the tenant."""

AUTH = "known"
"""The Secret with TOKEN."""

JOB = "prints"

PLACES = f'(("{service_of(NAMESPACE)}", {PROXY_PORT}), ("{STORE}", {PORT}))'
"""The tenant's proxy, and the store."""

TOKEN = base64.b64encode(secrets.token_bytes(32)).decode()
"""As KubeRay generates it."""

PRINTS = f"""
import os, ray, socket
ray.init()
socket.setdefaulttimeout(2)
reaches = lambda name, port: socket.socket().connect_ex((name + ".{DEFAULT_NAMESPACE}.svc", port)) == 0
print("reaches", [each[0] for each in {PLACES} if reaches(*each)])
print("the driver has", os.environ["RAY_AUTH_TOKEN"])
ray.get(ray.remote(lambda: print("the task has", os.environ["RAY_AUTH_TOKEN"], flush=True)).remote())
"""


def with_logs(settings: dict[str, Any]) -> None:
    """Logs go to the stack's own store, and a job prints the token of its RayCluster."""
    small = {"resources": {"cpu": "20m", "memory": "256Mi"}, "storage": "1Gi"}
    settings["logs"] = {"mode": "install", "store": small, "events": True}
    settings["tenants"][0]["users"] = [f"serviceAccount:{NAMESPACE}/{READER}"]
    standing = pods_cluster()
    start = {**standing["head"]["rayStartParams"], "num-cpus": "1"}
    cluster = {
        **{key: standing[key] for key in ("rayVersion", "image")},
        "autoscaling": False,
        "authOptions": {"secretName": AUTH},
        "head": {**standing["head"], "rayStartParams": start},
    }
    job = {
        "name": JOB,
        "entrypoint": f"python -c '{PRINTS.strip().replace(chr(10), '; ')}'",
        "submitterPodTemplate": {"spec": {"containers": [{"name": "ray-job-submitter", "resources": SMALL}]}},
        "cluster": cluster,
        "waitFor": "succeeded",
    }
    settings["tenants"][0]["jobs"] = [job]


def without_logs(settings: dict[str, Any]) -> None:
    del settings["logs"]
    settings["tenants"][0]["jobs"] = []
    settings["tenants"][0]["users"] = []


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Iterator[Platform]:
    """The stack with logs, and a job that has succeeded."""
    platform = without_clusters
    platform.rehearsal.placement.load([each.reference for each in (LOG_COLLECTOR, LOGS_PROXY, VICTORIA_LOGS)])
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": AUTH, "namespace": NAMESPACE}}
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump({**token, "stringData": {"auth_token": TOKEN}}))
    platform.stack.edit(with_logs)
    with steps.step("`pulumi up` of a job whose logs are collected"):
        platform.stack.up()
    yield platform
    platform.stack.edit(without_logs)


@pytest.fixture(scope="module")
def reader(platform: Platform) -> Path:
    """The kubeconfig of a user of the tenant."""
    return platform.kubeconfig_of(READER)


def stored(platform: Platform, reader: Path, *arguments: str) -> list[str]:
    """What `ray-platform logs --stored` shows of the job to a user of the tenant."""
    return platform.stacks(
        "logs", str(platform.stack.file), JOB, "--stored", *arguments, kubeconfig=reader
    ).splitlines()


def test_lines_of_a_pod_that_is_gone_are_read_without_its_token(platform: Platform, reader: Path, steps: Steps) -> None:
    of_job = ("get", "pods", "-n", NAMESPACE, "-l", f"{JOB_LABEL}={JOB}", "-o", "name")
    until(lambda: not platform.kubectl(*of_job), "the pods of the job's RayCluster are gone")
    with steps.step("the last lines of a pod that is gone arrive"):
        until(
            lambda: any("the task has ***" in each for each in stored(platform, reader)), "the task's line", seconds=30
        )
    found = stored(platform, reader)
    (driver,) = (each for each in found if each.endswith("] the driver has ***"))
    (task,) = (each for each in found if each.endswith("] the task has ***"))
    assert re.match(rf"\[{JOB}-\w+-head-\w+/job-driver-{JOB}-\w+\.log\] ", driver)
    assert re.match(rf"\[{JOB}-\w+-head-\w+/worker-\w+-\w+-\d+\.out\] ", task)
    everything = stored(platform, reader, "--file", "*", "--tail", "100000")
    assert not [each for each in everything if TOKEN in each]
    files = {each.partition("]")[0].rpartition("/")[2] for each in everything}
    assert {"raylet.out", "gcs_server.out", "dashboard.log"} <= files
    assert any(name.startswith("event_EXPORT_") for name in files)


def test_a_record_has_its_pod_node_and_job(platform: Platform, reader: Path) -> None:
    query = quote('_msg:="the driver has ***"')
    proxy = f"/api/v1/namespaces/{DEFAULT_NAMESPACE}/services/{service_of(NAMESPACE)}/proxy"
    path = f"{proxy}/select/logsql/query?query={query}"
    record = json.loads(platform.kubectl("get", "--raw", path, f"--kubeconfig={reader}"))
    assert record.items() >= {
        ("k8s.namespace.name", NAMESPACE),
        ("k8s.node.name", "real-0"),
        ("ray.tenant", NAMESPACE),
        ("ray.node_type", "head"),
        ("ray.group", "headgroup"),
    }
    assert record["ray.cluster"].startswith(f"{JOB}-")
    assert record["k8s.pod.name"].startswith(record["ray.cluster"])
    assert record["ray.submission_id"].startswith(JOB)


def test_pods_of_the_tenant_reach_their_proxy_and_not_the_store(platform: Platform, reader: Path) -> None:
    [line] = [each for each in stored(platform, reader) if "] reaches " in each]
    assert line.endswith(f"reaches ['{service_of(NAMESPACE)}']")


def test_a_pod_with_a_collector_ends_as_soon_as_the_collector_has_sent_its_last_lines(platform: Platform) -> None:
    events = json.loads(platform.kubectl("get", "events", "-n", NAMESPACE, "-o", "json"))["items"]
    reasons = {
        each["reason"] for each in events if each["involvedObject"].get("fieldPath", "").endswith(f"{{{COLLECTOR}}}")
    }
    assert "Started" in reasons
    assert not reasons & {"BackOff", "Failed", "FailedPreStopHook", "Unhealthy"}
