"""A live RayCluster to adopt: its entry in a stack file, where it is added, and the resources for it."""

import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.cluster import ClusterUnreachableError, Connection
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from stacks.commands.adopt.entry import CannotInsertError, entry, insert_cluster, tenant_name
from stacks.commands.adopt.live import CannotAdoptError, live_cluster
from stacks.load import parse
from stacks.objects.ray_clusters import rendered as as_rendered
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.program.build import build
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record
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


def test_the_entry_omits_the_tenants_account_and_its_pull_secrets() -> None:
    """The pods keep their account, whatever account the tenant sets for its own clusters."""
    stack = parse({"tenants": [{"name": "science", "namespace": "research", "rayDeployer": {"serviceAccount": "ada"}}]})
    made = entry(live(), stack)
    assert rendered(made.cluster, "ada")["spec"] == live()["spec"]
    stack = parse({"tenants": [{"name": "research", "images": {"pullSecrets": ["registry"]}}]})
    settings = valid(entry(live(), stack).cluster)
    assert ray_cluster(with_tenant_defaults(stack.tenants[0], settings), ())["spec"] == live()["spec"]


HAS_IT = [{"name": "research", "clusters": [{"name": "training", "rayVersion": "2.60.0", "image": IMAGE}]}]


@pytest.mark.parametrize(
    ("stack", "least", "message"),
    [
        ({"images": {"mirrors": {"docker.io": "example.com"}}}, 0, r"of spec\.headGroupSpec, spec\.workerGroupSpecs"),
        ({"tenants": HAS_IT}, 0, "'training' of tenant 'research' already: there is nothing to adopt"),
        ({}, 9, "minReplicas"),
    ],
    ids=["a mirror would rename its images", "the stack has it", "the operator refuses it"],
)
def test_a_cluster_that_would_change_or_is_there_already_is_refused(
    stack: dict[str, Any], least: int, message: str
) -> None:
    body = live()
    body["spec"]["workerGroupSpecs"][0]["minReplicas"] = least
    with pytest.raises(CannotAdoptError, match=message):
        entry(body, parse(stack))


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
    assert entry(labelled(), NOTHING).cluster["labels"] == LABELS


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


TENANT = {"name": "team-a", "createNamespace": False}

CLUSTER = {"name": "tuning", "adopt": True, "env": {"THREADS": "1"}, "workerGroups": [{"groupName": "small"}]}

WRITTEN = """\
# What team A has.
encryptionsalt: v1:abc
config:
  kubernetes:namespace: default
  ray-platform:tenants:
    - name: team-a # the first
      clusters:
        - name: training
          env: {A: "1"}
          annotations:
            note: |
              two
              lines

    # the next one is new
    - name: team-b
      namespace: b
  # the end
  ray-platform:operator: {install: existing}
"""


