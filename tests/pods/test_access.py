"""A RayCluster does what people have it for: it says what it has, and runs what they submit, if they may."""

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest
import urllib3

from tests.pods.platform import CLUSTER, NAMESPACE, Platform
from tests.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(240, func_only=True)]

HTTP = urllib3.PoolManager(timeout=30.0)


def test_ray_shows_the_head_and_no_worker(platform: Platform) -> None:
    status = platform.in_head("ray", "status")
    assert "1 headgroup" in status
    assert "no pending nodes" in status
    assert platform.workers() == {}


def test_a_job_runs_with_the_token_and_none_without(platform: Platform, steps: Steps) -> None:
    secret = json.loads(platform.kubectl("get", "secret", "-n", NAMESPACE, CLUSTER, "-o", "json"))
    token = base64.b64decode(secret["data"]["auth_token"]).decode()
    job = {"entrypoint": "python -c \"import ray; ray.init(); print('cluster of', len(ray.nodes()))\""}
    with platform.forwarded(f"{CLUSTER}-head-svc", 8265) as address:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            refused = HTTP.request("POST", f"{address}/api/jobs/", json=job, headers=headers)
            assert refused.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN), refused.data
        authorized = {"Authorization": f"Bearer {token}"}
        with steps.step("a job through the dashboard's API"):
            submitted = _json("POST", f"{address}/api/jobs/", authorized, job)["submission_id"]
            url = f"{address}/api/jobs/{submitted}"
            until(lambda: _json("GET", url, authorized)["status"] in ("SUCCEEDED", "FAILED"), "the job ends")
        assert _json("GET", url, authorized)["status"] == "SUCCEEDED"
        assert "cluster of 1" in _json("GET", f"{url}/logs", authorized)["logs"]


def _json(method: str, url: str, headers: dict[str, str], body: dict[str, str] | None = None) -> dict[str, Any]:
    answer = HTTP.request(method, url, headers=headers, json=body)
    assert answer.status == HTTPStatus.OK, answer.data
    found: dict[str, Any] = answer.json()
    return found
