"""A RayCluster with `faultTolerance`: its body, conflicting settings, and its storage namespace."""

import re
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError, path_of
from components.dynamic.redis_keys import StorageNamespaceProvider, cleanup_warning, failure_reason
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.objects import ray_cluster_objects
from components.ray_cluster.pods import RedisPlace, deletion_seconds
from components.ray_cluster.problems import redis_problems
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from components.redis.connection import RedisConnection
from core.nodes import NodePool
from kuberay import OperatorContext, validate
from testbed.fake_cluster import FakeCluster, of_all_sessions
from testbed.recorder import Recorder, record

POOLS = (NodePool(pool="cpu", count=2, cpu="8", memory="64Gi"),)
CONNECTION = RedisConnection(
    ("ray-redis-0.ray-redis.ray-system.svc:26379",),
    "ray",
    replicas=2,
    service="ray-redis-sentinel.ray-system.svc:26379",
    namespace="ray-system",
)
WITH_GATEWAY = RedisPlace(CONNECTION, "team-a")
DIRECT = RedisPlace(CONNECTION, "team-a", gateway=None)
TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"


def settings(**keys: Any) -> RayClusterSettings:
    short = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "cpu"}}
    return valid({**short, "faultTolerance": True, **keys})


def spec(place: RedisPlace = WITH_GATEWAY, **keys: Any) -> dict[str, Any]:
    body = ray_cluster(settings(**keys), POOLS, redis=place)
    assert validate(body, OperatorContext()) == []
    assert list(redis_problems(settings(**keys), place, body)) == []
    return dict(body["spec"])


def head(made: Mapping[str, Any]) -> dict[str, Any]:
    return dict(made["headGroupSpec"]["template"]["spec"])


def env(container: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container.get("env", ())}


def provisioned(**keys: Any) -> Recorder:
    objects = list(ray_cluster_objects(settings(**keys), ray_cluster(settings(**keys), POOLS, redis=WITH_GATEWAY)))
    args = RayClusterArgs(settings(**keys), objects, "team-a", POOLS)

    def program() -> None:
        redis = pulumi.CustomResource("t:t:Redis", "redis", {})
        RayCluster("team-a/training", args, pulumi.ResourceOptions(depends_on=[redis]))

    return record(program)


def test_ray_connects_to_the_gateway_in_its_pod() -> None:
    options = spec()["gcsFaultToleranceOptions"]
    assert options["redisAddress"] == "redis://127.0.0.1:6399"
    own = {"name": "ray-redis", "key": "gateway-password"}
    assert options["redisPassword"] == {"valueFrom": {"secretKeyRef": own}}
    assert options["redisUsername"] == {"valueFrom": {"secretKeyRef": {"name": "ray-redis", "key": "username"}}}


def test_the_gateway_is_only_in_the_head_and_starts_before_its_clients() -> None:
    own = {"spec": {"initContainers": [{"name": "fetch", "image": "busybox"}]}}
    made = spec(tls={}, head={"podTemplate": own})
    assert [each["name"] for each in head(made)["initContainers"]] == ["redis-gateway", "certificate", "fetch"]
    workers = made["workerGroupSpecs"][0]["template"]["spec"]
    assert [each["name"] for each in workers["initContainers"]] == ["certificate"]


def test_without_a_gateway_ray_retries_for_the_time_of_a_failover_unless_configured() -> None:
    made = spec(DIRECT)
    options = made["gcsFaultToleranceOptions"]
    assert options["redisAddress"] == "redis://ray-redis-sentinel.ray-system.svc:26379"
    assert options["redisPassword"]["valueFrom"]["secretKeyRef"]["key"] == "password"
    assert "initContainers" not in head(made)
    assert env(head(made)["containers"][0])["RAY_num_redis_request_retries"] == "9"
    [ray] = head(spec(DIRECT, head={"env": {"RAY_num_redis_request_retries": "20"}}))["containers"]
    assert [each["value"] for each in ray["env"] if each["name"] == "RAY_num_redis_request_retries"] == ["20"]


