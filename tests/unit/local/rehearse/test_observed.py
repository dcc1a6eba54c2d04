"""What a rehearsal reads from the cluster: ready times, waiting pods and their reasons, refusals by admission."""

from local.rehearse.observed import observed, pod_of
from tests.unit.local.rehearse.bodies import nodes, pod, ray

QUOTA = (
    'failed to create worker pod: pods "training-worker-x7k2p" is forbidden: exceeded quota: ray-platform, '
    "requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)


def test_gpus_are_counted_by_pool_and_owner_where_pods_are_on_nodes() -> None:
    pods = [
        pod("a/training", "head", node="system-0"),
        pod("a/training", "a100-8gpu", 8, "a100-0"),
        pod("a/training", "a100-4gpu", 4, "a100-1"),
        pod("b/tuning", "h100-1gpu", 1, "h100-0"),
        pod("b/tuning", "h100-8gpu", 8),
    ]
    found = observed([], pods, nodes("system-0", "a100-0", "a100-1", "h100-0"), [], [])
    assert found.gpus_by_pool() == {"system": 0, "a100": 12, "h100": 1}
    assert found.gpus_by_owner() == {"a/training": 12, "b/tuning": 1}
    assert [each.group for each in found.waiting()] == ["h100-8gpu"]


def test_the_scheduler_or_volcano_reports_why_a_pod_waits() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available: 4 Insufficient gpu."}
    reported = pod_of(pod("a/training", "a100-8gpu", 8, conditions=[condition]), {}, {})
    gang = {"status": {"conditions": [{"message": "queue resource quota insufficient"}]}}
    of_gang = pod_of(pod("a/training", "a100-8gpu", 8), {}, {"a/ray-training-pg": gang})
    untold = pod_of(pod("a/training", "a100-8gpu", 8), {}, {})
    assert [each.waits for each in (reported, of_gang, untold) if each] == [
        "0/4 nodes are available: 4 Insufficient gpu.",
        "queue resource quota insufficient",
        "",
    ]


def test_external_pods_and_pods_that_are_being_deleted_are_ignored() -> None:
    ending, alone = pod("a/training", "head"), pod("a/training", "head")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    del alone["metadata"]["ownerReferences"]
    assert [pod_of(each, {}, {}) for each in (ending, alone)] == [None, None]


def test_the_time_until_ready_is_that_of_kuberays_condition() -> None:
    found = observed([ray("a/training", "2026-01-01T00:00:42Z"), ray("a/tuning")], [], [], [], [])
    assert [(each.name, each.ready, each.seconds) for each in found.clusters] == [
        ("a/training", True, 42.0),
        ("a/tuning", False, None),
    ]


def test_the_same_refusal_of_many_pods_is_reported_once() -> None:
    refused = [ray("a/training", refused=QUOTA), ray("a/tuning", refused="dial tcp: connection refused")]
    job = {"kind": "Job", "namespace": "a", "name": "nightly"}
    events = [
        {
            "type": "Warning",
            "involvedObject": job,
            "message": f'pods "nightly-{each}" is forbidden: violates PodSecurity',
        }
        for each in "ab"
    ]
    [quota, security] = observed(refused, [], [], events, []).refusals
    assert (quota.what, security.what) == ("RayCluster a/training", "Job a/nightly")
    assert quota.message == QUOTA.replace(' "training-worker-x7k2p"', "")
    assert security.message == "pods is forbidden: violates PodSecurity"


def test_other_warnings_are_not_refusals() -> None:
    events = [
        {"type": "Warning", "involvedObject": {"kind": "Pod", "name": "x"}, "message": "0/4 nodes are available"},
        {"type": "Normal", "involvedObject": {"kind": "Job", "name": "x"}, "message": "is forbidden"},
    ]
    assert observed([], [], [], events, []).refusals == ()
