"""The last tests: the keys of a RayCluster are removed with it, also of one whose name KubeRay generates, and no
others."""

from typing import Any

import pytest

from testbed.failover.redis import Redis
from testbed.failover.stack import OTHER
from testbed.pods.platform import NAMESPACE, Platform, pods_cluster
from testbed.pods.steps import Steps

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

JOB = "survey"


def job() -> dict[str, Any]:
    """A job whose cluster has its tables in Redis and encrypts its connections, and stays after the job."""
    model = pods_cluster()
    head = {**model["head"], "rayStartParams": {**model["head"]["rayStartParams"], "num-cpus": "1"}}
    return {
        "name": JOB,
        "entrypoint": 'python -c "import ray; ray.init(); print(ray.get(ray.remote(lambda: 42).remote()))"',
        "submissionMode": "HTTPMode",
        "shutdownAfterJobFinishes": False,
        "waitFor": "succeeded",
        "waitTimeout": "15m",
        "cluster": {
            **{key: model[key] for key in ("rayVersion", "image")},
            "autoscaling": False,
            "faultTolerance": True,
            "tls": {},
            "head": head,
        },
    }


def of_the_namespace(keys: list[str]) -> list[str]:
    """Without the journals of gateways: that of a killed one expires after ten minutes (docs/redis-gateway.md)."""
    return [key for key in keys if NAMESPACE in key and not key.startswith("redis-gateway:")]


def test_a_removed_cluster_leaves_no_key(platform: Platform, redis: Redis) -> None:
    platform.stack.edit(lambda settings: settings["tenants"][0].update(clusters=[], services=[]))
    platform.stack.up()
    left = redis.keys()
    assert not of_the_namespace(left)
    assert [key for key in left if key.startswith(f"RAY{OTHER}.")]


def test_a_job_has_keys_of_its_own_which_are_removed_with_it(platform: Platform, redis: Redis, steps: Steps) -> None:
    platform.stack.edit(lambda settings: settings["tenants"][0].update(jobs=[job()]))
    with steps.step("`pulumi up` of a job with fault tolerance and TLS"):
        platform.stack.up()
    (cluster,) = platform.kubectl("get", "rayclusters", "-n", NAMESPACE, "-o", "name").split()
    found = redis.keys()
    keys = [key for key in found if key.startswith(f"RAY{NAMESPACE}.")]
    assert keys
    assert {key.partition("@")[0] for key in keys} == {f"RAY{NAMESPACE}.{JOB}.{cluster.rpartition('/')[2]}"}
    platform.stack.edit(lambda settings: settings["tenants"][0].update(jobs=[]))
    with steps.step("`pulumi up` without the job"):
        assert "may remain in Redis" not in platform.stack.up().output
    left = redis.keys()
    assert not of_the_namespace(left)
    assert [key for key in left if key.startswith(f"RAY{OTHER}.")]
