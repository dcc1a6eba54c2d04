"""The cluster in memory answers as an API server does."""

import pytest

from components.cluster import ConflictError, ForbiddenError
from testbed.fake_cluster import FakeCluster


def pod(name: str, namespace: str = "team-a", **labels: str) -> dict[str, object]:
    metadata = {"namespace": namespace, "name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def test_objects_are_read_and_listed_by_namespace_and_label() -> None:
    cluster = FakeCluster(pod("one", role="head"), pod("two", role="worker"), pod("one", "team-b"))
    assert cluster.get("v1", "pods", "team-a", "one") == pod("one", role="head")
    assert cluster.get("v1", "pods", "team-a", "three") is None

    def names(labels: str, namespace: str | None = "team-a") -> list[str]:
        return [each["metadata"]["name"] for each in cluster.list("v1", "pods", namespace, labels=labels) or ()]

    assert names("") == ["one", "two"]
    assert names("", None) == ["one", "two", "one"]
    assert names("role=head") == names("role in (head,none)") == ["one"]
    assert names("!role", None) == ["one"]
    assert [each["metadata"]["name"] for each in cluster.list("v1", "pods", fields="metadata.name=two") or ()] == [
        "two"
    ]


def test_only_kinds_that_are_served_have_a_list() -> None:
    cluster = FakeCluster()
    assert cluster.list("v1", "events", "team-a") == ()
    assert cluster.list("ray.io/v1", "rayclusters") is None
    cluster.served.add("rayclusters")
    assert cluster.list("ray.io/v1", "rayclusters") == ()


def test_objects_are_changed_and_the_changes_recorded() -> None:
    cluster = FakeCluster(pod("one"))
    cluster.patch("v1", "pods", "team-a", "one", {"spec": {"a": 1}, "metadata": {"labels": None}})
    cluster.patch("v1", "pods", "team-a", "one", [{"op": "add", "path": "/spec/b", "value": [2]}])
    with pytest.raises(ConflictError):
        cluster.patch("v1", "pods", "team-a", "one", [{"op": "test", "path": "/spec/a", "value": 2}])
    assert cluster.get("v1", "pods", "team-a", "one") == {
        **pod("one"),
        "metadata": {"namespace": "team-a", "name": "one"},
        "spec": {"a": 1, "b": [2]},
    }
    cluster.request("DELETE", "/api/v1/namespaces/team-a/pods/one")
    cluster.request("POST", "/api/v1/namespaces/team-a/pods", body=pod("two"))
    assert list(cluster.objects) == ["/api/v1/namespaces/team-a/pods/two"]
    assert [each.method for each in cluster.changes] == ["PATCH", "PATCH", "PATCH", "DELETE", "POST"]


def test_errors_are_raised_on_demand() -> None:
    cluster = FakeCluster(pod("one"))
    cluster.fail(ForbiddenError("no"), "PATCH /api")
    assert cluster.get("v1", "pods", "team-a", "one")
    with pytest.raises(ForbiddenError):
        cluster.patch("v1", "pods", "team-a", "one", {})
