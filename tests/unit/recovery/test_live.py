"""Which objects exist in the cluster, and which belong to the stack."""

from typing import Any

import pytest

from stacks.commands.recover.deployment import Candidate
from stacks.commands.recover.repair import is_own, look
from testbed.fake_cluster import FakeCluster

OURS = "pulumi-ray-platform-dev"


def candidate(manager: str = OURS) -> Candidate:
    return Candidate({"urn": "one"}, "v1", "ConfigMap", "team-a", "one", manager)


def live(marked: str | None, *managers: str) -> dict[str, Any]:
    annotations = {"pulumi.com/patchFieldManager": marked} if marked else {}
    return {"metadata": {"annotations": annotations, "managedFields": [{"manager": each} for each in managers]}}


@pytest.mark.parametrize("managers", [["pulumi-kubernetes"], [OURS], ["kube-controller-manager", OURS]])
def test_an_object_that_this_stack_created_is_its_own(managers: list[str]) -> None:
    assert is_own(candidate(), live(OURS, *managers))


@pytest.mark.parametrize(
    ("marked", "managers"),
    [
        (None, ["kubectl-client-side-apply"]),
        (None, ["pulumi-kubernetes"]),
        ("pulumi-ray-platform-prod", ["pulumi-kubernetes"]),
        (OURS, ["kubectl-create"]),
    ],
    ids=["kubectl's", "another project's", "another stack's", "a copy that kubectl made"],
)
def test_an_object_that_somebody_else_created_is_not(marked: str | None, managers: list[str]) -> None:
    assert not is_own(candidate(), live(marked, *managers))


def test_an_object_without_the_stacks_field_manager_belongs_to_no_stack() -> None:
    assert not is_own(candidate(manager=""), live(None, "pulumi-kubernetes"))


KINDS = [
    {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    {"name": "namespaces/status", "kind": "Namespace", "namespaced": False},
    {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
]


def test_each_object_is_looked_up_where_the_api_server_has_its_kind() -> None:
    def configmap(name: str, manager: str, **metadata: str) -> tuple[Candidate, dict[str, Any]]:
        body = live(OURS, manager)
        body["metadata"] |= {"namespace": "team-a", "name": name, **metadata}
        return Candidate({"urn": name}, "v1", "ConfigMap", "team-a", name, OURS), {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            **body,
        }

    own, foreign = configmap("own", "pulumi-kubernetes"), configmap("foreign", "kubectl")
    deleted = configmap("deleted", OURS, deletionTimestamp="2026-01-01T00:00:00Z")
    namespace = Candidate({"urn": "team-a"}, "v1", "Namespace", "", "team-a", OURS)
    created = {"apiVersion": "v1", "kind": "Namespace", **live(OURS, OURS)}
    created["metadata"]["name"] = "team-a"
    missing = Candidate({"urn": "missing"}, "v1", "ConfigMap", "team-a", "missing", OURS)
    unknown = Candidate({"urn": "unknown"}, "ray.io/v1", "RayCluster", "team-a", "training", OURS)
    cluster = FakeCluster(own[1], foreign[1], deleted[1], created)
    cluster.objects["/api/v1"] = {"resources": KINDS}
    found = look(cluster, [own[0], foreign[0], deleted[0], namespace, missing, unknown])
    assert (found.own, found.foreign, found.deleting) == ([own[0], namespace], [(foreign[0], "kubectl")], [deleted[0]])
    assert [each.path for each in cluster.requests].count("/api/v1") == 1


def test_without_objects_no_cluster_is_needed() -> None:
    cluster = FakeCluster()
    assert look(cluster, []).own == []
    assert cluster.requests == []
