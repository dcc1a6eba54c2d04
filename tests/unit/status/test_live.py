"""What is read of the cluster, with the rights of different accounts."""

from collections.abc import Callable
from typing import Any

import kubernetes
import pytest

from components.client import ClusterUnreachableError, ForbiddenError
from stacks.commands.status import live
from stacks.commands.status.live import look, namespace
from stacks.commands.status.snapshot import Body, Found

pytestmark = pytest.mark.unit

Serve = Callable[[Callable[[str, tuple[str, ...]], Body | None]], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Sets the API server's answer to each list: by its plural, or the client's method, and the names in its path."""

    def answers(answer: Callable[[str, tuple[str, ...]], Body | None]) -> None:
        def read(call: Any, *names: str, **_options: str) -> Body | None:
            kind = names[-1] if "custom_object" in call.__name__ else call.__name__.rpartition("namespaced_")[2]
            return answer(kind, names)

        monkeypatch.setattr(live, "read", read)
        monkeypatch.setattr(live, "connect", lambda _context: kubernetes.client.ApiClient())

    return answers


def one(kind: str, names: tuple[str, ...]) -> Body:
    """A list of one object, with the kind and the path by which it was asked for."""
    return {"items": [{"kind": kind, "path": names}]}


def test_everything_of_a_namespace_is_read(serve: Serve) -> None:
    serve(one)
    read = namespace(None, "team-a", "kueue")
    assert read.unreadable == {}
    assert read.all("rayjobs") == ({"kind": "rayjobs", "path": ("ray.io", "v1", "team-a", "rayjobs")},)
    assert read.all("pods") == ({"kind": "pod", "path": ("team-a",)},)
    assert read.all("resourcequotas")[0]["kind"] == "resource_quota"
    assert read.all("workloads")[0]["path"] == ("kueue.x-k8s.io", "v1beta2", "team-a", "workloads")
    assert namespace(None, "team-a", "volcano").all("podgroups")[0]["path"][1] == "v1beta1"
    assert set(namespace(None, "team-a", None).objects) == {
        *("rayclusters", "rayjobs", "rayservices", "pods", "events", "resourcequotas"),
    }


def test_a_kind_that_must_not_be_read_is_recorded_and_the_others_are_read(serve: Serve) -> None:
    def answer(kind: str, names: tuple[str, ...]) -> Body:
        if kind in ("resource_quota", "podgroups", "queues") or names[0] == "ray-system":
            raise ForbiddenError(f"{kind} is forbidden")
        return one(kind, names)

    serve(answer)
    shown = look(None, ["team-a"], "ray-system", "volcano")
    team = shown.namespaces["team-a"]
    assert team.unreadable == {"resourcequotas": "resource_quota is forbidden", "podgroups": "podgroups is forbidden"}
    assert len(team.all("rayclusters")) == 1
    assert shown.shared.unreadable == {"queues": "queues is forbidden"}
    assert shown.operator_pods is None


def test_a_cluster_without_kuberay_is_not_an_empty_one(serve: Serve) -> None:
    serve(lambda _kind, _names: None)
    read = namespace(None, "team-a", "volcano")
    assert set(read.unreadable) == {"rayclusters", "rayjobs", "rayservices"}
    assert read.unreadable["rayclusters"].endswith("is KubeRay installed, and is this the right context?")


def test_an_api_server_that_does_not_answer_is_an_error(serve: Serve) -> None:
    asked = []

    def answer(kind: str, _names: tuple[str, ...]) -> Body:
        asked.append(kind)
        raise ClusterUnreachableError("connection refused")

    serve(answer)
    with pytest.raises(ClusterUnreachableError, match="connection refused"):
        look(None, ["team-a", "team-b"], "ray-system", None)
    assert asked == ["pod"]


def test_queues_are_those_of_the_scheduler(serve: Serve) -> None:
    serve(one)
    assert look(None, [], "ray-system", None).shared == Found()
    kueue = look(None, [], "ray-system", "kueue")
    assert kueue.shared.all("clusterqueues")[0]["path"] == ("kueue.x-k8s.io", "v1beta2", "clusterqueues")
    assert kueue.operator_pods == ({"kind": "pod", "path": ("ray-system",)},)
