"""Jobs of the stack on Ray clusters that neither the stack nor KubeRay knows: one in a pod of another namespace, and
one outside of Kubernetes. The pods that submit are real, at level restricted."""

from typing import Any

import pytest
import yaml

from components.ray_job.manifests import SUBMITTER
from local.images import RAY
from local.images.ray import VERSION
from testbed.pods.laboratory import ADDRESS, RAY_START, laboratory
from testbed.pods.platform import NAMESPACE, SMALL, Platform
from testbed.pods.steps import Steps

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(400, func_only=True)]

LABORATORY, TOKEN = "laboratory", "a-token-of-the-laboratory"

WITH_TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}

IN_A_POD, OUTSIDE = f"http://ray.{LABORATORY}.svc:8265", f"http://{ADDRESS}:8265"

GPUS = {"in-a-pod": 3, "outside": 2}
"""GPUs that the clusters report; they are counted, and not there."""


def ray_start() -> list[dict[str, Any]]:
    """A pod in which somebody has started Ray, and its Service; and the tenant's Secrets with its token and another."""
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000}
    container = {
        "name": "ray",
        "image": RAY.reference,
        "command": [*RAY_START, "--dashboard-host=0.0.0.0", f"--num-gpus={GPUS['in-a-pod']}"],
        "env": [{"name": name, "value": value} for name, value in WITH_TOKEN.items()],
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


def external(name: str, address: str, secret: str, **more: Any) -> dict[str, Any]:
    token = {"name": secret, "key": "auth_token"}
    return {"name": name, "dashboardAddress": address, "image": RAY.reference, "tokenSecret": token, **more}


def test_jobs_run_on_clusters_that_somebody_has_started_and_a_wrong_token_is_reported(
    without_clusters: Platform, steps: Steps
) -> None:
    platform = without_clusters
    platform.create_namespace(LABORATORY)
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump_all(ray_start()))

    def run_there(settings: dict[str, Any]) -> None:
        tenant = settings["tenants"][0]
        outside = external("outside", OUTSIDE, "right", plainToken=True, rayVersion=VERSION)
        tenant["externalClusters"] = [
            external("in-a-pod", IN_A_POD, "right"),
            outside,
            external("wrong", IN_A_POD, "wrong"),
        ]
        count = "import ray; ray.init(); print('GPUs there', ray.cluster_resources()['GPU'])"
        submitter = {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}}
        job = {
            "entrypoint": f'python -c "{count}" && echo "$((6 * 7)) there"',
            "submitterPodTemplate": submitter,
            "waitFor": "succeeded",
        }
        tenant["jobs"] = [{"name": f"job-{name}", "externalCluster": name, **job} for name in GPUS]

    platform.stack.edit(run_there)
    with laboratory(platform.rehearsal, [f"--num-gpus={GPUS['outside']}"], WITH_TOKEN):
        with steps.step("`pulumi up`: a wrong token"):
            failed = platform.stack.up(fails=True)
        assert f"wrong at {IN_A_POD} refuses the token" in failed.output
        platform.stack.edit(lambda settings: settings["tenants"][0]["externalClusters"].pop())
        with steps.step("`pulumi up`: jobs on two external clusters"):
            platform.stack.up()
    outputs = platform.stack.outputs()
    for (name, gpus), address in zip(GPUS.items(), (IN_A_POD, OUTSIDE), strict=True):
        cluster = outputs["clusters"][f"{NAMESPACE}/{name}"]
        assert (cluster["state"], cluster["largestGpus"], cluster["jobsUrl"]) == ("ready", gpus, address)
        assert outputs["jobs"][f"{NAMESPACE}/job-{name}"]["status"] == "SUCCEEDED"
        log = platform.kubectl("logs", "--follow", "-n", NAMESPACE, f"job/job-{name}-external")
        assert f"GPUs there {gpus}.0" in log
        assert "42 there" in log
        assert TOKEN not in log
    platform.kubectl("delete", "namespace", LABORATORY, "--wait=false")
    assert TOKEN not in failed.output + platform.stack.pulumi("stack", "export").output
