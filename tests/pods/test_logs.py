"""Logs of a pod that is gone are found in a real receiver, without secrets."""

import base64
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.logs.manifests import NAME as COLLECTOR
from components.logs.settings import IMAGE
from components.ray_job.settings import JOB_LABEL
from testbed.log_receiver import PORT, Record, receiver_config, records
from testbed.pods.platform import NAMESPACE, SMALL, Platform, pods_cluster
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(400, func_only=True)]

STORE = "log-store"

FILE = Path("/records/records.json")

JOB = "prints"

TOKEN = base64.b64encode(secrets.token_bytes(32)).decode()
"""As KubeRay generates it."""

PRINTS = """
import os, ray
ray.init()
print("the driver has", os.environ["RAY_AUTH_TOKEN"])
ray.get(ray.remote(lambda: print("the task has", os.environ["RAY_AUTH_TOKEN"], flush=True)).remote())
"""


def receiver() -> list[dict[str, Any]]:
    """The receiver of logs, in its namespace."""
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    metadata = {"name": STORE, "namespace": STORE, "labels": {"app": STORE}}
    container = {
        "name": STORE,
        "image": IMAGE,
        "args": ["--config=/config/config.yaml"],
        "securityContext": secured,
        "volumeMounts": [
            {"name": "config", "mountPath": "/config"},
            {"name": "records", "mountPath": str(FILE.parent)},
        ],
    }
    volumes = [{"name": "config", "configMap": {"name": STORE}}, {"name": "records", "emptyDir": {}}]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"config.yaml": receiver_config(f"0.0.0.0:{PORT}", FILE)},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": STORE}, "ports": [{"port": PORT}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1},
        },
    ]


def with_logs(settings: dict[str, Any]) -> None:
    """Logs go to the receiver, and a job prints the token of its RayCluster."""
    settings["logs"] = {
        "endpoint": f"http://{STORE}.{STORE}.svc:{PORT}",
        "egress": [{"namespace": STORE, "ports": [PORT]}],
        "events": True,
    }
    standing = pods_cluster()
    start = {**standing["head"]["rayStartParams"], "num-cpus": "1"}
    cluster = {
        **{key: standing[key] for key in ("rayVersion", "image")},
        "autoscaling": False,
        "authOptions": {"secretName": STORE},
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


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Iterator[Platform]:
    """The stack with logs, and a job that has succeeded."""
    platform = without_clusters
    platform.rehearsal.placement.load([IMAGE])
    platform.create_namespace(STORE)
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": STORE, "namespace": NAMESPACE}}
    bodies = [*receiver(), {**token, "stringData": {"auth_token": TOKEN}}]
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump_all(bodies))
    platform.stack.edit(with_logs)
    with steps.step("`pulumi up` of a job whose logs are collected"):
        platform.stack.up()
    yield platform
    platform.stack.edit(without_logs)


def received(platform: Platform) -> list[Record]:
    """The records that the receiver has."""
    volumes = platform.rehearsal.run / "node" / "kubelet" / "pods"
    found = list(volumes.glob(f"*/volumes/kubernetes.io~empty-dir/records/{FILE.name}"))
    return records(found[0]) if found else []


def test_lines_of_a_pod_that_is_gone_are_found_without_its_token(platform: Platform, steps: Steps) -> None:
    of_job = ("get", "pods", "-n", NAMESPACE, "-l", f"{JOB_LABEL}={JOB}", "-o", "name")
    until(lambda: not platform.kubectl(*of_job), "the pods of the job's RayCluster are gone")
    with steps.step("the last lines of a pod that is gone arrive"):
        until(
            lambda: any(each.body == "the task has ***" for each in received(platform)), "the task's line", seconds=30
        )
    found = received(platform)
    (driver,) = (each for each in found if each.body == "the driver has ***")
    (task,) = (each for each in found if each.body == "the task has ***")
    assert driver.attributes.items() >= {
        ("k8s.namespace.name", NAMESPACE),
        ("k8s.node.name", "real-0"),
        ("ray.tenant", NAMESPACE),
        ("ray.node_type", "head"),
        ("ray.group", "headgroup"),
    }
    assert driver.attributes["ray.cluster"].startswith(f"{JOB}-")
    assert driver.attributes["k8s.pod.name"].startswith(driver.attributes["ray.cluster"])
    assert driver.attributes["ray.submission_id"].startswith(JOB)
    assert task.attributes["log.file.name"].startswith("worker-")
    assert not [each for each in found if TOKEN in each.body]


def test_files_of_ray_itself_and_its_export_events_are_collected(platform: Platform) -> None:
    files = {each.attributes["log.file.name"] for each in received(platform)}
    assert {"raylet.out", "gcs_server.out", "dashboard.log"} <= files
    assert any(name.startswith("event_EXPORT_") for name in files)


def test_a_pod_with_a_collector_ends_as_soon_as_the_collector_has_sent_its_last_lines(platform: Platform) -> None:
    events = json.loads(platform.kubectl("get", "events", "-n", NAMESPACE, "-o", "json"))["items"]
    reasons = {
        each["reason"] for each in events if each["involvedObject"].get("fieldPath", "").endswith(f"{{{COLLECTOR}}}")
    }
    assert "Started" in reasons
    assert not reasons & {"BackOff", "Failed", "FailedPreStopHook", "Unhealthy"}
