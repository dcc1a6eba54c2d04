"""What applying a stack file does to live RayServices, RayJobs and tenants that it no longer has."""

from typing import Any

import pytest

from components.cluster import ForbiddenError
from kuberay.edits import Verdict
from stacks.commands.impact.comparison import impact_of, impact_on
from stacks.commands.impact.live import others
from stacks.commands.impact.report import report
from stacks.objects.stack import render
from testbed.fake_cluster import FakeCluster
from tests.unit.planning.stacks import stack, tenant

IMAGE = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
MADE = {"managedFields": [{"manager": "pulumi-ray-platform-prod"}]}
READY = {"conditions": [{"type": "HeadPodReady", "status": "True"}]}
PENDING = {"pendingServiceStatus": {"rayClusterName": "chat-1"}}
SERVES = {"activeServiceStatus": {"rayClusterName": "chat-1", "applicationStatuses": {"chat": {"status": "RUNNING"}}}}


def service(**more: Any) -> dict[str, Any]:
    config = {"applications": [{"import_path": "chat:app"}]}
    return {"services": [{"name": "chat", "serveConfigV2": config, "cluster": {**IMAGE, **more}}]}


def job(**more: Any) -> dict[str, Any]:
    return {"jobs": [{"name": "count", "entrypoint": "python count.py", "cluster": IMAGE, **more}]}


def live(before: dict[str, Any], **status: Any) -> FakeCluster:
    """A cluster with the RayService or RayJob of these settings, and the RayCluster chat-1 with two pods."""
    found = FakeCluster()
    found.served = {"rayclusters", "rayservices", "rayjobs", "raycronjobs"}
    for (kind, _), each in render(stack(tenant("a", **before))).items():
        if kind in ("RayService", "RayJob"):
            metadata = {"namespace": "a", **each.body["metadata"], **MADE}
            found.add({**each.body, "metadata": metadata, "status": status})
            spec = each.body["spec"].get("rayClusterConfig", {})
            ready = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec, "status": READY}
            owner = [{"kind": kind, "name": metadata["name"]}]
            found.add({**ready, "metadata": {"namespace": "a", "name": "chat-1", "ownerReferences": owner}})
    for name, kind in (("head", "head"), ("worker", "worker")):
        labels = {"ray.io/cluster": "chat-1", "ray.io/node-type": kind, "ray.io/group": kind}
        pod = {"namespace": "a", "name": name, "labels": labels}
        found.add({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {}, "status": {}})
    return found


def applied(cluster: FakeCluster, *tenants: dict[str, Any]) -> dict[str, tuple[Verdict, str]]:
    """The verdict on each object but RayClusters, with the sentence of its worst effect."""
    after = stack(*tenants)
    found = impact_on({}, after, "prod", others(cluster, after, "prod"))
    assert cluster.changes == []
    shown = [each for each in found.objects if each.kind != "RayCluster"]
    return {
        f"{each.kind} {each.name}": (each.verdict, f"{each.effects[0].text}. {each.effects[0].safer}") for each in shown
    }


def test_what_has_not_changed_has_no_line() -> None:
    assert applied(live(service(), **SERVES), tenant("a", **service())) == {}
    assert applied(live(job(), jobDeploymentStatus="Running"), tenant("a", **job())) == {}


def test_an_edit_of_its_cluster_replaces_that_of_a_service_with_the_pods_that_run() -> None:
    edit = tenant("a", **service(image="rayproject/ray:2.60.0-py312"))
    [(verdict, text)] = applied(live(service(), **SERVES), edit).values()
    assert (verdict, "a second RayCluster starts" in text, "2 pods" in text) == (Verdict.ROLLING, True, True)


def test_a_pending_cluster_that_does_not_answer_keeps_its_pods_and_the_way_out_is_named() -> None:
    edit = tenant("a", **service(image="rayproject/ray:2.60.0-py312"))
    [(verdict, text)] = applied(live(service(), **PENDING), edit).values()
    assert verdict is Verdict.IGNORED
    assert "kubectl delete raycluster -n a chat-1" in text
    without_head = live(service(), **PENDING)
    without_head.objects["/apis/ray.io/v1/namespaces/a/rayclusters/chat-1"]["status"] = {}
    [(verdict, _)] = applied(without_head, edit).values()
    assert verdict is Verdict.ROLLING


def test_what_the_file_no_longer_has_is_deleted_if_the_stack_made_it() -> None:
    assert applied(live(service(), **SERVES), tenant("a"))["RayService a/chat"][0] is Verdict.DELETES
    of_others = live(service(), **SERVES)
    of_others.objects["/apis/ray.io/v1/namespaces/a/rayservices/chat"]["metadata"]["managedFields"] = []
    assert applied(of_others, tenant("a")) == {}


@pytest.mark.parametrize(
    ("state", "edited", "removed"),
    [("Running", Verdict.REPLACES, Verdict.DELETES), ("Complete", Verdict.IN_PLACE, Verdict.REMOVES)],
)
def test_a_job_that_has_ended_loses_nothing(state: str, edited: Verdict, removed: Verdict) -> None:
    there = live(job(), jobDeploymentStatus=state)
    assert applied(there, tenant("a", **job(runId="2")))["RayJob a/count"][0] is edited
    assert applied(there, tenant("a"))["RayJob a/count"][0] is removed


def namespace(cluster: FakeCluster) -> FakeCluster:
    metadata = {"name": "a", "labels": {"ray-platform/tenant": "a"}, **MADE}
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return cluster


def test_up_refuses_to_remove_a_tenant_in_which_something_runs() -> None:
    verdict, text = applied(namespace(live(service(), **SERVES)), tenant("b"))["Namespace a"]
    assert (verdict, "RayService a/chat" in text, "allowDelete" in text) == (Verdict.REFUSED, True, True)
    empty = namespace(FakeCluster())
    empty.served = {"rayclusters", "rayservices", "rayjobs", "raycronjobs"}
    assert applied(empty, tenant("b"))["Namespace a"][0] is Verdict.DELETES


def test_in_files_what_belongs_to_a_removed_tenant_says_what_up_refuses() -> None:
    found = impact_of(stack(tenant("a", **service()), tenant("b")), stack(tenant("b")))
    there = {each.kind: each for each in found.objects}
    assert there["Namespace"].verdict is Verdict.REFUSED
    for kind in ("RayCluster", "RayService"):
        assert there[kind].verdict is Verdict.DELETES
        assert "while it runs, `pulumi up` refuses to remove its tenant" in there[kind].effects[0].text


def test_an_up_that_fails_is_the_last_line() -> None:
    cluster = namespace(live(service(), **SERVES))
    after = stack(tenant("b"))
    sentences = report("edit", impact_on({}, after, "prod", others(cluster, after, "prod"))).sentences
    assert sentences[-1].startswith("`pulumi up` fails: Namespace a. The edit disrupts no RayCluster, ")


def test_an_account_that_may_not_list_namespaces_is_told() -> None:
    cluster = live(service(), **SERVES)
    after = stack(tenant("a", **service()))
    found = others(_forbidding(cluster), after, "prod")
    assert found.owners
    assert found.notes == ("Whether the file removes a tenant is unknown: namespaces is forbidden.",)


def _forbidding(cluster: FakeCluster) -> FakeCluster:
    """Refuses to list namespaces, and nothing else."""
    request = cluster.request

    def refuses(method: str, path: str, **options: Any) -> Any:
        if path == "/api/v1/namespaces":
            raise ForbiddenError("namespaces is forbidden")
        return request(method, path, **options)

    cluster.request = refuses  # type: ignore[method-assign]
    return cluster