def test_without_a_gateway_ray_checks_the_certificate_of_redis_itself() -> None:
    encrypted = RedisPlace(RedisConnection(("redis:6379",), None, replicas=0, tls=True), "team-a", gateway=None)
    made = spec(encrypted, volumes=[{"name": "data", "emptyDir": {}}])
    assert made["gcsFaultToleranceOptions"]["redisAddress"] == "rediss://redis:6379"
    [ray] = head(made)["containers"]
    assert env(ray)["RAY_REDIS_CA_CERT"] == "/etc/ray/redis/ca.crt"
    assert [each["mountPath"] for each in ray["volumeMounts"]] == ["/etc/ray/redis"]
    assert {"data", "ray-redis"} <= {each["name"] for each in head(made)["volumes"]}


@pytest.mark.parametrize("configured", [{}, {"podDefaults": "none"}, {"runAsUser": "image"}])
def test_the_gateway_is_always_restricted_and_may_have_the_user_of_its_image(configured: dict[str, Any]) -> None:
    [gateway] = head(spec(**configured))["initContainers"]
    assert gateway["securityContext"]["runAsNonRoot"] is True
    assert ("runAsUser" in gateway["securityContext"]) == ("runAsUser" not in configured)


def test_a_cluster_without_fault_tolerance_is_unchanged() -> None:
    assert "redis" not in str(spec(faultTolerance=False)).lower()


def test_worker_timeouts_longer_than_the_heads_are_accepted() -> None:
    spec(workers={"pool": "cpu", "env": {TIMEOUT: "120"}})
    spec(head={"env": {TIMEOUT: "30"}}, workers={"pool": "cpu", "env": {TIMEOUT: "60"}})


def test_each_new_cluster_with_fault_tolerance_has_its_own_storage_namespace() -> None:
    recorder = provisioned()
    named = recorder.registered["team-a/training-storage-namespace"]
    assert (named.inputs["namespace"], named.inputs["cluster"]) == ("team-a", "training")
    assert recorder.made_before("team-a/training-storage-namespace", "team-a/training-ray-cluster")
    assert recorder.made_before("redis", "team-a/training-ray-cluster")
    assert "team-a/training-storage-namespace" not in provisioned(faultTolerance=False).registered


def test_an_old_kubernetes_is_refused_before_anything_is_created(in_memory: FakeCluster) -> None:
    in_memory.objects["/version"] = {"major": "1", "minor": "28"}
    with pytest.raises(pulumi.RunError, match=r"needs Kubernetes 1\.29"):
        provisioned()


@pytest.mark.parametrize(
    ("annotation", "limit"), [(None, 600), ("60", 600), ("1200", 1500), ("soon", 600), ("-5", 600)]
)
def test_the_deletion_timeout_is_kuberays(annotation: str | None, limit: int) -> None:
    assert deletion_seconds({"ray.io/gcs-ft-deletion-timeout": annotation} if annotation else {}) == limit


PLACE: dict[str, Any] = {"namespace": "team-a", "cluster": "training", "connection": {}, "name": None, "made": None}


def live(in_memory: FakeCluster, cluster: dict[str, Any] | Exception | None) -> None:
    """The RayCluster in the API server."""
    path = path_of("ray.io/v1", "rayclusters", "team-a", "training")
    in_memory.errors.clear()
    in_memory.objects.clear()
    if isinstance(cluster, Exception):
        in_memory.fail(cluster)
    elif cluster is not None:
        in_memory.objects[path] = cluster


RUNNING = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}


def made() -> dict[str, Any]:
    """A storage namespace that was created with its RayCluster."""
    with pytest.MonkeyPatch.context() as before:
        of_all_sessions(before)
        return created()


def created() -> dict[str, Any]:
    outs = StorageNamespaceProvider().create(PLACE).outs
    assert outs is not None
    return outs


def changed(**news: Any) -> list[str]:
    """The keys that replace it."""
    return list(StorageNamespaceProvider().diff("id", made(), {**PLACE, **news}).replaces or [])


def test_names_are_unique() -> None:
    names = {made()["name"] for _ in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"team-a\.training\.[0-9a-f]{10}", name) for name in names)


@pytest.mark.parametrize(
    ("there", "news", "replaced"),
    [
        (RUNNING, {}, []),
        (RUNNING, {"namespace": "team-b"}, ["namespace"]),
        (RUNNING, {"cluster": "serving"}, ["cluster"]),
        (None, {}, ["cluster"]),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {}, ["cluster"]),
        (ClusterUnreachableError("no answer"), {}, []),
    ],
    ids=["exists", "another namespace", "another cluster", "deleted", "is deleted", "no answer"],
)
def test_keys_stay_those_of_their_cluster_while_it_exists(
    in_memory: FakeCluster, there: dict[str, Any] | Exception | None, news: dict[str, str], replaced: list[str]
) -> None:
    live(in_memory, there)
    assert changed(**news) == replaced


