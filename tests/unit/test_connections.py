"""A kubeconfig with another path, context or token leads to the same cluster: dynamic resources store the connection
with which they are deleted, and apply nothing again."""

import sys
from typing import Any

import pytest
from pulumi.dynamic import ResourceProvider

from components.dynamic.definitions import DefinitionsProvider
from components.dynamic.generated import PasswordProvider as Password
from components.dynamic.guards import CrdGuardProvider
from components.dynamic.guards import QueueGuardProvider as QueueGuard
from components.dynamic.guards import TenantGuardProvider as TenantGuard
from components.dynamic.pod_group import PodGroupProvider as PodGroup
from components.dynamic.redis_keys import RedisCleanUpProvider as CleanUp
from components.dynamic.rollout import RolloutProvider as Rollout
from testbed.fake_cluster import FakeCluster

BEFORE: dict[str, Any] = {"connection": {"context": "prod"}}
AFTER = {"connection": {"context": "prod-renamed"}}
PODS = {"namespace": "team-a", "cluster": "training", "strategy": "onIdle", "limit": 60, "rayVersion": "2.60.0"}
DESIRED = {**PODS, "parts": {"head": {}, "groups": {}}, "workersOutliveHead": False}


@pytest.fixture(autouse=True)
def tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The providers switch them off in their process; Pulumi's SDK needs them in programs of later tests."""
    monkeypatch.setattr(sys, "tracebacklimit", 1000, raising=False)


@pytest.mark.parametrize(
    "provider",
    [TenantGuard(), QueueGuard(), CrdGuardProvider("Sea"), CleanUp(), DefinitionsProvider(CrdGuardProvider("Sea"))],
)
def test_what_is_deleted_with_a_connection_stores_the_new_one(
    provider: ResourceProvider, in_memory: FakeCluster
) -> None:
    props = {"owner": "Sea", "release": "1", "definitions": {}, "applied": {}, "fieldManager": "us"}
    diff = provider.diff("id", {**props, **BEFORE}, {**props, **AFTER})
    assert (diff.changes, diff.replaces or []) == (True, [])
    outs = provider.update("id", {**props, **BEFORE}, {**props, **AFTER}).outs
    assert (outs or {})["connection"] == AFTER["connection"]
    assert in_memory.requests == []


def test_definitions_are_not_applied_again(in_memory: FakeCluster) -> None:
    props = {"definitions": {"boats.sea.example": "digest"}, "applied": {"boats.sea.example": "fields"}}
    props |= {"owner": "Sea", "release": "1", "fieldManager": "us"}  # type: ignore[dict-item]
    done = DefinitionsProvider(CrdGuardProvider("Sea")).update("id", {**props, **BEFORE}, {**props, **AFTER})
    assert done.outs == {**props, **AFTER}
    assert in_memory.requests == []


@pytest.mark.parametrize("provider", [PodGroup(), Password(), Rollout()])
def test_what_is_deleted_without_a_connection_does_not_change(provider: ResourceProvider) -> None:
    diff = provider.diff("id", {**DESIRED, **BEFORE}, {**DESIRED, **AFTER})
    assert (diff.changes, diff.replaces or []) == (False, [])


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "ray-system", "name": "kuberay-operator"},
}


def test_a_preview_says_which_missing_deployment_the_update_of_the_guard_creates_again(
    in_memory: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", said.append)
    props = {**BEFORE, "resources": [], "deployments": [DEPLOYMENT], "fieldManager": "us"}
    guard = CrdGuardProvider("KubeRay")
    assert guard.diff("id", props, props).changes
    assert said == ["Deployment ray-system/kuberay-operator is missing: `pulumi up` creates it again"]
    in_memory.add(DEPLOYMENT)
    assert not guard.diff("id", props, props).changes
    assert len(said) == 1
