"""The status of a RayService with its applications."""

from typing import Any

from components.ray_service.applications import Application
from core.body import Body
from stacks.commands.status.clusters import ClusterStatus
from stacks.commands.status.owners import ServiceStatus, service_status
from stacks.commands.status.snapshot import Live
from tests.unit.status.live import MADE, NOW, READY, STARTING, cluster, condition, found, metadata, ray_cluster, warning

SERVES = {
    "serviceStatus": "Running",
    "numServeEndpoints": 2,
    "conditions": [condition("Ready", "True"), condition("UpgradeInProgress", "False")],
}


def on(name: str, status: str, message: str = "", **deployments: str) -> dict[str, Any]:
    """The status of a service on one of its RayClusters, with an application `chat`."""
    states = {each: {"status": state} for each, state in deployments.items()}
    application = {"status": status, "message": message, "serveDeploymentStatuses": states}
    return {"rayClusterName": name, "applicationStatuses": {"chat": application}}


def service(**status: Any) -> Body:
    return {"metadata": metadata("chat"), "spec": {}, "status": status}


def shown(body: Body, *clusters: ClusterStatus, **objects: Any) -> ServiceStatus:
    return service_status(body, found(**objects), Live(NOW, {}), {each.name: each for each in clusters})


def test_a_service_that_serves() -> None:
    serves = shown(service(**SERVES, activeServiceStatus=on("chat-1", "RUNNING", model="HEALTHY")))
    assert (serves.ok, serves.status, serves.endpoints, serves.age) == (True, "Running", 2, 7200)
    assert serves.clusters == {"active": "chat-1"}
    assert serves.applications == (Application("chat", "active", "RUNNING", "", (("model", "HEALTHY", ""),)),)
    assert serves.reasons == ()


def test_an_application_that_fails_has_its_message_and_its_deployments() -> None:
    status = on("chat-1", "DEPLOY_FAILED", "No module named 'model'", model="UNHEALTHY", router="HEALTHY")
    fails = shown(service(**SERVES, activeServiceStatus=status))
    assert not fails.ok
    assert fails.reasons == (
        "application chat (active) is DEPLOY_FAILED: No module named 'model'",
        "application chat (active), deployment model is UNHEALTHY: no message",
    )


def test_a_service_that_does_not_serve_names_condition_cluster_and_warning() -> None:
    waits = service(
        conditions=[condition("Ready", "False", "RayService is initializing", "Initializing")],
        pendingServiceStatus={"rayClusterName": "chat-1"},
    )
    event = warning("chat", "invalid serveConfigV2", kind="RayService")
    found_out = shown(waits, cluster(ray_cluster("chat-1", *STARTING)), events=[event])
    assert not found_out.ok
    assert found_out.clusters == {"pending": "chat-1"}
    assert found_out.reasons[0] == "Ready is False: Initializing: RayService is initializing"
    assert (
        "its pending RayCluster chat-1 is not ready: HeadPodReady is False: containers not ready" in found_out.reasons
    )
    assert found_out.reasons[-1] == "RayService chat: R: invalid serveConfigV2"


def test_a_service_serves_while_its_update_is_not_ready() -> None:
    updates = service(
        **SERVES,
        activeServiceStatus=on("chat-1", "RUNNING"),
        pendingServiceStatus=on("chat-2", "DEPLOYING"),
    )
    upgraded = shown(updates, cluster(ray_cluster("chat-1", *READY)), cluster(ray_cluster("chat-2", *STARTING)))
    assert upgraded.ok
    assert upgraded.reasons[0] == "application chat (pending) is DEPLOYING"


def test_without_conditions_the_older_field_decides() -> None:
    assert shown(service(serviceStatus="Running")).ok
    assert not shown(service(serviceStatus="")).ok


def test_a_service_that_the_operator_has_not_seen_or_that_is_deleted() -> None:
    assert shown(service()).reasons == (
        "the operator has not looked at it: does it run, and does it watch the namespace?",
    )
    deleted = {**service(**SERVES), "metadata": metadata("chat", deletionTimestamp=MADE)}
    assert (shown(deleted).ok, shown(deleted).reasons[0]) == (False, f"it is being deleted since {MADE}")
