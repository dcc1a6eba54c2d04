"""A rehearsal: what it plays and reads, how it compares that with the plan, and which errors it reports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from kubernetes import client

from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from local import paths
from local.errors import RehearsalError
from local.nodes import SimulatedNodes
from local.plugins import select
from local.rehearse import comparison, players
from local.rehearse import session as rehearse_session
from local.rehearse.cluster import Cluster
from local.rehearse.comparison import Beside
from local.rehearse.observed import Observed, Pod, observed, pod_of
from local.rehearse.players import Ask, asks, enough, settles
from local.rehearse.report import Rehearsed, as_object, report
from local.rehearse.session import Session, diagnostics, folder, violations
from local.supervision import Program, daemonize
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


def test_the_same_refusal_of_many_pods_is_reported_once_and_no_other_warning() -> None:
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


def test_the_cluster_of_a_job_or_service_is_found_by_its_name_and_the_submitter_is_not_compared() -> None:
    image = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    jobs = [{"name": "count", "entrypoint": "python count.py", "cluster": image}]
    config = {"applications": [{"import_path": "chat:app"}]}
    services = [{"name": "chat", "serveConfigV2": config, "cluster": image}]
    of_job, of_service = (pod(f"a/{name}-x7k2p", "head", node="a100-3") for name in ("count", "chat"))
    of_job["metadata"]["labels"][JOB_LABEL] = "count"
    of_service["metadata"]["labels"][SERVICE_LABEL] = "chat"
    settings = stack(tenant("a", jobs=jobs, services=services))
    result = rehearsed(settings, observed([], [*heads("a/training"), of_job, of_service], NODES, [], []))
    assert [group.workers.group for group in result.plan.tenants[0].clusters[1].groups] == ["head", "submitter"]
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
        "inFileOrder": None,
    }


FAILED = """Updating (prod):
 +  kubernetes:batch/v1:Job nightly creating (0s) error: the Kubernetes API server refused it

Diagnostics:
  kubernetes:batch/v1:Job (nightly):
    error: 1 error occurred:
        * admission webhook "jobs.example.com" denied the request: no jobs at night

  pulumi:pulumi:Stack (ray-platform-prod):
    error: update failed

Resources:
    + 12 created
    1 errored

Duration: 1m5s
"""


def test_the_diagnostics_of_an_update_and_violations_of_mandatory_rules_are_errors() -> None:
    assert diagnostics(FAILED) == (
        "1 error occurred:",
        '* admission webhook "jobs.example.com" denied the request: no jobs at night',
    )
    assert diagnostics("Updating (prod):\n") == ()
    place = "RayCluster/team-a/training: spec.headGroupSpec.template.spec.hostNetwork"
    assert violations(BROKEN) == (f"pod-no-host: {place}: shares it with the node. Remove it.",)
    assert diagnostics(BROKEN) == ()
    assert violations(FAILED) == ()


BROKEN = """Updating (prod):
Policies:
    ❌ ray-platform-policies@v0.1.0 (local: policies)
        - [mandatory] [severity: critical]  pod-no-host  (kubernetes:ray.io/v1:RayCluster: training)
          Pods have a network, processes and memory of their own.
          RayCluster/team-a/training: spec.headGroupSpec.template.spec.hostNetwork: shares it with the node. Remove it.
        - [advisory] [severity: low]  img-digest  (kubernetes:ray.io/v1:RayCluster: training)
          Images are pinned by their digest.
          RayCluster/team-a/training: spec.headGroupSpec.template.spec.containers[0].image: has no digest. Add it.

Diagnostics:
  pulumi:pulumi:Stack (ray-platform-prod):
    error: update failed

