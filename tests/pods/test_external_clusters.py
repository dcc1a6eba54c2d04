"""A job of the stack on a Ray cluster that neither the stack nor KubeRay knows, on real pods at level restricted."""

from typing import Any

import pytest
import yaml

from components.ray_job.manifests import SUBMITTER
from local.images import RAY
from testbed.pods.platform import NAMESPACE, SMALL, Platform
from testbed.pods.steps import Steps

pytestmark = [pytest.mark.pods, pytest.mark.timeout(400, func_only=True)]

LABORATORY, TOKEN = "laboratory", "a-token-of-the-laboratory"

RAY_START = (
    "ray start --head --block --dashboard-host=0.0.0.0 --object-store-memory=100000000 --num-cpus=1 --num-gpus=3"
)


def ray_start() -> list[dict[str, Any]]:
    """A pod in which somebody has started Ray, and its Service; and the tenant's Secrets with its token and another."""
    token = [{"name": "RAY_AUTH_MODE", "value": "token"}, {"name": "RAY_AUTH_TOKEN", "value": TOKEN}]
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000}
    container = {
        "name": "ray",
        "image": RAY.reference,
        "command": RAY_START.split(),
        "env": token,
        "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "3Gi"}},
        "securityContext": restricted,
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    metadata = {"name": "ray", "namespace": LABORATORY, "labels": {"app": "ray"}}
    ports = [{"port": 8265}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], "securityContext": security},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": "ray"}, "ports": ports},
        },
        *(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "stringData": {"auth_token": value},
            }
            for name, value in (("right", TOKEN), ("wrong", "another-token"))
        ),
    ]


def test_a_job_runs_on_a_cluster_that_somebody_has_started_and_a_wrong_token_is_reported(
    without_clusters: Platform, steps: Steps
) -> None:
    platform = without_clusters
    platform.create_namespace(LABORATORY)
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump_all(ray_start()))
    address = f"http://ray.{LABORATORY}.svc:8265"

    def external(name: str) -> dict[str, Any]:
        secret = {"name": name, "key": "auth_token"}
        return {"name": f"with-{name}", "dashboardAddress": address, "image": RAY.reference, "tokenSecret": secret}

    def run_there(settings: dict[str, Any]) -> None:
        tenant = settings["tenants"][0]
        tenant["externalClusters"] = [external("right"), external("wrong")]
        count = "import ray; ray.init(); print('GPUs there', ray.cluster_resources()['GPU'])"
        there = {"name": "there", "entrypoint": f'python -c "{count}" && echo "$((6 * 7)) there"'}
        submitter = {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}}
        on_it = {"externalCluster": "with-right", "submitterPodTemplate": submitter, "waitFor": "succeeded"}
        tenant["jobs"] = [{**there, **on_it}]

    platform.stack.edit(run_there)
    with steps.step("`pulumi up`: a wrong token"):
        failed = platform.stack.up(fails=True)
    assert f"with-wrong at {address} refuses the token" in failed.output
    platform.stack.edit(lambda settings: settings["tenants"][0]["externalClusters"].pop())
    with steps.step("`pulumi up`: a job on an external cluster"):
        platform.stack.up()
    outputs = platform.stack.outputs()
    cluster = outputs["clusters"][f"{NAMESPACE}/with-right"]
    assert (cluster["state"], cluster["greatestGpus"], cluster["jobsUrl"]) == ("ready", 3, address)
    assert outputs["jobs"][f"{NAMESPACE}/there"]["status"] == "SUCCEEDED"
    log = platform.kubectl("logs", "-n", NAMESPACE, "job/there-external")
    assert "GPUs there 3.0" in log
    assert "42 there" in log
    platform.kubectl("delete", "namespace", LABORATORY, "--wait=false")
    assert TOKEN not in log + failed.output + platform.stack.pulumi("stack", "export").output
