"""What is read of the cluster, with the rights of different accounts."""

from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, ForbiddenError
from core.body import Body
from stacks.commands.status.live import look, namespace
from stacks.commands.status.snapshot import Found
from testbed.fake_cluster import FakeCluster


class Lists(FakeCluster):
    """Each list has one object, with the path by which it was asked for."""

    def request(self, method: str, path: str, **options: Any) -> Body | None:
        super().request(method, path, **options)
        return {"items": [{"kind": path.rpartition("/")[2], "path": path}]}


def test_everything_of_a_namespace_is_read() -> None:
    read = namespace(Lists(), "team-a", "kueue")
    assert read.unreadable == {}
    assert read.all("rayjobs") == ({"kind": "rayjobs", "path": "/apis/ray.io/v1/namespaces/team-a/rayjobs"},)
    assert read.all("pods") == ({"kind": "pods", "path": "/api/v1/namespaces/team-a/pods"},)
    assert read.all("resourcequotas")[0]["kind"] == "resourcequotas"
    assert read.all("workloads")[0]["path"] == "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads"
    assert "v1beta1" in namespace(Lists(), "team-a", "volcano").all("podgroups")[0]["path"]
    assert set(namespace(Lists(), "team-a", None).objects) == {
        *("rayclusters", "rayjobs", "rayservices", "pods", "events", "resourcequotas"),
    }


def test_a_kind_that_must_not_be_read_is_recorded_and_the_others_are_read() -> None:
    cluster = Lists()
    for part in ("resourcequotas", "podgroups", "queues", "ray-system"):
        cluster.fail(ForbiddenError(f"{part} is forbidden"), part)
    shown = look(cluster, ["team-a"], "ray-system", "volcano")
    team = shown.namespaces["team-a"]
    assert team.unreadable == {"resourcequotas": "resourcequotas is forbidden", "podgroups": "podgroups is forbidden"}
    assert len(team.all("rayclusters")) == 1
    assert shown.shared.unreadable == {"queues": "queues is forbidden"}
    assert shown.operator_pods is None


def test_a_cluster_without_kuberay_is_not_an_empty_one() -> None:
    read = namespace(FakeCluster(), "team-a", "volcano")
    assert set(read.unreadable) == {"rayclusters", "rayjobs", "rayservices"}
    assert read.unreadable["rayclusters"].endswith("is KubeRay installed, and is this the right context?")


def test_an_api_server_that_does_not_answer_is_an_error() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("connection refused"))
    with pytest.raises(ClusterUnreachableError, match="connection refused"):
        look(cluster, ["team-a", "team-b"], "ray-system", None)
    assert [each.path for each in cluster.requests] == ["/api/v1/namespaces/ray-system/pods"]


def test_queues_are_those_of_the_scheduler() -> None:
    assert look(Lists(), [], "ray-system", None).shared == Found()
    kueue = look(Lists(), [], "ray-system", "kueue")
    assert kueue.shared.all("clusterqueues")[0]["path"] == "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    assert kueue.operator_pods == ({"kind": "pods", "path": "/api/v1/namespaces/ray-system/pods"},)
