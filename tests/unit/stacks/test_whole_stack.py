"""The relations between the parts of a stack."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError
from stacks.load import parse
from stacks.program import build as program
from stacks.program.build import build
from stacks.program.facts import Facts, read_facts
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

pytestmark = pytest.mark.thorough

OPERATOR = "platform-kuberay-deployment-kuberay-operator"

STACK: dict[str, Any] = {
    "kubernetes": {"context": "staging"},
    "operator": {"location": "config/default", "watchNamespaces": ["a", "namespace-b"]},
    "nodes": [{"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8}],
    "tenants": [
        {
            "name": name,
            "namespace": namespace,
            "clusters": [
                {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}}
            ],
        }
        for name, namespace in (("a", None), ("b", "namespace-b"))
    ],
}


LIVE = {f"{namespace}/training-ready": {"status": {"state": "ready"}} for namespace in ("a", "namespace-b")}


@pytest.fixture
def built(kubectl_that_renders: Path) -> tuple[Recorder, dict[str, Any]]:
    """The registered resources, and the outputs once they are known."""
    outputs: dict[str, Any] = {}
    return record(lambda: pulumi.Output.from_input(build(parse(STACK))).apply(outputs.update), LIVE), outputs


def test_every_object_has_the_stacks_own_provider(built: tuple[Recorder, dict[str, Any]]) -> None:
    recorder, _ = built
    provider = recorder.registered["cluster"]
    assert provider.type == "pulumi:providers:kubernetes"
    assert provider.inputs["context"] == "staging"
    # Pulumi's plugin replaces a provider with this identifier only when the identifier changes.
    assert provider.inputs["clusterIdentifier"] == "ray-platform/test"
    objects = [each for each in recorder.registered.values() if each.type.startswith("kubernetes:")]
    assert objects
    assert {each.provider for each in objects} == {"cluster"}


def test_clusters_are_created_after_the_operator_and_its_roles_and_deleted_before_them(
    built: tuple[Recorder, dict[str, Any]],
) -> None:
    recorder, _ = built
    for cluster in ("a/training-ray-cluster", "namespace-b/training-ray-cluster"):
        assert recorder.made_before("platform-kuberay-crd-guard", cluster)
        assert recorder.made_before(OPERATOR, cluster)
    role = "platform-kuberay-role-namespace-b-kuberay-operator"
    assert recorder.made_before("platform-namespace-namespace-b", role)
    # When a tenant is removed, one update deletes both, and the engine only follows direct dependencies.
    assert role in recorder.registered["namespace-b/training-ray-cluster"].dependencies


def test_outputs_name_clusters_by_namespace_and_name_with_their_states_after_the_wait(
    built: tuple[Recorder, dict[str, Any]],
) -> None:
    _, outputs = built
    states = {name: cluster["state"] for name, cluster in outputs["clusters"].items()}
    assert states == {"a/training": "ready", "namespace-b/training": "ready"}
    cluster = outputs["clusters"]["namespace-b/training"]
    assert cluster["rayAddress"] == "ray://training-head-svc.namespace-b.svc:10001"
    assert cluster["largestGpus"] == 8
    assert [group["maxReplicas"] for group in cluster["workerGroups"]] == [2, 2, 2, 4]


def test_the_operator_starts_after_the_scheduler_whose_podgroups_it_creates(
    kubectl_that_renders: Path, manifest_file: Path
) -> None:
    """The operator watches PodGroups from its start, and ends if there is no such CRD."""
    recorder = record(
        lambda: build(parse({**STACK, "tenants": [], "scheduler": {"volcano": {"location": str(manifest_file)}}}))
    )
    assert recorder.made_before("platform-volcano-deployment-volcano-scheduler", OPERATOR)
    container = recorder.registered[OPERATOR].inputs["spec"]["template"]["spec"]["containers"][0]
    assert "--batch-scheduler=volcano" in container["args"]


def test_a_stack_chooses_the_target_of_each_cluster_and_readers_of_outputs_find_the_same_keys(
    kubectl_that_renders: Path,
) -> None:
    lab = {"name": "lab", "project": "p", "rayVersion": "2.60.0", "resources": {"cpu": 4, "memory": 16}}
    both = parse({**STACK, "cml": {"host": "https://ml.example.com", "clusters": [lab]}})
    outputs: dict[str, Any] = {}
    on_workspace: dict[str, dict[str, Any]] = {
        "cml-lab-claim": {"token": "a-token"},
        "cml-lab-nodes": {"state": "ready", "joined": 1, "applications": {}},
    }
    recorder = record(lambda: pulumi.Output.from_input(build(both)).apply(outputs.update), LIVE | on_workspace)
    kinds = recorder.kinds()
    assert kinds["ray-platform:index:CmlRayCluster"] == ["cml-lab"]
    assert len(kinds["ray-platform:index:RayCluster"]) == 2
    of_kubernetes, on_cml = outputs["clusters"]["a/training"], outputs["cmlClusters"]["lab"]
    assert on_cml.keys() == of_kubernetes.keys()
    assert on_cml["status"].keys() >= {"state", "head", "worker"}


def test_programs_in_the_cluster_are_read_before_the_first_resource_is_constructed(
    in_memory: FakeCluster, kubectl_that_renders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operator, CRDs, scheduler, external Redis, and the version of Kubernetes: constructors get facts."""
    image = {"spec": {"containers": [{"name": "manager", "image": "kueue:v0.19.2"}]}}
    deployment = {"name": "kueue-controller-manager", "namespace": "kueue-system"}
    in_memory.add(
        {
            **{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
            **{"metadata": {"name": "clusterqueues.kueue.x-k8s.io"}},
            "spec": {"versions": [{"name": "v1beta2", "served": True}]},
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment, "spec": {"template": image}},
        {
            **{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
            **{"metadata": {"name": "rayjobs.ray.io"}},
            "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {}}}]},
        },
    )

    def read(*args: Any) -> Facts:
        found = read_facts(*args)
        assert found.operator_manifest
        assert [line.partition(":")[0] for line in found.operator_manifest.changes] == ["CRD rayjobs.ray.io changes"]
        in_memory.fail(ClusterUnreachableError("it is read again"))
        return found

    monkeypatch.setattr(program, "read_facts", read)
    kept = {"name": "kept", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "faultTolerance": True}
    existing = {"address": "redis.example.com:6379", "secretName": "redis"}
    values = {
        "operator": {"location": "config/default"},
        "scheduler": {"kueue": {"install": "existing"}},
        "redis": {"mode": "external", "external": existing, "gateway": {}},
        "tenants": [{"name": "team-a", "clusters": [kept]}],
    }
    recorded = record(lambda: program.build(parse(values)))
    assert recorded.outputs["platform-kueue"] == {"version": "0.19.2"}
    assert "team-a/kept-storage-namespace" in recorded.registered