def test_another_context_does_not_change_it(in_memory: FakeCluster) -> None:
    live(in_memory, RUNNING)
    olds = made()
    news = {**PLACE, "connection": {"context": "renamed"}}
    assert StorageNamespaceProvider().diff("id", olds, news).changes
    assert StorageNamespaceProvider().update("id", olds, news).outs == {**olds, "connection": {"context": "renamed"}}


def of_cluster(keys: str | None, **metadata: str) -> dict[str, Any]:
    options = {"gcsFaultToleranceOptions": {"externalStorageNamespace": keys}} if keys else {}
    return {"metadata": {**RUNNING["metadata"], **metadata}, "spec": options}


def test_a_lost_state_reads_the_keys_of_a_running_cluster_again(in_memory: FakeCluster) -> None:
    live(in_memory, of_cluster("team-a.training.0123456789"))
    assert created()["name"] == "team-a.training.0123456789"
    assert created()["made"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "cluster",
    [
        of_cluster(None),
        of_cluster("set-by-hand"),
        of_cluster("team-a.serving.0123456789"),
        of_cluster("team-a.training.0123456789", deletionTimestamp="2026-01-02T00:00:00Z"),
    ],
    ids=["none", "not ours", "another cluster's", "of one that goes"],
)
def test_other_keys_are_not_reused(in_memory: FakeCluster, cluster: dict[str, Any]) -> None:
    live(in_memory, cluster)
    assert created()["name"] != (cluster["spec"].get("gcsFaultToleranceOptions") or {}).get("externalStorageNamespace")
    assert re.fullmatch(r"team-a\.training\.[0-9a-f]{10}", created()["name"])


def event(kind: str, name: str, reason: str, at: str = "2026-01-02T00:00:00Z") -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {"involvedObject": about, "reason": reason, "message": f"{reason}!", "lastTimestamp": at}


GAVE_UP = event("RayCluster", "training", "ForceDeletedStuckCluster")
CUT = f"{'a' * 53}-redis-cleanup"[-63:]
"""The Job of a cluster with a long name: KubeRay cuts its beginning."""


@pytest.mark.parametrize(
    ("events", "cluster", "why"),
    [
        ([event("RayCluster", "training", "CreatedRedisCleanupJob")], "training", None),
        ([event("Job", "training-redis-cleanup", "BackoffLimitExceeded"), GAVE_UP], "training", GAVE_UP["message"]),
        ([GAVE_UP], "serving", None),
        *(
            ([event("Job", "training-redis-cleanup", each)], "training", f"Job training-redis-cleanup failed: {each}!")
            for each in ("BackoffLimitExceeded", "DeadlineExceeded")
        ),
        ([event("Job", CUT, "DeadlineExceeded")], "a" * 53, f"Job {CUT} failed: DeadlineExceeded!"),
    ],
)
def test_a_cleanup_that_failed_or_that_kuberay_gave_up_is_reported(
    events: list[dict[str, Any]], cluster: str, why: str | None
) -> None:
    assert failure_reason(events, cluster) == why


def test_events_of_an_earlier_cluster_of_the_name_do_not_count() -> None:
    gave_up = event("RayCluster", "training", "ForceDeletedStuckCluster", at="2026-01-01T00:00:00Z")
    gave_up |= {"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "team-a", "name": "gave-up"}}
    cluster = FakeCluster(gave_up)
    assert cleanup_warning(cluster, "team-a", "training", "team-a.training.1", "2026-01-01T12:00:00Z") is None
    warning = cleanup_warning(cluster, "team-a", "training", "team-a.training.1", "2025-12-31T00:00:00Z")
    assert warning is not None
    assert "RAYteam-a.training.1@*" in warning


def test_an_unknown_cleanup_result_is_reported() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    warning = cleanup_warning(cluster, "team-a", "training", "team-a.training.1", "2026-01-01T00:00:00Z")
    assert warning is not None
    assert "it cannot be determined whether Redis was cleaned up: no usable kubeconfig" in warning
