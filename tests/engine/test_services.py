"""A RayService of a live stack: its RayCluster, and which edits replace it.

Simulated pods never serve, so KubeRay promotes no RayCluster here, and no request is answered: tests/pods/
test_ray_services.py shows both.
"""

import copy
from typing import Any

import pytest

from components.ray_service.settings import SERVICE_LABEL
from local.rehearsal import Rehearsal
from testbed.platform_stack import WORKERS, Rays, Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE, NAME = "team-a", "chat"

LABEL = f"{SERVICE_LABEL}={NAME}"

NOWHERE = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
"""A head on no node: KubeRay does nothing more with a RayService whose head is Ready and does not answer."""


@pytest.fixture(scope="module")
def services(cluster: Rehearsal) -> Rays:
    return Rays(cluster, "rayservices")


def service(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["tenants"][0]["services"][0]
    return found


def add(settings: dict[str, Any]) -> None:
    image = {key: training(settings)[key] for key in ("rayVersion", "image")}
    config = {"applications": [{"import_path": "chat:app"}]}
    settings["tenants"][0]["services"] = [
        {
            "name": NAME,
            "serveConfigV2": config,
            "cluster": {**image, "head": copy.deepcopy(NOWHERE), "workerGroups": [{**WORKERS, **NOWHERE}]},
        }
    ]


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Stack:
    """The dev stack. Each test needs `up`."""
    return stack_on_operator("dev")


@pytest.fixture
def up(dev: Stack) -> Stack:
    """The dev stack with a RayService, after `pulumi up`."""
    return dev.settle(add)


def pending(services: Rays) -> str | None:
    """Name of the RayCluster that KubeRay starts for the service."""
    status = services.read(NAMESPACE, NAME).get("status") or {}
    name: str | None = (status.get("pendingServiceStatus") or {}).get("rayClusterName")
    return name


def test_it_gets_a_cluster_with_its_label(up: Stack, rays: Rays) -> None:
    until(lambda: rays.named(NAMESPACE, LABEL), "KubeRay has created its RayCluster")
    assert rays.exists(NAMESPACE, "training")
    up.changes_nothing(refreshed=True)


def another_serve_config_keeps_the_cluster_and_another_cluster_does_not(up: Stack, services: Rays, rays: Rays) -> None:
    until(lambda: pending(services), "KubeRay has created its RayCluster")
    first = pending(services)
    up.edit(lambda settings: service(settings)["serveConfigV2"]["applications"][0].update(args={"version": "2"}))
    assert "1 to update" in up.pulumi("preview").output
    up.up()
    seen = services.read(NAMESPACE, NAME)
    assert "version: '2'" in seen["spec"]["serveConfigV2"]
    up.edit(lambda settings: service(settings)["cluster"].update(env={"LEVEL": "2"}))
    up.up()
    until(lambda: pending(services) not in (None, first), "KubeRay starts another RayCluster")
    until(lambda: len(rays.named(NAMESPACE, LABEL)) == 2, "it exists beside the first")
    # Had the Serve config replaced the RayCluster, there would be three until a minute has passed.
    assert first in {each["metadata"]["name"] for each in rays.named(NAMESPACE, LABEL)}


def it_goes_with_its_entry_and_leaves_nothing(up: Stack, services: Rays, rays: Rays) -> None:
    up.edit(lambda settings: settings["tenants"][0].pop("services"))
    up.up()
    assert not services.exists(NAMESPACE, NAME)
    until(lambda: not rays.named(NAMESPACE, LABEL), "its RayClusters are deleted")
    assert rays.exists(NAMESPACE, "training")


@pytest.mark.thorough
def test_a_service_is_edited_and_goes_with_its_entry(up: Stack, services: Rays, rays: Rays) -> None:
    another_serve_config_keeps_the_cluster_and_another_cluster_does_not(up, services, rays)
    it_goes_with_its_entry_and_leaves_nothing(up, services, rays)
