"""What images are called, which are allowed, and where they are pulled from instead."""

from typing import Any

import pulumi
import pytest

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.images import full_name, images_in, mirrored, not_allowed, with_mirrors
from core.nodes import NodePool
from stacks.load import parse
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.settings import TenantSettings

DIGEST = f"@sha256:{'0' * 64}"

POD: dict[str, Any] = {
    "initContainers": [{"name": "i", "image": "init:1"}],
    "containers": [{"name": "c", "image": "quay.io/main:2"}, {"name": "without"}],
    "volumes": [{"name": "v", "image": {"reference": "models:3"}}, {"name": "r", "rbd": {"image": "a-block-device"}}],
}


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "docker.io/library/busybox"),
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("index.docker.io/rayproject/ray", "docker.io/rayproject/ray"),
        ("quay.io/kuberay/operator:v1.6.2", "quay.io/kuberay/operator:v1.6.2"),
        ("registry:5000/ray", "registry:5000/ray"),
        ("localhost/ray", "localhost/ray"),
    ],
)
def test_a_name_without_a_registry_is_docker_hubs(image: str, name: str) -> None:
    assert full_name(image) == name


@pytest.mark.parametrize(
    ("image", "pulled"),
    [
        ("rayproject/ray:2.60.0", "mirror.example.com/hub/rayproject/ray:2.60.0"),
        (f"rayproject/ray:2.60.0{DIGEST}", f"mirror.example.com/hub/rayproject/ray:2.60.0{DIGEST}"),
        ("busybox", "mirror.example.com/hub/library/busybox"),
        ("quay.io/kuberay/operator:v1.6.2", "mirror.example.com/kuberay/operator:v1.6.2"),
        ("quay.io/kuberay-fork/operator:1", "mirror.example.com/quay/kuberay-fork/operator:1"),
        ("gcr.io/ours/ray:1", "gcr.io/ours/ray:1"),
        ("mirror.example.com/hub/rayproject/ray:1", "mirror.example.com/hub/rayproject/ray:1"),
        ("ghcr.io/one/image:3", "mirror.example.com/one:3"),
    ],
)
def test_the_longest_mirror_that_fits_counts_and_tag_and_digest_stay(image: str, pulled: str) -> None:
    mirrors = {
        "quay.io": "mirror.example.com/quay",
        "quay.io/kuberay": "mirror.example.com/kuberay",
        "docker.io": "mirror.example.com/hub",
        "ghcr.io/one/image": "mirror.example.com/one",
    }
    assert mirrored(image, mirrors) == pulled


def test_every_image_of_a_pod_is_found_and_nothing_that_only_looks_like_one() -> None:
    body = {"kind": "Deployment", "spec": {"template": {"spec": POD}, "image": "no-container"}}
    assert [image for _, image in images_in(body)] == ["init:1", "quay.io/main:2", "models:3"]


def test_rewriting_leaves_what_is_not_known_yet_and_changes_nothing_in_place() -> None:
    unknown = pulumi.Output.from_input("team-a")
    body: dict[str, Any] = {"metadata": {"namespace": unknown}, "spec": POD}
    rewritten = with_mirrors(body, {"docker.io": "mirror.example.com"})
    assert rewritten["metadata"]["namespace"] is unknown
    assert [image for _, image in images_in(rewritten)] == [
        "mirror.example.com/library/init:1",
        "quay.io/main:2",
        "mirror.example.com/library/models:3",
    ]
    assert rewritten["spec"]["volumes"][1] == POD["volumes"][1]
    assert [image for _, image in images_in(body)] == ["init:1", "quay.io/main:2", "models:3"]


def test_all_pods_of_a_ray_cluster_are_rewritten_with_the_autoscaler() -> None:
    entry = {
        "name": "training",
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0",
        "workers": {"pool": "a100", "podTemplate": {"spec": {"initContainers": [{"name": "get", "image": "get:1"}]}}},
        "overrides": {"autoscalerOptions": {"image": "rayproject/ray:2.60.0-cpu"}},
    }
    pools = (NodePool(pool="a100", count=1, cpu="8", memory="64Gi", gpus=2),)
    body = ray_cluster(valid(entry), pools)
    found = {image for _, image in images_in(with_mirrors(body, {"docker.io": "m.example.com"}))}
    assert found == {
        "m.example.com/rayproject/ray:2.60.0",
        "m.example.com/rayproject/ray:2.60.0-cpu",
        "m.example.com/library/get:1",
    }


def test_images_outside_the_allowed_registries_are_found_and_without_registries_all_are_allowed() -> None:
    assert [image for _, image in not_allowed(POD, ["docker.io/library"])] == ["quay.io/main:2"]
    assert [image for _, image in not_allowed(POD, ["quay.io/ma", "docker.io"])] == ["quay.io/main:2"]
    assert list(not_allowed(POD, ["quay.io", "docker.io"])) == []
    assert list(not_allowed(POD, [])) == []


def test_the_configured_name_must_be_allowed_not_that_of_the_mirror() -> None:
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    tenant = {"name": "team-a", "images": {"registries": ["docker.io/rayproject"]}, "clusters": [cluster]}
    parse({"images": {"mirrors": {"docker.io": "registry.example.com"}}, "tenants": [tenant]})


def test_a_tenants_pull_secrets_are_those_of_all_its_pods_beside_the_clusters_own() -> None:
    tenant = TenantSettings.model_validate({"name": "team-a", "images": {"pullSecrets": ["registry", "hub"]}})
    entry: dict[str, Any] = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0"}
    entry |= {"imagePullSecrets": ["hub", "own"], "workerGroups": [{"groupName": "small"}]}
    body = ray_cluster(with_tenant_defaults(tenant, valid(entry)), ())
    for group in (body["spec"]["headGroupSpec"], *body["spec"]["workerGroupSpecs"]):
        secrets = group["template"]["spec"]["imagePullSecrets"]
        assert secrets == [{"name": "registry"}, {"name": "hub"}, {"name": "own"}]
