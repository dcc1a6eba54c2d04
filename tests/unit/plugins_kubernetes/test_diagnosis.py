"""Reasons why an object is not ready."""

from typing import Any, cast

from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.diagnosis import explain
from local.plugins.kubernetes.objects import Kind


class Listed:
    """A cluster with these objects, whatever is asked for."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self.objects = objects

    def list(self, kind: Kind, *_: str, **__: str) -> list[dict[str, Any]]:
        return self.objects.get(kind.kind, [])


def test_warnings_about_its_pods_are_reasons_too() -> None:
    pod = {"metadata": {"name": "web-1", "uid": "2"}}
    warning = {"involvedObject": {"kind": "Pod", "name": "web-1", "uid": "2"}, "reason": "FailedScheduling"}
    other = {"involvedObject": {"kind": "Pod", "name": "shop-1", "uid": "3"}, "reason": "BackOff"}
    deployment = {
        "metadata": {"namespace": "team", "name": "web", "uid": "1"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }
    events = [warning | {"message": "0/4 nodes are available"}, other]
    cluster = cast("Cluster", Listed(Pod=[pod], Event=events))
    assert explain(cluster, deployment) == ["Pod web-1: [FailedScheduling] 0/4 nodes are available"]