def tenants(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(text)["config"]["ray-platform:tenants"]
    return found


def only_adds(before: str, after: str) -> bool:
    return not [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("- ")]


def test_it_follows_the_clusters_of_its_tenant_and_nothing_else_changes() -> None:
    text = insert_cluster(WRITTEN, TENANT, CLUSTER)
    assert only_adds(WRITTEN, text)
    first, second = tenants(text)
    assert first["clusters"] == [tenants(WRITTEN)[0]["clusters"][0], CLUSTER]
    assert second == tenants(WRITTEN)[1]
    assert text.index("- name: tuning") < text.index("# the next one is new")


@pytest.mark.parametrize(
    ("added", "at", "tenant"),
    [
        ({"name": "b", "createNamespace": False}, 1, {"name": "team-b", "namespace": "b"}),
        ({"name": "team-b"}, 1, {"name": "team-b", "namespace": "b"}),
        ({"name": "team-c", "createNamespace": False}, 2, {"name": "team-c", "createNamespace": False}),
        # A tenant of a base is named in the file that extends it.
        ({"name": "team-c"}, 2, {"name": "team-c"}),
    ],
)
def test_a_tenant_is_known_by_its_name_or_namespace_and_a_new_one_is_added(
    added: dict[str, Any], at: int, tenant: dict[str, Any]
) -> None:
    text = insert_cluster(WRITTEN, added, CLUSTER)
    assert only_adds(WRITTEN, text)
    assert tenants(text)[at] == {**tenant, "clusters": [CLUSTER]}
    assert at == 2 or text.index("- name: tuning") < text.index("# the end")


def test_the_first_tenant_of_a_file() -> None:
    written = "config:\n  ray-platform:operator: {install: existing}"
    text = insert_cluster(written, TENANT, CLUSTER)
    assert text.startswith(written)
    assert tenants(text) == [{**TENANT, "clusters": [CLUSTER]}]


def test_lines_end_as_those_of_the_file_do() -> None:
    written = WRITTEN.replace("\n", "\r\n")
    text = insert_cluster(written, TENANT, CLUSTER)
    assert text.count("\n") == text.count("\r\n")
    assert only_adds(written, text)
    """An editor of another system has written some of them."""
    mixed = WRITTEN.replace("\n", "\r\n").replace("- name: training\r\n", "- name: training\n")
    text = insert_cluster(mixed, TENANT, CLUSTER)
    assert tenants(text) == tenants(insert_cluster(WRITTEN, TENANT, CLUSTER))
    assert text.count("\n") - text.count("\r\n") == 1
    assert insert_cluster(WRITTEN.removesuffix("\n"), TENANT, CLUSTER) == insert_cluster(WRITTEN, TENANT, CLUSTER)


@pytest.mark.parametrize(
    "written",
    [
        "config: {}",
        "config:\n  ray-platform:tenants: []",
        "config:\n  ray-platform:tenants:\n    - {name: team-a}",
        "config:\n  ray-platform:tenants:\n    - name: team-a\n      clusters: [{name: training}]",
    ],
)
def test_a_list_in_one_line_is_not_edited(written: str) -> None:
    with pytest.raises(CannotInsertError, match="not written as a block"):
        insert_cluster(written, TENANT, CLUSTER)


def test_the_object_is_returned_as_it_is_and_a_missing_one_is_reported_with_those_that_exist() -> None:
    assert live_cluster(FakeCluster(live()), "research", "training") == live()
    with pytest.raises(CannotAdoptError, match=r"no RayCluster 'serving' .* RayClusters there: training, tuning"):
        live_cluster(FakeCluster(live(), live(name="tuning")), "research", "serving")
    with pytest.raises(CannotAdoptError, match=r"has no RayClusters .* is this the right context"):
        live_cluster(FakeCluster(), "research", "training")


@pytest.mark.parametrize("kind", ["RayService", "RayJob"])
def test_a_service_or_job_is_not_adopted(kind: str) -> None:
    cluster = FakeCluster({**live(name="chat"), "kind": kind})
    cluster.served.add("rayclusters")
    with pytest.raises(CannotAdoptError, match=f"research/chat is a {kind}, and only RayClusters are adopted"):
        live_cluster(cluster, "research", "chat")


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"ownerReferences": [{"kind": "RayService", "name": "chat"}]}, "belongs to RayService chat"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "is being deleted"),
    ],
)
def test_a_ray_cluster_that_will_be_deleted_or_reverted_is_refused(metadata: dict[str, Any], shown: str) -> None:
    with pytest.raises(CannotAdoptError, match=shown):
        live_cluster(FakeCluster(live(**metadata)), "research", "training")


def test_a_context_that_the_kubeconfig_does_not_have() -> None:
    cluster = FakeCluster(connection=Connection("staging"))
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(CannotAdoptError, match="with context 'staging': no usable kubeconfig"):
        live_cluster(cluster, "research", "training")


ADOPTED = {"rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "cpu"}}


@pytest.fixture
def built(kubectl_that_renders: Path) -> Recorder:
    stack = {
        "operator": {"location": "config/default"},
        "nodes": [{"pool": "cpu", "count": 1, "cpu": 8, "memory": "64Gi"}],
        "tenants": [
            {
                "name": "team",
                "namespace": "research",
                "createNamespace": False,
                "clusters": [{"name": "old", "adopt": True, **ADOPTED}, {"name": "new", **ADOPTED}],
            }
        ],
    }
    return record(lambda: build(parse(stack)))


def test_it_is_imported_into_its_namespace_which_is_not_owned_and_others_are_made(built: Recorder) -> None:
    imported = {each.name: each.import_id for each in built.registered.values() if each.import_id}
    assert imported == {"research/old-ray-cluster": "research/old"}
    namespaces = [
        each.inputs["metadata"]["name"] for each in built.registered.values() if each.type.endswith("Namespace")
    ]
    assert "research" not in namespaces
    assert built.registered["research/new-ray-cluster"].inputs["metadata"]["namespace"] == "research"
