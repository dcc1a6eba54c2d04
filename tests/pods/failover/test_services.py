"""A RayService whose GCS is in Redis and whose processes use TLS: its worker answers while the head is replaced."""

from typing import Any

import pytest

from components.ray_service.settings import SERVICE_LABEL
from testbed.failover.stack import WORKER
from testbed.pods import serving
from testbed.pods.node import is_ready
from testbed.pods.platform import NAMESPACE, Platform
from testbed.pods.serving import CLIENTS, NAME, asked, service
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(400, func_only=True)]


def serve(platform: Platform, version: str) -> None:
    """A version of the service, with all replicas on a worker, where requests go to the worker alone."""
    found = service(version)
    found["excludeHeadPodFromServeSvc"] = True
    # The first request to another deployment waits for the head.
    found["serveConfigV2"]["applications"][0]["import_path"] = "chat:build_model"
    found["cluster"] |= {"faultTolerance": True, "tls": {}, "workerGroups": [WORKER]}
    found["cluster"]["head"]["rayStartParams"]["num-cpus"] = "0"

    def edit(settings: dict[str, Any]) -> None:
        settings["tenants"][0] |= {"services": [found], "network": {"serveFrom": [CLIENTS]}}

    platform.stack.edit(edit)
    platform.stack.up()


def pods(platform: Platform, kind: str) -> dict[str, dict[str, Any]]:
    return platform.pods(f"{SERVICE_LABEL}={NAME},ray.io/node-type={kind}", NAMESPACE)


def test_no_request_is_lost_with_the_head_and_the_next_head_serves_another_version(
    platform: Platform, steps: Steps
) -> None:
    serving.prepare(platform)
    platform.stack.edit(lambda settings: settings["tenants"][0].update(clusters=[]))
    platform.stack.up()  # the node has no CPU for both
    with steps.step("`pulumi up` of a service with fault tolerance and TLS, until it answers"):
        serve(platform, "1")
    (head,), workers = pods(platform, "head"), pods(platform, "worker")
    with asked(platform) as answers, steps.step("the head of a service is lost, until the next is ready"):
        platform.kubectl("delete", "pod", "-n", NAMESPACE, head, "--grace-period=0", "--force")
        until(lambda: any(is_ready(pod) for name, pod in pods(platform, "head").items() if name != head), "a new head")
    assert answers.others == {}, "each request gets the answer of the version, or is refused without the key"
    assert answers.served["1"] + answers.refused > 100
    with asked(platform) as answers, steps.step("`pulumi up` of another Serve config, by the next head"):
        serve(platform, "2")
    assert answers.others == {}
    assert set(answers.served) == {"1", "2"}
    assert set(pods(platform, "worker")) == set(workers)
