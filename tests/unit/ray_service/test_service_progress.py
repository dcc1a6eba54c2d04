"""The states of a RayService, as KubeRay writes them, and when an update of it has ended."""

import asyncio
from typing import Any

import pytest

from components.ray_service import progress
from components.ray_service.progress import ServiceFailedError, failure_of, is_updated, state_of, until_serving
from testbed.fake_cluster import FakeCluster

pytestmark = pytest.mark.thorough

READY = {"type": "Ready", "status": "True", "reason": "NonZeroServeEndpoints", "message": ""}
STARTS = {"type": "Ready", "status": "False", "reason": "Initializing", "message": "RayService is initializing"}


def on(name: str, status: str, message: str = "") -> dict[str, Any]:
    """The status on one of its RayClusters, with an application `chat`."""
    application = {"status": status, "message": message, "serveDeploymentStatuses": {}}
    return {"rayClusterName": name, "applicationStatuses": {"chat": application}}


def service(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    status = {**status, **({"conditions": list(conditions)} if conditions else {})}
    return {"metadata": {"name": "chat", "namespace": "team-a"}, "status": status}


SERVES = service(READY, activeServiceStatus=on("chat-1", "RUNNING"))
DEPLOYS = service(READY, activeServiceStatus=on("chat-1", "DEPLOYING"))
FAILS = service(READY, activeServiceStatus=on("chat-1", "DEPLOY_FAILED", "No module named 'chat'"))
BROKEN = "DEPLOY_FAILED"
UPGRADES = service(READY, activeServiceStatus=on("chat-1", BROKEN), pendingServiceStatus=on("chat-2", "DEPLOYING"))
"""An incremental upgrade, for which KubeRay reports the applications of both RayClusters."""
ROLLS_BACK = service(
    READY,
    {"type": "RollbackInProgress", "status": "True", "reason": "TargetClusterChanged", "message": ""},
    activeServiceStatus=on("chat-1", "RUNNING"),
    pendingServiceStatus=on("chat-2", BROKEN),
)
"""The edit that takes a broken version back."""
REPLACES = service(
    READY, activeServiceStatus=on("chat-1", "RUNNING"), pendingServiceStatus={"rayClusterName": "chat-2"}
)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (service(), "the operator has not seen it yet"),
        (service(STARTS, pendingServiceStatus={"rayClusterName": "chat-1"}), "it does not serve; its next RayCluster"),
        (SERVES, "it serves"),
        (DEPLOYS, "it serves; application chat (active) is DEPLOYING"),
        (REPLACES, "it serves; its next RayCluster chat-2 is not ready"),
    ],
)
def test_its_state(body: dict[str, Any], state: str) -> None:
    assert state_of(body).startswith(state)


@pytest.mark.parametrize(
    ("body", "updated"),
    [(SERVES, True), (DEPLOYS, False), (FAILS, False), (REPLACES, False), (service(READY), False)],
)
def test_an_update_has_ended_when_all_applications_run_on_one_cluster(body: dict[str, Any], updated: bool) -> None:
    assert is_updated(body) is updated


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (SERVES, []),
        (DEPLOYS, []),
        (
            FAILS,
            [
                "has failed, and it still serves the version before:",
                "application chat (active) is DEPLOY_FAILED: No module named 'chat'",
            ],
        ),
        (
            service({**STARTS, "reason": "ValidationFailed", "message": "no head"}),
            ["has failed: ValidationFailed: no head"],
        ),
        (UPGRADES, []),
        (
            service(READY, activeServiceStatus=on("chat-1", "RUNNING"), pendingServiceStatus=on("chat-2", BROKEN)),
            [
                "has failed, and it still serves the version before:",
                "application chat (pending) is DEPLOY_FAILED",
            ],
        ),
        (ROLLS_BACK, []),
    ],
)
def test_why_this_version_will_not_serve(body: dict[str, Any], lines: list[str]) -> None:
    assert failure_of(body) == lines


def waited(monkeypatch: pytest.MonkeyPatch, *bodies: dict[str, Any], settled: float = 60) -> str:
    """The result of waiting, while KubeRay reports these states one after the other."""
    looks = list(bodies)
    monkeypatch.setattr(progress, "look_at", lambda *_: (body := looks.pop(0), state_of(body)))
    monkeypatch.setattr(progress, "_SETTLED_SECONDS", settled)
    return asyncio.run(until_serving(FakeCluster(), "team-a", "chat", "ray-system", 60, lambda _: None))


def test_a_state_that_may_be_that_of_the_version_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (SERVES, FAILS):
        with pytest.raises(IndexError):  # it looks again, and there is no further state
            waited(monkeypatch, before)


def test_afterwards_it_waits_until_the_service_serves_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, DEPLOYS, SERVES, settled=0) == "it serves"
    with pytest.raises(ServiceFailedError, match="No module named 'chat'"):
        waited(monkeypatch, FAILS, settled=0)
