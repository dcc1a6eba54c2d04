"""What a rehearsal reads from the cluster, and how it compares that with the plan."""

from typing import Any

from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from local.rehearse import comparison
from local.rehearse.comparison import Beside
from local.rehearse.observed import Observed, observed, pod_of
from local.rehearse.report import Rehearsed, as_object, report
from stacks.commands.plan.text import markdown
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings
from tests.unit.local.rehearse.bodies import nodes, pod, ray
from tests.unit.planning.stacks import always, cluster, stack, tenant

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


NODES = nodes("a100-0", "a100-1", "a100-2", "a100-3")


def gang(name: str, nodes_of_it: int, **more: Any) -> dict[str, Any]:
    return tenant(name, cluster("training", workers=always(8, nodes_of_it), **more))


FITS = stack(gang("a", 2), tenant("b"))

FIVE_NODES = stack(gang("a", 3), gang("b", 2))
"""On four nodes."""


def workers(owner: str, *places: str | None) -> list[dict[str, Any]]:
    return [pod(owner, "a100-8gpu", 8, place) for place in places]


def found(*pods: dict[str, Any], late: bool = False) -> Observed:
    rays = [ray("a/training", "2026-01-01T00:00:10Z"), ray("b/training", None if late else "2026-01-01T00:00:20Z")]
    return observed(rays, pods, NODES, [], [])


def heads(*owners: str) -> list[dict[str, Any]]:
    return [pod(owner, "head", node="a100-3") for owner in owners]


def rehearsed(settings: StackSettings, result: Observed, asked: Observed | None = None) -> Rehearsed:
    plan = plan_of(settings)
    demand = comparison.demand(plan, asked) if asked else None
    start = comparison.start(settings, plan, result)
    return Rehearsed("prod", plan, {"pulumi up": 12.3}, result, (), start, demand)


ALL = [*heads("a/training", "b/training"), *workers("a/training", "a100-0", "a100-1")]


def test_a_result_as_predicted_has_no_differences() -> None:
    all_asked = found(*ALL, *workers("b/training", "a100-2", "a100-3"))
    result = rehearsed(FITS, found(*ALL), all_asked)
    assert result.start.tenants == {"a": Beside(16, 16), "b": Beside(0, 0)}
    assert result.start.pools == {"a100": Beside(16, 16)}
    assert result.start.waiting == ()
    assert result.demand
    assert result.demand.tenants == {"a": Beside(16, 16), "b": Beside(16, 16)}
    assert (result.differences, result.well, result.median) == ((), True, 15.0)


def test_a_tenant_that_gets_less_than_planned_is_a_difference() -> None:
    result = rehearsed(FITS, found(*ALL), found(*ALL))
    assert result.differences == ("at the largest demand, of tenant b 0 GPUs are taken, but the plan predicts 16",)
    assert not result.well


def test_without_gangs_pods_wait_individually() -> None:
    pods = [*heads("a/training", "b/training"), *workers("a/training", "a100-0", "a100-1", "a100-2")]
    result = rehearsed(FIVE_NODES, found(*pods, *workers("b/training", "a100-3", None), late=True))
    [waiting] = result.start.waiting
    assert (waiting.owner, waiting.group, waiting.pods) == ("b/training", "a100-8gpu", Beside(1, 1))
    assert waiting.reasons == ("the scheduler has reported nothing",)
    assert result.differences == ()
    assert result.not_ready == ("b/training",)
    assert not result.well


def test_no_pod_of_a_gang_that_does_not_fit_starts() -> None:
    settings = stack(gang("a", 3), gang("b", 2), scheduler={"volcano": {}})
    pods = [*heads("a/training"), *workers("a/training", "a100-0", "a100-1", "a100-2")]
    waiting = [pod("b/training", "head"), *workers("b/training", None, None)]
    result = rehearsed(settings, found(*pods, *waiting, late=True))
    assert {(each.group, each.pods.predicted, each.pods.found) for each in result.start.waiting} == {
        ("head", 1, 1),
        ("a100-8gpu", 2, 2),
    }
    assert result.start.tenants["b"] == Beside(0, 0)
    assert result.differences == ()


def test_the_cluster_of_a_job_is_found_by_the_jobs_name_and_its_submitter_is_not_compared() -> None:
    image = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    settings = stack(tenant("a", jobs=[{"name": "count", "entrypoint": "python count.py", "cluster": image}]))
    of_job = pod("a/count-x7k2p", "head", node="a100-3")
    of_job["metadata"]["labels"][JOB_LABEL] = "count"
    result = rehearsed(settings, observed([], [*heads("a/training"), of_job], NODES, [], []))
    assert [group.workers.group for group in result.plan.tenants[0].clusters[1].groups] == ["head", "submitter"]
    assert result.start.waiting == ()


def test_the_cluster_of_a_service_is_found_by_the_services_name() -> None:
    image = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    config = {"applications": [{"import_path": "chat:app"}]}
    settings = stack(tenant("a", services=[{"name": "chat", "serveConfigV2": config, "cluster": image}]))
    of_service = pod("a/chat-x7k2p", "head", node="a100-3")
    of_service["metadata"]["labels"][SERVICE_LABEL] = "chat"
    result = rehearsed(settings, observed([], [*heads("a/training"), of_service], NODES, [], []))
    assert result.start.waiting == ()


def test_pods_that_were_never_created_are_differences() -> None:
    result = rehearsed(FITS, found(*heads("a/training", "b/training"), *workers("a/training", "a100-0")))
    assert result.differences == (
        "of a/training (a100-8gpu) 1 pods wait, but the plan predicts 0",
        "at the start, of pool a100 8 GPUs are taken, but the plan predicts 16",
        "at the start, of tenant a 8 GPUs are taken, but the plan predicts 16",
    )


def test_the_report_is_complete_for_people_and_programs() -> None:
    refused = ray("b/training", refused="pods is forbidden: exceeded quota")
    result = rehearsed(FITS, observed([ray("a/training", "2026-01-01T00:00:10Z"), refused], ALL, NODES, [], []))
    text = markdown([report(result)])
    for line in (
        "| pulumi up | 12 s |",
        "| a RayCluster, slowest: a/training | 10 s |",
        "| RayCluster b/training | pods is forbidden: exceeded quota |",
        "| a | 16 | 16 | - | - |",
        "- 1 of 2 RayClusters are ready; not: b/training.",
        "- All is as the plan predicted.",
    ):
        assert line in text
    report_for_programs = as_object(result)
    assert report_for_programs["well"] is False
    assert report_for_programs["tenants"][0] == {
        "tenant": "a",
        "atFirst": {"predicted": 16, "found": 16},
        "inTurn": None,
    }
