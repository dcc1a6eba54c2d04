"""The nodes of a rehearsal, simulated and real, and its volumes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from core.nodes import NodePool
from local import paths
from local.errors import RehearsalError
from local.images import OPERATOR, RAY
from local.nodes import LABELS, apply, manifests
from local.real_node import RealNode, node, requirements
from local.real_node.box import Box
from local.rehearsal import Rehearsal
from local.volumes import SELECTED_NODE, STORAGE_CLASS, storage_class, volume
from stacks.load import load
from stacks.objects.stack import images_of
from tests.unit.local.conftest import ApiServer


def test_a_pool_becomes_the_configured_number_of_nodes_of_its_size_with_its_taints_and_labels() -> None:
    pool = NodePool(pool="a100", count=2, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")
    nodes = manifests([pool])
    assert list(nodes) == ["a100-0", "a100-1"]
    allocatable = {"cpu": "64", "memory": "1000Gi", "pods": "110", "nvidia.com/gpu": "8"}
    assert nodes["a100-1"]["status"]["allocatable"] == allocatable
    assert nodes["a100-1"]["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    own = {"labels": {"tier": "spot"}, "taints": [{"key": "spot", "value": "true"}]}
    spot = manifests([NodePool.model_validate({"pool": "spot", "count": 1, "cpu": 8, "memory": "32Gi", **own})])[
        "spot-0"
    ]
    assert spot["metadata"]["labels"]["tier"] == "spot"
    assert spot["spec"]["taints"] == [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    assert "nvidia.com/gpu" not in spot["status"]["capacity"]
    assert "nvidia.com/gpu.product" not in spot["metadata"]["labels"]


GPUS = NodePool(pool="a", count=1, cpu="8", memory="32Gi", gpus=8, gpu_product="A100", labels={"tier": "spot"})


def client_of(api_server: ApiServer) -> client.ApiClient:
    configuration = client.Configuration()
    configuration.host, configuration.proxy = api_server.url, None
    return client.ApiClient(configuration)


def test_an_existing_node_loses_the_gpus_and_labels_that_its_pool_lost(api_server: ApiServer) -> None:
    """Labels of others stay."""
    node = manifests([GPUS])["a-0"]
    node["metadata"]["labels"]["beta.kubernetes.io/os"] = "linux"
    api_server.answers = {
        "GET /api/v1/nodes": {"items": [node]},
        "PATCH /api/v1/nodes/a-0": node,
        "PATCH /api/v1/nodes/a-0/status": node,
    }
    plain = GPUS.model_copy(update={"gpus": 0, "gpu_product": None, "labels": {"zone": "1"}})
    apply(client_of(api_server), [plain])
    _, (_, patch), (_, status) = api_server.got
    new = manifests([plain])["a-0"]["metadata"]
    assert patch["metadata"]["labels"] == {**new["labels"], "nvidia.com/gpu.product": None, "tier": None}
    assert patch["metadata"]["annotations"][LABELS] == new["annotations"][LABELS]
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": None}
    assert status["status"] == {"capacity": amounts, "allocatable": amounts}


def test_the_real_node_loses_the_labels_that_its_pool_lost(tmp_path: Path, api_server: ApiServer) -> None:
    node: dict[str, Any] = {
        "metadata": {
            "name": "real-0",
            "labels": {"kubernetes.io/os": "linux", "tier": "spot", "ray-platform.dev/pool": "a"},
            "annotations": {LABELS: "ray-platform.dev/pool tier"},
        },
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    api_server.answers = {"GET /api/v1/nodes/real-0": node, "PATCH /api/v1/nodes/real-0": node}
    pool = GPUS.model_copy(update={"gpu_product": None, "labels": {}})
    assert RealNode(tmp_path).ready(client_of(api_server), [pool])
    [patch] = [body for request, body in api_server.got if request.startswith("PATCH")]
    assert patch["metadata"]["labels"] == {"ray-platform.dev/pool": "a", "tier": None}


@pytest.mark.parametrize("stack", ["dev", "pods"])
def test_the_stacks_for_one_node_find_their_images(stack: str, tmp_path: Path, machine_is_fit: None) -> None:
    """The production stack is for many nodes, and has a Volcano that the real node does not."""
    RealNode(tmp_path).check(images_of(load(paths.ROOT / f"Pulumi.{stack}.yaml")))


def test_an_image_that_the_node_does_not_have_is_refused(tmp_path: Path, machine_is_fit: None) -> None:
    with pytest.raises(
        RehearsalError, match=r"image quay\.io/kuberay/operator:v1\.6\.1 does not exist here"
    ) as refused:
        RealNode(tmp_path).check(["quay.io/kuberay/operator:v1.6.1"])
    assert OPERATOR.reference in str(refused.value)
    assert RAY.reference in str(refused.value)


def test_one_message_names_all_unmet_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda program: None if program in ("nft", "ctr") else "x")
    with pytest.raises(RehearsalError) as refused:
        RealNode(tmp_path).check([])
    assert str(refused.value).splitlines() == [
        "the real node cannot run here:",
        "  it needs root, for namespaces, mounts and cgroups: run the command as root",
        "  programs are missing (ctr, nft): on Debian and Ubuntu "
        "`apt-get install --no-install-recommends containerd nftables`",
    ]


def test_continuous_integration_installs_missing_packages(tmp_path: Path) -> None:
    """The packages of missing programs, and no others: Docker's containerd excludes Debian's."""
    for program in ("containerd", "ctr"):
        (tmp_path / program).touch(mode=0o755)
    asked = re.search(r'python -c "(.*absent.*)"', (paths.ROOT / ".ci" / "run").read_text())
    assert asked is not None
    command = [sys.executable, "-c", asked[1]]
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=True)
    installed = set(done.stdout.split())
    assert {"runc", "nftables", "util-linux"} <= installed <= set(requirements.PACKAGES) - {"containerd"}


def test_boxes_of_two_folders_share_neither_names_nor_addresses() -> None:
    one, other = Box(Path("/one")), Box(Path("/other"))
    assert not {one.cable, one.cgroup, one.inside, one.outside} & {
        other.cable,
        other.cgroup,
        other.inside,
        other.outside,
    }
    assert one.inside == Box(Path("/one")).inside


def test_a_rehearsal_remembers_its_kind_of_nodes(tmp_path: Path) -> None:
    assert Rehearsal(tmp_path).kind == "simulated"
    (tmp_path / "nodes").write_text("real")
    assert Rehearsal(tmp_path).kind == "real"
    with pytest.raises(RehearsalError, match="has real nodes, not simulated ones: leave NODES out"):
        Rehearsal(tmp_path, "simulated")


@pytest.fixture
def machine_is_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "unmet", list)


FOLDER = Path("/run/node/volumes")


def claim(storage_class: str = STORAGE_CLASS, node: str | None = "real-0", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "data-ray-redis-0",
            "namespace": "ray-system",
            "uid": "1234",
            "annotations": {SELECTED_NODE: node} if node else {},
        },
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def test_a_volume_is_on_the_node_of_its_pod_and_for_its_claim_alone() -> None:
    made = volume(claim(), FOLDER)
    assert made is not None
    spec = made["spec"]
    assert spec["local"] == {"path": "/run/node/volumes/pvc-1234"}
    [term] = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["real-0"]
    assert spec["claimRef"]["uid"] == "1234"
    assert spec["capacity"] == {"storage": "1Gi"}


@pytest.mark.parametrize("other", [claim(""), claim(node=None), claim(volumeName="pvc-1234")])
def test_no_volume_is_created_without_a_class_before_the_pod_has_a_node_or_twice(other: dict[str, Any]) -> None:
    assert volume(other, FOLDER) is None


@pytest.mark.parametrize(
    "of_all_nodes", [claim("shared", node=None), claim("shared"), claim(accessModes=["ReadWriteMany"])]
)
def test_a_volume_of_another_class_or_for_many_pods_is_on_all_nodes(of_all_nodes: dict[str, Any]) -> None:
    made = volume(of_all_nodes, FOLDER)
    assert made is not None
    [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "Exists"}]
    assert made["spec"]["storageClassName"] == of_all_nodes["spec"]["storageClassName"]


def test_only_the_default_class_waits_for_a_pod() -> None:
    modes = {name: storage_class(name)["volumeBindingMode"] for name in (STORAGE_CLASS, "shared")}
    assert modes == {STORAGE_CLASS: "WaitForFirstConsumer", "shared": "Immediate"}