"""


def test_a_rehearsal_has_a_folder_beside_that_of_make_up() -> None:
    assert folder("prod") == paths.ROOT / ".rehearsal-prod"


def test_a_part_that_ends_is_named_and_its_log_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands meet only an API server that does not answer."""
    monkeypatch.setattr(rehearse_session, "install_missing", lambda _tools: None)
    monkeypatch.setattr(SimulatedNodes, "build", lambda *_: None)
    session = Session("dev", paths.ROOT / "Pulumi.dev.yaml", select("stand-in"), tmp_path / "run")
    supervisor = session.rehearsal.supervisor

    def run(*_: object) -> NoReturn:
        program = Program("kube-apiserver", ["sh", "-c", "echo out of memory; exit 1"], {})
        supervisor.start([program], lambda command, variables: daemonize(command, variables, tmp_path / "run"))
        supervisor.launch(program.name)
        configuration = client.Configuration()
        configuration.host, configuration.proxy = "http://127.0.0.1:9", None
        Cluster(client.ApiClient(configuration)).states()
        raise AssertionError

    monkeypatch.setattr(session, "_run", run)
    with pytest.raises(RehearsalError, match=r"kube-apiserver has ended \(with exit status 1[\s\S]*out of memory"):
        session.run()
    assert not list(supervisor.strays())
    assert (tmp_path / "run" / "logs" / "kube-apiserver.log").read_text() == "out of memory\n"
    session.end()
    assert not (tmp_path / "run").exists()


def of_cpus(**more: Any) -> dict[str, Any]:
    """A RayCluster whose workers have no GPUs."""
    made = cluster("training", workerGroups=[{"groupName": "cpu", "cpu": 16, "memory": "32Gi", **more}])
    del made["workers"]
    return made


def test_tenants_request_in_the_order_of_the_file_and_the_largest_workers_first() -> None:
    plan = plan_of(stack(tenant("b", quota={"gpus": 16}), tenant("a", cluster("fixed", workers=always(8, 1)))))
    assert [(each.cluster, each.group, each.most) for each in asks(plan)] == [
        ("b/training", "a100-8gpu", 2),
        ("b/training", "a100-4gpu", 4),
        ("b/training", "a100-2gpu", 8),
        ("b/training", "a100-1gpu", 16),
    ]


def test_a_group_without_a_cap_requests_what_fits_and_one_without_gpus_its_maximum() -> None:
    plan = plan_of(stack(tenant("a", of_cpus())))
    assert [(each.group, each.most) for each in asks(plan)] == [("cpu", 16)]
    plan = plan_of(stack(tenant("a", of_cpus(maxReplicas=7))))
    [ask] = asks(plan)
    assert enough(plan, ask, {"a100": 32}, 0) == 7


@pytest.mark.parametrize(("taken", "running", "asked"), [(0, 0, 4), (16, 0, 3), (31, 3, 4), (32, 0, 1), (32, 4, 4)])
def test_one_worker_more_is_requested_than_fits_on_the_free_gpus(taken: int, running: int, asked: int) -> None:
    plan = plan_of(stack(tenant("a")))
    [whole, *_] = asks(plan)
    assert enough(plan, whole, {"a100": taken}, running) == asked


REFUSED = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]}


class Moments(Cluster):
    """A RayCluster with one worker, whose status changes to the next each time that it is read."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self.statuses: Iterator[dict[str, Any]] = iter(statuses)
        self.read = 0

    def workers(self, name: str, group: str) -> list[Pod]:
        return [Pod(name="one", owner=name, group=group, gpus=1, pool="a100", running=True)]

    def ray(self, name: str) -> dict[str, Any]:
        self.read += 1
        return {"status": next(self.statuses, {})}


@pytest.mark.parametrize(("pods", "rounds"), [(1, 3), (2, 1)])
def test_a_refusal_of_removed_workers_is_ignored(pods: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """KubeRay removes it in its next round, which may be late. Missing pods are refused at once."""
    monkeypatch.setattr(players, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(players, "PAUSE_SECONDS", 0.0)
    cluster, ask = Moments(REFUSED, REFUSED), Ask("a/training", "a100-1gpu", gpus=1, hosts=1, most=2, pools=("a100",))
    assert settles(cluster, ask, pods)
    assert cluster.read == rounds
