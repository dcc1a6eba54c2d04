"""The entry of a live RayCluster in a stack file."""

from typing import Any

import pytest

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from stacks.commands.adopt.entry import entry, tenant_name
from stacks.commands.adopt.live import CannotAdoptError
from stacks.load import parse
from stacks.objects.ray_clusters import rendered as as_rendered
from stacks.objects.ray_clusters import with_tenant_defaults
from tests.unit.adopt.live import IMAGE, live

NOTHING = parse({})


def rendered(cluster: dict[str, Any], account: str | None = None) -> dict[str, Any]:
    """The body that `up` sends for the entry."""
    return ray_cluster(valid(cluster), (), account)


def test_the_stack_renders_the_very_spec_that_runs() -> None:
    made = entry(live(), NOTHING)
    body = rendered(made.cluster)
    assert body["spec"] == live()["spec"]
    assert body["metadata"]["labels"] == {"owner": "ada"}
    assert body["metadata"]["annotations"]["cost-centre"] == "7"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in body["metadata"]["annotations"]


def test_the_entry_sets_adopt_and_an_existing_namespace() -> None:
    made = entry(live(), NOTHING)
    assert made.cluster["adopt"] is True
    assert made.cluster["image"] == IMAGE
    assert [group["groupName"] for group in made.cluster["workerGroups"]] == ["small", "large"]
    assert made.tenant == {"name": "research", "createNamespace": False, "network": {"policies": False}}


def test_the_entry_omits_the_tenants_account() -> None:
    """The pods keep their account, whatever account the tenant sets for its own clusters."""
    stack = parse({"tenants": [{"name": "science", "namespace": "research", "rayDeployer": {"serviceAccount": "ada"}}]})
    made = entry(live(), stack)
    assert rendered(made.cluster, "ada")["spec"] == live()["spec"]


def test_the_entry_omits_the_tenants_pull_secrets() -> None:
    stack = parse({"tenants": [{"name": "research", "images": {"pullSecrets": ["registry"]}}]})
    settings = valid(entry(live(), stack).cluster)
    assert ray_cluster(with_tenant_defaults(stack.tenants[0], settings), ())["spec"] == live()["spec"]


def test_a_cluster_whose_images_a_mirror_would_rename_is_refused() -> None:
    stack = parse({"images": {"mirrors": {"docker.io": "registry.example.com"}}})
    with pytest.raises(CannotAdoptError, match=r"because of spec\.headGroupSpec, spec\.workerGroupSpecs"):
        entry(live(), stack)


def test_on_another_stacks_platform_the_entry_sets_nothing_that_belongs_to_the_platform() -> None:
    assert entry(live(), parse({"platform": {}})).tenant == {"name": "research", "createNamespace": False}


def test_workers_of_the_autoscaler_are_kept() -> None:
    body = live()
    body["spec"] |= {"enableInTreeAutoscaling": True, "autoscalerOptions": {"version": "v2"}}
    body["spec"]["workerGroupSpecs"][1]["scaleStrategy"] = {"workersToDelete": []}
    assert rendered(entry(body, NOTHING).cluster)["spec"] == body["spec"]


def test_an_external_redis_stays_although_the_stack_has_one() -> None:
    body = live()
    body["spec"]["gcsFaultToleranceOptions"] = {"redisAddress": "redis:6379", "externalStorageNamespace": "mine"}
    made = entry(body, parse({"redis": {}}))
    assert rendered(made.cluster)["spec"] == body["spec"]
    assert "faultTolerance" not in made.cluster
    assert made.cluster["overrides"]["gcsFaultToleranceOptions"]["externalStorageNamespace"] == "mine"


def test_a_cluster_that_the_stack_has_is_refused() -> None:
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": IMAGE}
    stack = parse({"tenants": [{"name": "research", "clusters": [cluster]}]})
    with pytest.raises(CannotAdoptError, match="'training' of tenant 'research' already: there is nothing to adopt"):
        entry(live(), stack)


def test_a_spec_that_the_operator_refuses_is_not_taken_in() -> None:
    body = live()
    body["spec"]["workerGroupSpecs"][0]["minReplicas"] = 9
    with pytest.raises(CannotAdoptError, match="minReplicas"):
        entry(body, NOTHING)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("research", "research"), ("7-dwarfs", "team-7-dwarfs"), ("a" * 39 + "-b", "a" * 39)],
)
def test_a_tenants_name_comes_from_its_namespace(namespace: str, name: str) -> None:
    assert tenant_name(namespace) == name


QUEUES = {"scheduler": {"volcano": {}}, "queues": [{"name": "research", "allowedNamespaces": ["research"]}]}

LABELS = {
    "owner": "ada",
    "volcano.sh/queue-name": "research",
    "ray.io/priority-class-name": "urgent",
    "volcano.sh/network-topology-mode": "hard",
    "volcano.sh/network-topology-highest-tier-allowed": "2",
}


def labelled(**labels: str) -> dict[str, Any]:
    return live(labels=LABELS | labels)


def test_in_a_stack_with_a_scheduler_its_labels_become_settings_and_do_not_change() -> None:
    stack = parse(QUEUES)
    made = entry(labelled(), stack).cluster
    assert made["labels"] == {"owner": "ada"}
    assert (made["queue"], made["priorityClass"]) == ("research", "urgent")
    assert made["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    tenant = {"name": "research", "createNamespace": False, "clusters": [made]}
    adopted = parse({**QUEUES, "tenants": [tenant]})
    body = as_rendered(adopted, adopted.tenants[0], adopted.tenants[0].clusters[0])
    assert body["metadata"]["labels"] == LABELS
    assert body["spec"] == live()["spec"]


def test_a_cluster_that_gets_its_tenants_queue_has_a_note() -> None:
    stack = parse({"scheduler": {"volcano": {}}, "tenants": [{"name": "research", "queue": {}}]})
    assert "from then on it waits in queue research, its tenant's" in entry(live(), stack).notes


@pytest.mark.parametrize(
    "label",
    [
        {"volcano.sh/queue-name": "default"},
        {"volcano.sh/network-topology-mode": "Hard"},
        {"ray.io/priority-class-name": "Urgent"},
    ],
)
def test_labels_that_no_setting_can_say_are_refused_by_name(label: dict[str, str]) -> None:
    with pytest.raises(CannotAdoptError, match=r"cannot be written"):
        entry(labelled(**label), parse(QUEUES))


def test_without_a_scheduler_the_labels_are_labels() -> None:
    assert entry(labelled(), NOTHING).cluster["labels"] == LABELS
