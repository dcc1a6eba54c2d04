"""A RayService of the stack on real pods, in a namespace at level restricted: it answers during updates."""

import json
from typing import Any

import pytest

from components.monitoring.metrics import KubeRay
from components.ray_service.settings import SERVICE_LABEL
from testbed.pods import serving
from testbed.pods.platform import NAMESPACE, Platform
from testbed.pods.serving import CLIENTS, NAME, asked, service
from testbed.pods.steps import Steps, until
from testbed.serve_configs import ACCEPTED, REFUSED

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(900, func_only=True)]

REQUESTS = 1000

JUDGE = """
    import json, sys
    from ray.serve.schema import ServeDeploySchema
    refused = []
    for name, config in json.load(sys.stdin).items():
        try:
            ServeDeploySchema.model_validate(config)
        except ValueError:
            refused.append(name)
    print(json.dumps(refused))
"""


def serve(platform: Platform, *, fails: bool = False, **versions: str) -> str:
    """Another version of the service, instead of the jobs of other files. Returns the output of `up`."""

    def edit(settings: dict[str, Any]) -> None:
        (tenant,) = settings["tenants"]
        tenant |= {
            "jobs": [],
            "jobTemplates": [],
            "users": [],
            "services": [service(**versions)],
            "network": {"serveFrom": [CLIENTS]},
        }

    platform.stack.edit(edit)
    return platform.stack.pulumi("up", "--yes", "--skip-preview", fails=fails).output


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Platform:
    """The stack with the service, and a client in another namespace; `up` ends when the service answers."""
    serving.prepare(without_clusters)
    with steps.step("`pulumi up` of a service, until it answers"):
        serve(without_clusters, version="1")
    return without_clusters


def status(platform: Platform) -> dict[str, Any]:
    body = json.loads(platform.kubectl("get", "rayservice", "-n", NAMESPACE, NAME, "-o", "json"))
    found: dict[str, Any] = body.get("status", {})
    return found


def active(platform: Platform) -> str:
    return str(status(platform)["activeServiceStatus"]["rayClusterName"])


def clusters(platform: Platform) -> list[str]:
    found = platform.kubectl("get", "rayclusters", "-n", NAMESPACE, "-l", f"{SERVICE_LABEL}={NAME}", "-o", "name")
    return [name.partition("/")[2] for name in found.split()]


def requests_are_lost_neither_with_another_config_nor_with_another_cluster(platform: Platform, steps: Steps) -> None:
    first = active(platform)
    with asked(platform) as answers:
        with steps.step("`pulumi up` of another Serve config, until it is served"):
            serve(platform, version="2")
        assert active(platform) == first
        with steps.step("`pulumi up` of another RayCluster, until it serves"):
            serve(platform, version="3", level="2")
        assert active(platform) != first
        until(lambda: clusters(platform) == [active(platform)], "the first RayCluster is gone")
    assert answers.others == {}, "each request gets the answer of a version, or is refused without the key"
    assert set(answers.served) == {"1", "2", "3"}
    assert sum(answers.served.values()) >= REQUESTS
    assert answers.refused >= REQUESTS / 10


def the_operator_has_the_metrics_by_which_alerts_judge_services_and_clusters(platform: Platform) -> None:
    ready = platform.metric_of_operator(KubeRay.SERVICE_READY)[NAME]
    assert (ready["namespace"], ready["condition"]) == (NAMESPACE, "true")
    provisioned = platform.metric_of_operator(KubeRay.CLUSTER_PROVISIONED)[active(platform)]
    assert provisioned.items() >= {("namespace", NAMESPACE), ("condition", "true")}
    assert "uid" in provisioned


def a_version_that_fails_is_reported_and_the_one_before_answers(platform: Platform, steps: Steps) -> None:
    with steps.step("`pulumi up` of a Serve config that fails"):
        output = serve(platform, fails=True, version="", level="2")
    assert f"RayService {NAMESPACE}/{NAME} has failed, and it still serves the version before" in output
    assert "the version is not set" in output
    with asked(platform) as answers:
        pass
    assert set(answers.served) == {"3"}


def ray_judges_serve_configs_as_check_does(platform: Platform) -> None:
    (head,) = platform.pods(f"{SERVICE_LABEL}={NAME},ray.io/node-type=head", NAMESPACE)
    judging = platform.start_in(head, "ray-head", JUDGE)
    output, _ = judging.communicate(json.dumps({**ACCEPTED, **REFUSED}), timeout=60)
    assert sorted(json.loads(output.splitlines()[-1])) == sorted(REFUSED)


def test_a_service_of_a_stack_answers_during_updates(platform: Platform, steps: Steps) -> None:
    requests_are_lost_neither_with_another_config_nor_with_another_cluster(platform, steps)
    the_operator_has_the_metrics_by_which_alerts_judge_services_and_clusters(platform)
    a_version_that_fails_is_reported_and_the_one_before_answers(platform, steps)
    ray_judges_serve_configs_as_check_does(platform)
