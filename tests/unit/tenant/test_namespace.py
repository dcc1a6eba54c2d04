"""A tenant's namespace: labels, quota, limits, what these would refuse, and what blocks its removal."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, TenantGuardProvider, refuse_tenant_in_use
from components.in_use import named, runs
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.pods import RedisPlace
from components.ray_cluster.rules import valid
from components.redis.connection import RedisConnection
from components.tenant.demand import beyond_limits, beyond_quota, demand
from components.tenant.settings import (
    DEFAULT_LIMITS,
    OF_RUNS,
    Amounts,
    LimitSettings,
    QuotaSettings,
    limit_range,
    namespace,
    object_counts,
    problems_of_entries,
    quota,
    resource_quota,
)
from core.nodes import GPU_RESOURCE, NodePool
from core.quantities import shown
from kuberay import OperatorContext, validate
from stacks.settings import TenantSettings
from testbed.fake_cluster import FakeCluster


def test_a_namespace_enforces_audits_and_warns_of_restricted_by_default() -> None:
    labels = namespace("team-a", "team-a", "restricted")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "latest"
    assert TenantSettings(name="team-a").pod_security == "restricted"


def test_a_namespace_has_labels_for_its_owner() -> None:
    body = namespace("research", "team-a", "baseline", "ada", "4711", {"example.com/stage": "test"})
    assert body["metadata"]["name"] == "research"
    own = {key: value for key, value in body["metadata"]["labels"].items() if "pod-security" not in key}
    assert own == {
        "ray-platform/tenant": "team-a",
        "ray-platform/owner": "ada",
        "ray-platform/cost-center": "4711",
        "example.com/stage": "test",
    }


@pytest.mark.parametrize(
    ("settings", "hard"),
    [
        (
            QuotaSettings(gpus=16, cpu="200", memory="2Ti", pods=100),
            {
                f"requests.{GPU_RESOURCE}": "16",
                "requests.cpu": "200",
                "requests.memory": "2Ti",
                "limits.memory": "2Ti",
                "pods": "100",
                "services.loadbalancers": "0",
                "services.nodeports": "0",
            },
        ),
        (
            QuotaSettings(load_balancers=1, node_ports=5, ray_clusters=3, hard={"count/secrets": "50"}),
            {
                "services.loadbalancers": "1",
                "services.nodeports": "5",
                "count/rayclusters.ray.io": "3",
                "count/secrets": "50",
            },
        ),
    ],
)
def test_memory_is_counted_by_requests_and_limits_and_no_external_ports_are_allowed_by_default(
    settings: QuotaSettings, hard: dict[str, str]
) -> None:
    assert resource_quota(settings)["spec"]["hard"] == hard


def test_a_quota_of_ray_clusters_is_ready_once_kubernetes_counts_them() -> None:
    """Before that the API server refuses each: "status unknown for quota"."""
    both = resource_quota(QuotaSettings(gpus=8, ray_clusters=3, hard={"count/rayjobs.ray.io": "20"}))
    assert json.loads(both["metadata"]["annotations"]["pulumi.com/waitFor"]) == [
        "jsonpath={.status.used['count/rayclusters.ray.io']}",
        "jsonpath={.status.used['count/rayjobs.ray.io']}",
    ]
    assert "annotations" not in resource_quota(QuotaSettings(gpus=8, hard={"count/secrets": "50"}))["metadata"]


def test_with_a_quota_a_pod_without_amounts_gets_small_ones() -> None:
    assert TenantSettings(name="team-a", quota=QuotaSettings(gpus=1)).limits_in_force == DEFAULT_LIMITS
    bodies = quota(QuotaSettings(gpus=8), DEFAULT_LIMITS)
    assert list(bodies) == ["resource-quota", "limit-range"]
    assert bodies["limit-range"]["spec"]["limits"] == [
        {"type": "Container", "default": {"memory": "512Mi"}, "defaultRequest": {"cpu": "100m"}}
    ]


def test_without_a_quota_or_with_empty_limits_there_is_no_limit_range() -> None:
    assert TenantSettings(name="team-a").limits_in_force is None
    limits = TenantSettings(name="team-a", quota=QuotaSettings(gpus=1), limits=LimitSettings()).limits_in_force
    assert limits is not None
    assert limit_range(limits) is None
    assert quota(None, None) == {}


def test_limits_that_kubernetes_would_refuse_are_refused() -> None:
    with pytest.raises(ValueError, match=r"defaultRequest 2Gi is more than max 1Gi"):
        LimitSettings(default_request=Amounts(memory="2Gi"), max=Amounts(memory="1Gi"))


def ray(kind: str, name: str = "x", **parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": name},
        "spec": {},
        **parts,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ray("RayCluster"), True),
        (ray("RayCluster", spec={"suspend": True}), False),
        (ray("RayService"), True),
        (ray("RayCronJob"), True),
        (ray("RayCronJob", spec={"suspend": True}), False),
        (ray("RayJob"), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Running"}), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Retrying"}), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Complete"}), False),
        (ray("RayJob", status={"jobDeploymentStatus": "Failed"}), False),
    ],
)
def test_an_object_with_present_or_future_pods_counts_as_running(body: Mapping[str, Any], expected: bool) -> None:
    assert runs(body) == expected


def test_running_objects_are_named_with_a_fix_and_without_them_a_tenant_is_removed() -> None:
    named = r"(?s)while there is RayCluster team-a/training, RayJob team-a/nightly.*allowDelete: true"
    with pytest.raises(InUseError, match=named):
        refuse_tenant_in_use(FakeCluster(ray("RayCluster", "training"), ray("RayJob", "nightly")), "team-a", "team-a")
    cluster = FakeCluster(ray("RayCluster", spec={"suspend": True}))
    refuse_tenant_in_use(FakeCluster(), "team-a", "team-a")
    refuse_tenant_in_use(cluster, "team-a", "team-a")
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(InUseError, match="cannot be determined what runs in its namespace: no usable kubeconfig"):
        refuse_tenant_in_use(cluster, "team-a", "team-a")


def test_a_tenant_with_retained_storage_is_not_removed_even_with_allow_delete() -> None:
    props = {"tenant": "team-a", "namespace": "team-a", "allowDelete": True, "storage": ["models", "results"]}
    with pytest.raises(InUseError, match="storage models, results would be deleted with its namespace"):
        TenantGuardProvider().refuse(props)
    released = {key: value for key, value in props.items() if key != "storage"}
    TenantGuardProvider().refuse(released)
    assert TenantGuardProvider().diff("guard", props, released).changes
    assert not TenantGuardProvider().diff("guard", props, props).changes


def test_a_long_list_is_cut() -> None:
    assert named([ray("RayCluster", str(number)) for number in range(12)]).endswith("team-a/9 and 2 more")


REDIS = RedisPlace(RedisConnection(("redis:26379",), "ray", replicas=2), "team-a")
POOLS = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8),)


def body(name: str = "training", redis: RedisPlace | None = None, **settings: Any) -> dict[str, Any]:
    entry = {"name": name, "rayVersion": "2.60.0", "image": "ray:2.60.0", **settings}
    made = ray_cluster(valid(entry), POOLS, redis=redis)
    assert validate(made, OperatorContext()) == []
    return made


def workers(*variants: dict[str, Any]) -> dict[str, Any]:
    return {"pool": "a100", "variants": list(variants)}


def refused(quota: dict[str, Any], *bodies: dict[str, Any]) -> list[str]:
    demands = [demand(each, DEFAULT_LIMITS) for each in bodies]
    found = beyond_quota(demands, QuotaSettings.model_validate(quota, by_alias=True))
    return [each.problem.message for each in found]


def test_the_gateway_counts_beside_the_head() -> None:
    with_it = demand(body(redis=REDIS, faultTolerance=True), None).at_first
    without = demand(body(), None).at_first
    assert with_it["requests.cpu"] - without["requests.cpu"] == Decimal("0.25")
    assert with_it["limits.memory"] - without["limits.memory"] == 512 * 2**20
    assert with_it["pods"] == without["pods"]


def group(**settings: Any) -> dict[str, Any]:
    return {"workerGroups": [{"groupName": "small", "cpu": 1, "memory": "1Gi", **settings}]}


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        (body(), {"requests.cpu": Decimal("2.5"), "limits.memory": 16 * 2**30 + 512 * 2**20, "pods": 1}),
        (body(autoscaling=False), {"requests.cpu": 2}),
        # The clean-up job uses the quota of the head.
        (
            body(redis=REDIS, faultTolerance=True, autoscaling=False, head={"cpu": "100m", "memory": "128Mi"}),
            {"requests.cpu": Decimal("0.45"), "requests.memory": (256 + 512) * 2**20},
        ),
        (
            body(workers=workers({"gpus": 1, "cpu": 4, "memory": "8Gi", "minReplicas": 2}, {"gpus": 8})),
            {"requests.nvidia.com/gpu": 2, "requests.cpu": Decimal("10.5"), "pods": 3},
        ),
        (body(**group(replicas=3, minReplicas=1)), {"pods": 4}),
        (body(**group(minReplicas=2, numOfHosts=4)), {"pods": 9}),
        # KubeRay's own init container requests 200m CPU, so a worker with less still counts as 200m.
        (body(**group(cpu="50m", memory="128Mi", minReplicas=1)), {"requests.cpu": Decimal("2.7")}),
    ],
    ids=["head", "no autoscaler", "clean-up job", "minimum", "replicas", "hosts", "init container"],
)
def test_pods_that_start_count(made: dict[str, Any], taken: dict[str, Any]) -> None:
    found = demand(made, None).at_first
    assert {key: found[key] for key in taken} == taken


def test_replicas_count_within_their_bounds_and_a_suspended_cluster_only_by_its_objects() -> None:
    capped = body(**group(replicas=3, minReplicas=1), overrides={"workerGroupSpecs": [{"groupName": "small"}]})
    capped["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 2
    assert demand(capped, None).at_first["pods"] == 3
    taken = demand(body(workers=workers({"gpus": 8, "minReplicas": 1}), overrides={"suspend": True}), None).at_first
    of_rbac = [f"{kind}.rbac.authorization.k8s.io" for kind in ("rolebindings", "roles")]
    kinds = ["rayclusters.ray.io", "secrets", "serviceaccounts", "services", *of_rbac]  # KubeRay makes them anyway
    assert taken == {"secrets": 1, "services": 1} | {f"count/{kind}": 1 for kind in kinds}


def test_limits_that_would_refuse_the_clean_up_job_are_reported() -> None:
    limits = LimitSettings.model_validate({"min": {"memory": "300Mi"}})
    [found] = beyond_limits([demand(body(redis=REDIS, faultTolerance=True), limits)], limits)
    assert "container 'redis-cleanup' requests memory 256Mi, less than the tenant's limits.min" in found.problem.message


def test_a_sidecar_without_amounts_counts_with_the_default_limits() -> None:
    side = {"name": "side", "image": "side:1"}
    made = body(autoscaling=False, head={"podTemplate": {"spec": {"containers": [side]}}})
    assert demand(made, None).at_first["requests.cpu"] == 2
    taken = demand(made, DEFAULT_LIMITS).at_first
    assert taken["requests.cpu"] == Decimal("2.1")
    assert taken["limits.memory"] == 16 * 2**30 + 512 * 2**20


def test_a_native_sidecar_counts_in_addition_to_containers() -> None:
    stays = {"name": "s", "image": "s:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    once = {"name": "o", "image": "o:1", "resources": {"requests": {"cpu": "3"}}}
    made = body(autoscaling=False, head={"podTemplate": {"spec": {"initContainers": [stays, once]}}})
    assert demand(made, None).at_first["requests.cpu"] == 4


def test_a_group_with_no_workers_needs_no_room() -> None:
    assert refused({"gpus": 4}, body(workers=workers({"gpus": 8, "maxReplicas": 0}))) == []


def judged(limits: dict[str, Any], made: dict[str, Any]) -> list[tuple[Any, str]]:
    limit_settings = LimitSettings.model_validate(limits, by_alias=True)
    found = beyond_limits([demand(made, limit_settings)], limit_settings)
    return [(each.problem.path[1:3], each.problem.rule) for each in found]


def test_rays_container_never_gets_the_amounts_of_a_sidecar() -> None:
    group = {"groupName": "small", "memory": "4Gi"}
    made = body(workerGroups=[group])
    found = [each.problem for each in beyond_limits([demand(made, DEFAULT_LIMITS)], DEFAULT_LIMITS)]
    assert [problem.rule for problem in found] == ["ray-without-amounts"]
    assert "'ray-worker' sets no cpu, and the tenant's limits would give it 100m" in found[0].message
    assert list(beyond_limits([demand(made, None)], None)) == []


def test_a_default_limit_below_a_request_is_refused() -> None:
    side = {"name": "side", "image": "side:1", "resources": {"requests": {"memory": "2Gi"}}}
    made = body(head={"podTemplate": {"spec": {"containers": [side]}}})
    assert judged({"default": {"memory": "1Gi"}}, made) == [(("headGroupSpec", "template"), "limit-below-request")]
    assert judged({"default": {"memory": "2Gi"}}, made) == []


def test_all_containers_are_within_maximum_and_minimum() -> None:
    made = body(workers=workers({"gpus": 8, "cpu": 60, "memory": "900Gi"}))
    assert judged({"max": {"cpu": "60"}, "min": {"cpu": "200m"}}, made) == []
    assert judged({"max": {"cpu": "59"}}, made) == [(("workerGroupSpecs", 0), "within-limits")]
    assert judged({"min": {"cpu": "1"}}, made) == [
        (("autoscalerOptions", "resources"), "within-limits"),
        (("workerGroupSpecs", 0), "within-limits"),
    ]


@pytest.mark.parametrize(
    ("entry", "value", "text"),
    [
        ("limits.memory", Decimal(3 * 2**29), "1.5Gi"),
        ("requests.memory", Decimal(2**29), "512Mi"),
        ("requests.cpu", Decimal("2.50"), "2.5"),
        ("pods", Decimal(100), "100"),
    ],
)
def test_amounts_are_shown_as_people_write_them(entry: str, value: Decimal, text: str) -> None:
    assert shown(entry, value) == text


@pytest.mark.parametrize(
    "entry",
    [
        *("cpu", "limits.ephemeral-storage", "services", "hugepages-2Mi", "requests.hugepages-1Gi"),
        *("requests.nvidia.com/gpu", "requests.nvidia.com/mig-1g.5gb", "requests.amd.com/gpu"),
        *("count/rayjobs.ray.io", "count/secrets", "count/deployments.apps", "count/certificates.cert-manager.io"),
        *("fast.storageclass.storage.k8s.io/requests.storage", "gpu.deviceclass.resource.k8s.io/devices"),
    ],
)
def test_an_entry_that_counts_something_passes(entry: str) -> None:
    assert list(problems_of_entries({entry: "3"})) == []


def test_numbers_of_objects_are_bounded_unless_the_quota_does() -> None:
    body = object_counts(None, OF_RUNS)
    assert body
    assert body["spec"]["hard"] == {"count/rayjobs.ray.io": "500", "count/jobs.batch": "500"}
    assert "rayjobs" in body["metadata"]["annotations"]["pulumi.com/waitFor"]
    more = object_counts(QuotaSettings(hard={"count/rayjobs.ray.io": "2000"}), OF_RUNS)
    assert more
    assert more["spec"]["hard"] == {"count/jobs.batch": "500"}
    assert object_counts(QuotaSettings(hard=dict.fromkeys(OF_RUNS, "9")), OF_RUNS) is None
    pods = object_counts(QuotaSettings(pods=5), {"count/pods": 10})
    assert pods is None
    assert object_counts(None, {}) is None
