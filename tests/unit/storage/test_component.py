"""How a tenant's storage is provisioned: its order, and what Pulumi keeps."""

from pathlib import Path
from typing import Any

import pytest

from stacks.load import parse
from stacks.program.build import build
from testbed.recorder import Recorder, record

SOURCES: list[dict[str, Any]] = [
    {"name": "models", "storageClass": "shared", "size": "1Ti"},
    {"name": "cache", "storageClass": "shared", "size": "1Ti", "retain": False},
    {"name": "data", "nfs": {"server": "nfs.example.com", "path": "/data"}, "size": "1Ti"},
    {"name": "old", "claim": "old"},
    {"name": "copied", "claim": "copied", "retain": False},
]
MOUNTS = [{"name": each["name"], "mountPath": f"/mnt/{each['name']}"} for each in SOURCES]
CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "storage": MOUNTS}


@pytest.fixture
def built(kubectl_that_renders: Path) -> Recorder:
    tenant = {"name": "a", "storage": SOURCES, "clusters": [CLUSTER]}
    return record(lambda: build(parse({"operator": {"location": "config/default"}, "tenants": [tenant]})))


def test_pulumi_keeps_a_claim_whose_data_exist_nowhere_else(built: Recorder) -> None:
    kept = {name: (each.protect, each.retained) for name, each in built.registered.items() if "/storage-" in name}
    assert kept == {
        "a/storage-models-claim": (True, True),
        "a/storage-cache-claim": (False, False),
        "a/storage-data-volume": (False, False),
        "a/storage-data-claim": (False, False),
    }
    assert built.registered["a/guard"].inputs["storage"] == ["models", "old"]
