"""Several tenants: limits, name conflicts, and protection against accidental removal."""

import base64
import copy
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack, existing
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(1200)]

CLUSTERS = [("a", "b-c"), ("a", "same"), ("a-b", "c"), ("a-b", "same")]
"""Namespaces and names of RayClusters. Joined with a hyphen the first and the third would be equal."""


def cluster_of(name: str) -> dict[str, Any]:
    return {"name": name, "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}


STORAGE: list[dict[str, Any]] = [
    {"name": "models", "storageClass": "shared", "size": "1Gi"},
    {"name": "data", "nfs": {"server": "nfs.example.com", "path": "/data"}, "size": "1Gi"},
]
MOUNTS = [{"name": "models", "mountPath": "/mnt/models", "hfHome": True}, {"name": "data", "mountPath": "/mnt/data"}]


def tenants(settings: dict[str, Any]) -> None:
    settings["tenants"] = [
        {
            "name": "a",
            "owner": "ml-research",
            "costCenter": "4711",
            "quota": {"gpus": 8, "cpu": 64, "memory": "256Gi", "pods": 20, "rayClusters": 4},
            "storage": copy.deepcopy(STORAGE),
            "clusters": [{**cluster_of("b-c"), "storage": MOUNTS}, cluster_of("same")],
        },
        {"name": "a-b", "clusters": [cluster_of("c"), cluster_of("same")]},
        {"name": "idle"},
    ]


def tenant(settings: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in settings["tenants"] if each["name"] == name)


def remove(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda settings: settings["tenants"].remove(tenant(settings, name))


def all_removable(settings: dict[str, Any]) -> None:
    for each in settings["tenants"]:
        each["allowDelete"] = True
    tenant(settings, "a")["storage"][0]["retain"] = False


@pytest.fixture(scope="module")
def before(cluster: Rehearsal, operator: None) -> set[str]:
    """The objects in the cluster before the stack."""
    return existing(cluster)


@pytest.fixture(scope="module")
def made(stack_on_operator: MakeStack, before: set[str]) -> Iterator[Stack]:
    """A stack. Each test needs `shared`."""
    made = stack_on_operator("tenants")
    yield made
    if made.resources():
        made.edit(tenants)
        made.edit(all_removable)
        made.up()
        made.destroy()


@pytest.fixture
def shared(made: Stack) -> Stack:
    """The stack with three tenants, after `pulumi up`."""
    return made.settle(tenants)


def pod(**container: Any) -> dict[str, Any]:
    """A pod that Pod Security `restricted` admits, unless `container` changes that."""
    safe = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {
        "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "probe", "image": "probe:1", "securityContext": safe, **container}]},
    }


def refused(call: Callable[..., Any], namespace: str, body: dict[str, Any]) -> str:
    """The API server's error for creating an object, as a dry run."""
    with pytest.raises(client.ApiException) as raised:
        call(namespace, body, dry_run="All")
    assert raised.value.status == HTTPStatus.FORBIDDEN
    return str(raised.value.body)


def identities(cluster: Rehearsal, namespace: str) -> dict[str, str]:
    """The uids of a tenant's objects; a recreated object would have another."""
    api = cluster.client()
    core: Any = client.CoreV1Api(api)
    listed = {
        "namespace": [core.read_namespace(namespace)],
        "quota": core.list_namespaced_resource_quota(namespace).items,
        "limits": core.list_namespaced_limit_range(namespace).items,
        "account": core.list_namespaced_service_account(namespace).items,
        "secret": core.list_namespaced_secret(namespace).items,
        "pod": core.list_namespaced_pod(namespace).items,
    }
    return {f"{kind} {item.metadata.name}": item.metadata.uid for kind, items in listed.items() for item in items}


def test_clusters_whose_joined_names_are_equal_are_distinguished(shared: Stack, rays: Rays, core: Any) -> None:
    states = {at: rays.read(*at)["status"]["state"] for at in CLUSTERS}
    assert states == dict.fromkeys(CLUSTERS, "ready")
    assert set(shared.outputs()["clusters"]) == {f"{namespace}/{name}" for namespace, name in CLUSTERS}


def test_clusters_of_one_name_have_separate_tokens_and_heads(shared: Stack, core: Any) -> None:
    tokens = {core.read_namespaced_secret("same", namespace).data["auth_token"] for namespace in ("a", "a-b")}
    assert len(tokens) == 2
    assert all(len(base64.b64decode(token)) >= 32 for token in tokens)
    outputs = shared.outputs()["clusters"]
    heads = {outputs[f"{namespace}/same"]["rayAddress"] for namespace in ("a", "a-b")}
    assert heads == {"ray://same-head-svc.a.svc:10001", "ray://same-head-svc.a-b.svc:10001"}


def test_a_namespace_has_its_owners_label_and_admits_only_restricted_pods(shared: Stack, core: Any) -> None:
    labels = core.read_namespace("a").metadata.labels
    assert labels["ray-platform/owner"] == "ml-research"
    assert labels["ray-platform/cost-center"] == "4711"
    error = refused(core.create_namespaced_pod, "a", pod(securityContext={"privileged": True}))
    assert "violates PodSecurity" in error
    assert "restricted:latest" in error


def test_a_quota_counts_running_pods_and_refuses_more_than_its_limit(shared: Stack, core: Any) -> None:
    used = core.read_namespaced_resource_quota("ray-platform", "a").status.used
    assert (used["requests.cpu"], used["pods"], used["count/rayclusters.ray.io"]) == ("5", "2", "2")
    large = {"requests": {"cpu": "60", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    assert "exceeded quota: ray-platform, requested: requests.cpu=60" in refused(
        core.create_namespaced_pod, "a", pod(resources=large)
    )
    service = {"metadata": {"name": "out"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    assert "services.loadbalancers=1" in refused(core.create_namespaced_service, "a", service)
    core.create_namespaced_service("a-b", service, dry_run="All")


def test_a_pod_without_resources_is_admitted_with_small_defaults(shared: Stack, core: Any) -> None:
    made = core.create_namespaced_pod("a", pod(), dry_run="All")
    assert made.spec.containers[0].resources.requests == {"cpu": "100m", "memory": "512Mi"}
    assert made.spec.containers[0].resources.limits == {"memory": "512Mi"}


def test_storage_is_bound_and_mounted(shared: Stack, core: Any) -> None:
    claims = {each.metadata.name: each for each in core.list_namespaced_persistent_volume_claim("a").items}
    assert {name: each.status.phase for name, each in claims.items()} == {"models": "Bound", "data": "Bound"}
    volume = core.read_persistent_volume(claims["data"].spec.volume_name)
    assert (volume.spec.nfs.path, volume.spec.persistent_volume_reclaim_policy) == ("/data", "Retain")
    [head] = core.list_namespaced_pod("a", label_selector="ray.io/cluster=b-c").items
    assert head.status.phase == "Running"
    ray = head.spec.containers[0]
    assert {"/mnt/models", "/mnt/data"} <= {each.mount_path for each in ray.volume_mounts}
    assert ("HF_HOME", "/mnt/models") in {(each.name, each.value) for each in ray.env}


@pytest.mark.thorough
def test_a_retained_claim_is_not_replaced_and_its_class_must_suit_hf_home(shared: Stack, cluster: Rehearsal) -> None:
    other = [{**STORAGE[0], "storageClass": "buckets"}, STORAGE[1]]
    shared.edit(lambda settings: tenant(settings, "a").update(storage=other))
    assert "currently marked for protection" in shared.pulumi("preview", fails=True).output
    classes: Any = client.StorageV1Api(cluster.client())
    classes.create_storage_class({"metadata": {"name": "buckets"}, "provisioner": "s3.csi.aws.com"})
    refused = shared.pulumi("preview", fails=True).output
    classes.delete_storage_class("buckets")
    assert "storage 'models' of namespace 'a' is HF_HOME, and s3.csi.aws.com provides object storage" in refused
    assert "Traceback" not in refused
    shared.edit(tenants)


def test_a_tenant_with_running_clusters_is_neither_removed_nor_changed(shared: Stack, cluster: Rehearsal) -> None:
    before = identities(cluster, "a")
    shared.edit(remove("a"))
    output = shared.up(fails=True).output
    assert "tenant 'a' is not removed while there is RayCluster a/b-c, RayCluster a/same" in output
    assert "give the tenant allowDelete: true" in output
    assert "Traceback" not in output
    assert identities(cluster, "a") == before
    assert len(before) > 6


def a_new_namespace_of_a_tenant_is_refused_while_the_old_one_has_external_clusters(
    shared: Stack, rays: Rays, cluster: Rehearsal
) -> None:
    spec = rays.read("a", "same")["spec"]
    foreign = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "foreign"}}
    rays.create("idle", {**foreign, "spec": {**spec, "enableInTreeAutoscaling": False}})
    shared.edit(tenants)
    shared.edit(lambda settings: tenant(settings, "idle").update(namespace="moved"))
    assert "RayCluster idle/foreign" in shared.up(fails=True).output
    assert rays.exists("idle", "foreign")
    rays.delete("idle", "foreign")


def a_tenant_with_allow_delete_is_removed_without_an_effect_on_others(
    shared: Stack, cluster: Rehearsal, core: Any
) -> None:
    neighbour = identities(cluster, "a-b")

    def release(settings: dict[str, Any]) -> None:
        """Puts the tenant back, whose storage may be deleted."""
        moved = tenant(settings, "idle")
        tenants(settings)
        tenant(settings, "idle").update(moved)
        tenant(settings, "a").update(allowDelete=True, storage=[{**STORAGE[0], "retain": False}, STORAGE[1]])

    shared.edit(lambda settings: tenant(settings, "a").update(allowDelete=True))
    shared.up()
    assert "namespace idle" not in existing(cluster)
    shared.changes_nothing()
    shared.edit(remove("a"))
    assert "the claims of its storage models would be deleted with its namespace" in shared.up(fails=True).output
    assert core.read_namespaced_persistent_volume_claim("models", "a").metadata.deletion_timestamp is None
    shared.edit(release)
    shared.up()
    shared.edit(remove("a"))
    shared.up()
    assert {"namespace a", "namespace a-b"} & existing(cluster) == {"namespace a-b"}
    assert identities(cluster, "a-b") == neighbour
    assert [each for each in core.list_persistent_volume().items if each.metadata.name.startswith("a.")] == []


def destroy_requires_allow_delete_too(shared: Stack, cluster: Rehearsal, before: set[str]) -> None:
    neighbour = identities(cluster, "a-b")
    refused = shared.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "tenant 'a-b' is not removed while there is RayCluster a-b/c, RayCluster a-b/same" in refused
    assert identities(cluster, "a-b") == neighbour
    shared.edit(lambda settings: tenant(settings, "a-b").update(allowDelete=True))
    shared.up()
    shared.destroy()
    assert shared.resources() == []
    assert existing(cluster) <= before


@pytest.mark.thorough
def test_tenants_are_removed_only_if_that_is_allowed(
    shared: Stack, rays: Rays, cluster: Rehearsal, core: Any, before: set[str]
) -> None:
    a_new_namespace_of_a_tenant_is_refused_while_the_old_one_has_external_clusters(shared, rays, cluster)
    a_tenant_with_allow_delete_is_removed_without_an_effect_on_others(shared, cluster, core)
    destroy_requires_allow_delete_too(shared, cluster, before)
