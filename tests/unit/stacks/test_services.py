"""RayServices in a stack: what they use between and during updates, who reaches their pods, what an edit does."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from components.ray_service.manifests import demand_of_service, demand_of_update
from components.ray_service.settings import SERVICE_LABEL
from stacks.commands.impact.other_objects import of_objects
from stacks.load import parse
from stacks.objects.network import policies_of_clusters
from stacks.objects.ray_clusters import rendered_service
from stacks.objects.stack import render
from stacks.planning.overcommitment import overcommitments
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings
from tests.unit.findings import findings

GPU = {"groupName": "gpu", "pool": "a100", "gpus": 8, "cpu": 32, "memory": "128Gi", "replicas": 1}
CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "autoscaling": False, "workerGroups": [GPU]}
CONFIG = {"applications": [{"import_path": "chat:app"}]}
NODES = [{"pool": "a100", "count": 2, "cpu": 64, "memory": "512Gi", "gpus": 8}]

Entry = dict[str, Any]

IN_PLACE_ONLY: Entry = {"upgradeStrategy": {"type": "None"}}


def service(name: str = "chat", **settings: Any) -> Entry:
    return copy.deepcopy({"name": name, "serveConfigV2": CONFIG, "cluster": CLUSTER, **settings})


def values(*services: Entry, others: Entry | None = None, **tenant: Any) -> Entry:
    return {"nodes": NODES, "tenants": [{"name": "team-a", "services": [*services], **tenant}], **(others or {})}


def stack(*services: Entry, **more: Any) -> StackSettings:
    return parse(values(*services, **more))


def rules(*services: Entry, **more: Any) -> list[str]:
    return [each.rule for each in findings(values(*services, **more))]


def test_a_service_counts_in_the_plan() -> None:
    (chat,) = plan_of(stack(service())).tenants[0].clusters
    assert (chat.name, int(chat.starts["nvidia.com/gpu"])) == ("team-a/chat", 8)
    assert [group.workers.group for group in chat.groups] == ["head", "gpu"]


def test_the_plan_reports_an_update_that_has_no_room() -> None:
    assert [each.rule for each in overcommitments(plan_of(stack(service())))] == []
    (found,) = overcommitments(plan_of(stack(service(), service("other"))))
    assert found.rule == "updates-fit-nodes"
    assert "1 of team-a/chat (gpu), 1 of team-a/other (gpu)" in found.message
    without = stack(service(**IN_PLACE_ONLY), service("other", **IN_PLACE_ONLY))
    assert list(overcommitments(plan_of(without))) == []


def test_a_quota_has_room_for_the_second_cluster_of_each_service_in_turn() -> None:
    assert stack(service(), service("other", cluster={**CLUSTER, "workerGroups": []}), quota={"gpus": 16})
    assert stack(service(**IN_PLACE_ONLY), quota={"gpus": 8})


@pytest.mark.parametrize(
    ("strategy", "at_rest", "updating"),
    [
        # The head has five ports, and Serve's Service has one of them.
        ("NewCluster", ("3", "11"), ("1", "5")),
        ("NewClusterWithIncrementalUpgrade", ("3", "11"), ("2", "6")),
    ],
)
def test_the_services_of_kuberay_are_counted(
    strategy: str, at_rest: tuple[str, str], updating: tuple[str, str]
) -> None:
    settings = stack(service(cluster={**CLUSTER, "head": {"serviceType": "LoadBalancer"}}))
    spec = rendered_service(settings, settings.tenants[0], settings.tenants[0].services[0])["spec"]
    body = {"metadata": {"name": "chat"}, "spec": {**spec, "upgradeStrategy": {"type": strategy}}}
    resting = demand_of_service(body, None)
    for demand, counted in ((resting, at_rest), (demand_of_update(resting, body), updating)):
        assert tuple(str(demand.objects[f"services.{entry}"]) for entry in ("loadbalancers", "nodeports")) == counted


def test_who_may_reach_serve_reaches_every_pod_of_a_service() -> None:
    settings = stack(service(), network={"serveFrom": ["gateway"], "otherClusters": True})
    policies = {
        body["metadata"]["name"]: body["spec"] for _, body in policies_of_clusters(settings, settings.tenants[0])
    }
    assert policies["cluster.chat"]["podSelector"] == {"matchLabels": {SERVICE_LABEL: "chat"}}
    opened = {rule["ports"][0]["port"]: rule["from"] for rule in policies["cluster.chat"]["ingress"] if "ports" in rule}
    assert opened[8000] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateway"}}}]
    others = policies["clusters-other"]["podSelector"]["matchExpressions"]
    assert {"key": SERVICE_LABEL, "operator": "DoesNotExist"} in others


def change(edit: Callable[[Entry], Any], **before: Any) -> list[tuple[str, str]]:
    """Verdict and text of each effect of an edit on a service."""
    entry = service(**before)
    was = render(stack(copy.deepcopy(entry)))
    edit(entry)
    found = [each for each in of_objects(was, render(stack(entry))) if each.kind == "RayService"]
    return [(str(effect.verdict), effect.text) for each in found for effect in each.effects]


def serve(entry: Entry) -> None:
    entry["serveConfigV2"]["applications"][0]["args"] = {"model": "larger"}


def environment(entry: Entry) -> None:
    entry["cluster"]["env"] = {"LEVEL": "2"}


def both(entry: Entry) -> None:
    serve(entry)
    environment(entry)


def workers(entry: Entry) -> None:
    entry["cluster"]["workerGroups"][0] |= {"replicas": 2, "maxReplicas": 2}


def group(entry: Entry) -> None:
    entry["cluster"]["workerGroups"].append({"groupName": "cpu", "cpu": 4, "memory": "8Gi", "replicas": 1})


def annotation(entry: Entry) -> None:
    entry["cluster"]["annotations"] = {"example.com/team": "b"}


@pytest.mark.parametrize(
    ("edit", "before", "verdict", "text"),
    [
        (serve, {}, "in place", r"no pod ends$"),
        (both, {}, "rolling", r"a second RayCluster .*, with 2 pods at first; .*; then the first .*, with its 2 pods$"),
        (workers, {}, "not applied", "KubeRay applies it only to the next RayCluster"),
        (environment, IN_PLACE_ONLY, "not applied", "KubeRay applies it only to the next RayCluster"),
        (group, {}, "in place", "the worker groups are added to the running RayCluster"),
        (annotation, {}, "not applied", r"^annotations\b"),
    ],
)
def test_an_edit_of_a_service(edit: Callable[[Entry], Any], before: Entry, verdict: str, text: str) -> None:
    ((found, line),) = change(edit, **before)
    assert found == verdict
    assert re.search(text, line)


def test_adding_and_removing_a_service() -> None:
    def effect(before: StackSettings, after: StackSettings) -> str:
        (found,) = [each for each in of_objects(render(before), render(after)) if each.kind == "RayService"]
        return found.effects[0].text

    assert effect(stack(), stack(service())) == "its RayCluster starts, and serves once its applications run"
    assert effect(stack(service()), stack()) == "nothing serves any more, and its RayCluster is deleted"


def test_kueue_suspends_an_edited_service_and_another_queue_replaces_it() -> None:
    others = {"scheduler": {"kueue": {}}, "queues": [{"name": name} for name in ("one", "two")]}

    def effects(**cluster: Any) -> list[tuple[str, str]]:
        before, after = (
            render(stack(service(cluster={**CLUSTER, "queue": "one", **each}), others=others)) for each in ({}, cluster)
        )
        found = [each for each in of_objects(before, after) if each.kind == "RayService"]
        return [(str(effect.verdict), effect.text) for each in found for effect in each.effects]

    assert effects(env={"LEVEL": "2"}) == [
        ("recreates pods", "Kueue suspends it, which ends 2 pods, and it waits in its queue again")
    ]
    [(verdict, text)] = effects(queue="two")
    assert (verdict, text[:40]) == ("deletes and recreates", "is deleted and recreated: 2 pods end, an")
