"""External clusters in a stack: what their pods use, where they connect to, and what an edit does to them."""

from typing import Any

from components.external_cluster.settings import EXTERNAL_LABEL
from stacks.commands.impact.other_objects import of_objects
from stacks.load import parse
from stacks.objects.external_ray import to_external
from stacks.objects.stack import render
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings

NODES = [{"pool": "cpu", "count": 1, "cpu": 8, "memory": "32Gi", "gpus": 0}]


def external(**settings: Any) -> dict[str, Any]:
    image = "rayproject/ray:2.60.0"
    return {"name": "lab", "dashboardAddress": "https://ray.example.com:8265", "image": image, **settings}


def stack(*clusters: dict[str, Any], jobs: int = 0, **job: Any) -> StackSettings:
    listed = [
        {"name": f"count-{at}", "entrypoint": "python count.py", "externalCluster": "lab", **job} for at in range(jobs)
    ]
    tenant = {"name": "team-a", "externalClusters": list(clusters), "jobs": listed}
    return parse({"nodes": NODES, "tenants": [tenant]})


def way(**settings: Any) -> Any:
    """Where the policy of an external cluster lets its pods connect to."""
    (found,) = stack(external(**settings)).tenants[0].external_clusters
    policy = to_external(found)["spec"]
    assert policy["podSelector"] == {"matchLabels": {EXTERNAL_LABEL: "lab"}}
    assert policy["policyTypes"] == ["Egress"]
    (rule,) = policy["egress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": found.dashboard.port}]
    return rule.get("to")


def test_pods_connect_to_the_namespace_of_a_service() -> None:
    (peer,) = way(dashboardAddress="http://lab-head-svc.team-b.svc:8265")
    assert peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-b"}}}


def test_pods_connect_to_an_address_or_to_the_networks_of_a_name() -> None:
    assert way(dashboardAddress="http://192.0.2.7:8265") == [{"ipBlock": {"cidr": "192.0.2.7/32"}}]
    assert way(cidrs=["192.0.2.0/24"]) == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_a_name_without_networks_opens_its_port() -> None:
    assert way() is None


def test_the_pods_that_submit_jobs_count_on_the_nodes() -> None:
    plan = plan_of(stack(external(), jobs=17))
    ((pod, number),) = plan.left_out  # eight CPUs have room for 16 with 500m each
    assert (pod.group, number) == ("submitter", 1)


def effects(before: StackSettings, after: StackSettings) -> dict[str, list[str]]:
    found = [each for each in of_objects(render(before), render(after)) if each.kind == "Job"]
    return {each.name: [effect.text for effect in each.effects] for each in found}


def test_the_impact_of_another_address_and_of_another_run() -> None:
    before = stack(external(), jobs=1)
    moved = effects(before, stack(external(dashboardAddress="https://other.example.com:8265"), jobs=1))
    assert moved["team-a/lab-external"] == ["a pod connects to the external cluster again"]
    assert moved["team-a/count-0-external"] == []
    again = effects(before, stack(external(), jobs=1, runId="2"))
    assert again["team-a/count-0-external"][0].startswith("its settings or its runId change: the job stops if it runs")
    assert effects(before, stack(external()))["team-a/count-0-external"] == [
        "its job on the external cluster stops if it runs"
    ]
