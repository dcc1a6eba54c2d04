"""The resources that a stack registers for a RayCluster to adopt, and for its namespace."""

from pathlib import Path

import pytest

from stacks.load import parse
from stacks.program.build import build
from testbed.recorder import Recorder, record

CLUSTER = {"rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "cpu"}}


@pytest.fixture
def built(kubectl_that_renders: Path) -> Recorder:
    stack = {
        "operator": {"location": "config/default"},
        "nodes": [{"pool": "cpu", "count": 1, "cpu": 8, "memory": "64Gi"}],
        "tenants": [
            {
                "name": "team",
                "namespace": "research",
                "createNamespace": False,
                "clusters": [{"name": "old", "adopt": True, **CLUSTER}, {"name": "new", **CLUSTER}],
            }
        ],
    }
    return record(lambda: build(parse(stack)))


def test_it_is_imported_and_others_are_made(built: Recorder) -> None:
    imported = {each.name: each.import_id for each in built.registered.values() if each.import_id}
    assert imported == {"research/old-ray-cluster": "research/old"}


def test_its_namespace_is_used_and_not_owned(built: Recorder) -> None:
    namespaces = [
        each.inputs["metadata"]["name"] for each in built.registered.values() if each.type.endswith("Namespace")
    ]
    assert "research" not in namespaces
    assert built.registered["research/new-ray-cluster"].inputs["metadata"]["namespace"] == "research"
