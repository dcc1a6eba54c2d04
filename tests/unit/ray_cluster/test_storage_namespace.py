"""The storage namespace of a RayCluster: when it is replaced, and the warnings about keys that are left."""

import re
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, path_of
from components.dynamic.redis_keys import StorageNamespaceProvider, cleanup_warning, failure_reason
from testbed.fake_cluster import FakeCluster, of_all_sessions

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


def test_it_does_not_change_while_its_cluster_exists(in_memory: FakeCluster) -> None:
    live(in_memory, RUNNING)
    assert changed() == []


def test_another_cluster_has_another_name(in_memory: FakeCluster) -> None:
    live(in_memory, RUNNING)
    assert changed(namespace="team-b") == ["namespace"]
    assert changed(cluster="serving") == ["cluster"]


@pytest.mark.parametrize("cluster", [None, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}])
def test_a_cluster_does_not_reuse_the_keys_of_a_deleted_one(
    in_memory: FakeCluster, cluster: dict[str, Any] | None
) -> None:
    live(in_memory, cluster)
    assert changed() == ["cluster"]


def test_an_unreachable_api_server_changes_no_keys(in_memory: FakeCluster) -> None:
    live(in_memory, ClusterUnreachableError("no answer"))
    assert changed() == []


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


def test_a_completed_cleanup_causes_no_warning() -> None:
    assert failure_reason([event("RayCluster", "training", "CreatedRedisCleanupJob")], "training") is None


def test_a_cleanup_that_kuberay_gave_up_is_reported() -> None:
    gave_up = event("RayCluster", "training", "ForceDeletedStuckCluster")
    failed = event("Job", "training-redis-cleanup", "BackoffLimitExceeded")
    assert failure_reason([failed, gave_up], "training") == "ForceDeletedStuckCluster!"
    assert failure_reason([gave_up], "serving") is None


@pytest.mark.parametrize("reason", ["BackoffLimitExceeded", "DeadlineExceeded"])
def test_a_failed_cleanup_job_is_reported(reason: str) -> None:
    reason_left = failure_reason([event("Job", "training-redis-cleanup", reason)], "training")
    assert reason_left == f"Job training-redis-cleanup failed: {reason}!"


def test_a_job_with_a_long_name_is_recognized_by_its_end() -> None:
    name = "a" * 53
    job = f"{name}-redis-cleanup"[-63:]
    assert failure_reason([event("Job", job, "DeadlineExceeded")], name) is not None


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
