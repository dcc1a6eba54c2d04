"""In which order tenants request workers, and the errors of a rehearsal, whole or in part."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from kubernetes import client

from local import paths
from local.errors import RehearsalError
from local.nodes import SimulatedNodes
from local.plugins import select
from local.rehearse import players
from local.rehearse import session as rehearse_session
from local.rehearse.cluster import Cluster
from local.rehearse.observed import Pod
from local.rehearse.players import Ask, asks, enough, settles
from local.rehearse.session import Session, diagnostics, folder, violations
from local.supervision import Program, daemonize
from stacks.planning.plan import plan_of
from tests.unit.planning.stacks import always, cluster, stack, tenant

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


def test_the_diagnostics_of_an_update_are_its_errors() -> None:
    assert diagnostics(FAILED) == (
        "1 error occurred:",
        '* admission webhook "jobs.example.com" denied the request: no jobs at night',
    )


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


def test_violations_of_mandatory_rules_are_errors() -> None:
    place = "RayCluster/team-a/training: spec.headGroupSpec.template.spec.hostNetwork"
    assert violations(BROKEN) == (f"pod-no-host: {place}: shares it with the node. Remove it.",)
    assert diagnostics(BROKEN) == ()
    assert violations(FAILED) == ()


def test_an_update_that_printed_no_errors_has_none_in_the_report() -> None:
    assert diagnostics("Updating (prod):\n") == ()


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


def test_a_group_without_a_cap_requests_as_many_workers_as_fit_on_the_nodes() -> None:
    plan = plan_of(stack(tenant("a", of_cpus())))
    assert [(each.group, each.most) for each in asks(plan)] == [("cpu", 16)]


@pytest.mark.parametrize(("taken", "running", "asked"), [(0, 0, 4), (16, 0, 3), (31, 3, 4), (32, 0, 1), (32, 4, 4)])
def test_one_worker_more_is_requested_than_fits_on_the_free_gpus(taken: int, running: int, asked: int) -> None:
    plan = plan_of(stack(tenant("a")))
    [whole, *_] = asks(plan)
    assert enough(plan, whole, {"a100": taken}, running) == asked


def test_the_maximum_of_workers_without_gpus_is_requested() -> None:
    plan = plan_of(stack(tenant("a", of_cpus(maxReplicas=7))))
    [ask] = asks(plan)
    assert enough(plan, ask, {"a100": 32}, 0) == 7


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
