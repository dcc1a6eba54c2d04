"""Queues: their bodies, order and users, conflicts between them, and RayClusters that could never start in one."""

from decimal import Decimal
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, refuse_queue_in_use
from components.dynamic.pod_group import PodGroupProvider
from components.queues.budget import beyond_quotas, beyond_room, on_nodes, problems_of_queues, rooms
from components.queues.component import Queues, QueuesArgs
from components.queues.kueue import WHOLE, cluster_queue, cohorts, local_queue, resource_flavors
from components.queues.manifests import queue_objects
from components.queues.settings import Queue, QueueSettings, children, parents_first
from components.queues.volcano import volcano_queue
from components.ray_cluster.manifests import NO_SCHEDULING, Scheduling, ray_cluster
from components.ray_cluster.rules import valid
from components.tenant.demand import Demand, demand
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem
from stacks.load import parse
from stacks.objects.queues import queues_of, scheduler_of, scheduling_of, usable
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record
from tests.unit.queues.tree import POOL, amounts, queue, trees

TREE = [queue("vision", "team-a", parent="research"), queue("research"), queue("batch", "team-a", "team-b")]


def made(backend: Any) -> Recorder:
    return record(lambda: Queues("queues", QueuesArgs(list(queue_objects(backend, TREE, [POOL])))))


def test_queues_of_volcano_are_created_after_their_parents_with_policies_that_restrict_their_use() -> None:
    recorder = made("volcano")
    assert recorder.made_before("queues-research", "queues-vision")
    assert len(recorder.kinds()["kubernetes:scheduling.volcano.sh/v1beta1:Queue"]) == 3
    assert recorder.kinds()["kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"] == [
        "queues-ray-platform-queues-binding",
        "queues-ray-platform-queues-early-binding",
    ]
    assert list(queue_objects("volcano", [])) == []


def test_local_queues_are_in_the_namespaces_of_a_queue_and_wait_for_them() -> None:
    def program() -> None:
        namespace = pulumi.CustomResource("test:Namespace", "namespace", {})
        namespaces = {"team-a": namespace.id.apply(lambda _: "team-a")}
        Queues("queues", QueuesArgs(list(queue_objects("kueue", TREE, [POOL])), namespaces))

    recorder = record(program)
    local = recorder.kinds()["kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"]
    assert local == ["queues-batch/team-a", "queues-batch/team-b", "queues-vision/team-a"]
    assert recorder.made_before("namespace", "queues-batch/team-a")
    assert recorder.made_before("queues-cohort-research", "queues-vision")
    assert recorder.kinds()["kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"] == ["queues-batch", "queues-vision"]


def test_the_pod_group_is_updated_after_the_labels_of_its_raycluster() -> None:
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "priorityClass": "urgent"}
    tenant = {"name": "team-a", "queue": "research", "clusters": [cluster]}
    stack = parse({"platform": {}, "scheduler": {"volcano": {}}, "tenants": [tenant]})
    recorder = record(lambda: build(stack))
    gang = recorder.registered["team-a/training-pod-group"].inputs
    assert (gang["namespace"], gang["cluster"]) == ("team-a", "training")
    assert (gang["queue"], gang["priorityClass"]) == ("research", "urgent")
    assert recorder.made_before("team-a/training-ray-cluster", "team-a/training-pod-group")


@pytest.mark.parametrize(
    ("changed", "replaced"), [({"queue": "b"}, []), ({"priorityClass": "b"}, []), ({"cluster": "b"}, ["cluster"])]
)
def test_a_changed_queue_or_priority_is_an_update_in_place(changed: dict[str, str], replaced: list[str]) -> None:
    before = {"namespace": "team-a", "cluster": "a", "queue": "a", "priorityClass": "a", "connection": {}}
    diff = PodGroupProvider().diff("", before, before | changed)
    assert diff.changes
    assert diff.replaces == replaced
    assert not PodGroupProvider().diff("", before, dict(before)).changes


LABEL = "volcano.sh/queue-name"


def ray(kind: str, queue: str | None, **parts: Any) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {LABEL: queue}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": "x", **labels},
        "spec": {},
        **parts,
    }


@pytest.mark.parametrize(
    "there",
    [
        ray("RayCluster", "research"),
        ray("RayCluster", "research", spec={"suspend": True}),
        ray("RayService", "research"),
        ray("RayJob", "research", status={"jobDeploymentStatus": "Running"}),
        ray("RayJob", "research", spec={"suspend": True}, status={"jobDeploymentStatus": "Suspended"}),
    ],
)
def test_a_queue_in_use_is_not_deleted_and_its_users_are_named(there: dict[str, Any]) -> None:
    message = f"queue 'research' is not deleted, because it is used by {there['kind']} team-a/x"
    with pytest.raises(InUseError, match=message):
        refuse_queue_in_use(FakeCluster(there), "research", LABEL)


def test_other_objects_and_jobs_that_have_ended_do_not_block_the_deletion_and_no_answer_does() -> None:
    ended = ray("RayJob", "research", status={"jobDeploymentStatus": "Complete"})
    cluster = FakeCluster(ray("RayCluster", "other"), ray("RayService", None), ended)
    refuse_queue_in_use(cluster, "research", LABEL)
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(InUseError, match="cannot be determined what uses it: no usable kubeconfig"):
        refuse_queue_in_use(cluster, "research", LABEL)


H100 = NodePool(pool="h100", count=2, cpu="96", memory="2000Gi", gpus=8, gpu_product="NVIDIA-H100-80GB-HBM3")

A100_FLAVOR, H100_FLAVOR = "nvidia-a100-sxm4-80gb", "nvidia-h100-80gb-hbm3"


DEFAULTS = {"weight": 1, "reclaimable": True, "priority": 0, "dequeueStrategy": "fifo"}


def test_amounts_of_volcano_are_resource_lists_and_deserved_includes_the_guarantee() -> None:
    vision = queue(
        "vision",
        "team-a",
        "team-b",
        parent="research",
        guarantee={"gpus": 8, "cpu": 32},
        deserved={"gpus": 16},
        capability={"gpus": 24, "cpu": 64, "memory": "1Ti", "resources": {"rdma/hca": 4}},
    )
    assert volcano_queue(vision)["spec"] == {
        **DEFAULTS,
        "parent": "research",
        "guarantee": {"resource": {GPU_RESOURCE: "8", "cpu": "32"}},
        "deserved": {GPU_RESOURCE: "16", "cpu": "32"},
        "capability": {GPU_RESOURCE: "24", "cpu": "64", "memory": "1Ti", "rdma/hca": "4"},
    }
    metadata = volcano_queue(vision)["metadata"]
    assert metadata["annotations"] == {"ray-platform/allowed-namespaces": "team-a,team-b"}
    assert metadata["labels"] == {"ray-platform/queue": "true"}
    # Without amounts there is no limit and no guarantee; zero GPUs are a capability, but no guarantee.
    assert volcano_queue(queue("team-a"))["spec"] == DEFAULTS
    without_gpus = volcano_queue(queue("cpu-only", guarantee={"gpus": 0}, capability={"gpus": 0}))["spec"]
    assert without_gpus == {**DEFAULTS, "capability": {GPU_RESOURCE: "0"}}


def quotas(body: dict[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    """The quotas of a Kueue queue or cohort, by flavor and resource."""
    return {
        (flavor["name"], each["name"]): {key: value for key, value in each.items() if key != "name"}
        for group in body["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for each in flavor["resources"]
    }


def test_kueue_has_a_flavor_for_each_gpu_product_and_one_for_other_resources() -> None:
    flavors = {each["metadata"]["name"]: each["spec"] for each in resource_flavors([POOL, H100])}
    assert flavors == {
        WHOLE: {},
        A100_FLAVOR: {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
        H100_FLAVOR: {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
    }


def test_other_resources_of_gpus_have_a_flavor_and_a_group_each() -> None:
    slices = NodePool.model_validate(
        {"pool": "mig", "count": 2, "cpu": 8, "memory": "64Gi", "gpus": 7, "gpuResource": "nvidia.com/mig-1g.10gb"}
    )
    of_slices = "nvidia.com-mig-1g.10gb"
    assert [each["metadata"]["name"] for each in resource_flavors([POOL, slices])] == [WHOLE, A100_FLAVOR, of_slices]
    team_a = cluster_queue(queue("team-a", deserved={"resources": {slices.gpu_resource: 7}}), [POOL, slices])
    assert quotas(team_a)[of_slices, slices.gpu_resource] == {"nominalQuota": "7"}
    [whole, *_] = cohorts([], [POOL, slices])
    assert quotas(whole)[of_slices, slices.gpu_resource] == {"nominalQuota": "14"}
    # Kueue refuses a flavor in two groups, and a flavor without a resource of its group.
    covered = [group["coveredResources"] for group in team_a["spec"]["resourceGroups"]]
    assert covered == [["cpu", "memory"], [slices.gpu_resource], [GPU_RESOURCE]]


def test_deserved_is_the_quota_and_the_guarantee_is_not_lent() -> None:
    team_a = queue("team-a", guarantee={"gpus": 4}, deserved={"gpus": 8}, capability={"gpus": 24})
    assert quotas(cluster_queue(team_a, [POOL]))[A100_FLAVOR, GPU_RESOURCE] == {
        "nominalQuota": "8",
        "lendingLimit": "4",
        "borrowingLimit": "16",
    }


def test_a_quota_is_written_as_kueue_writes_it_back() -> None:
    """Another text for the same amount would be a difference in each preview."""
    rendered = quotas(cluster_queue(queue("team-a", deserved={"cpu": "1.50", "memory": "4000Gi"}), [POOL]))
    assert rendered[WHOLE, "cpu"] == {"nominalQuota": "1500m"}
    assert rendered[WHOLE, "memory"] == {"nominalQuota": "4294967296k"}


def test_a_queue_without_amounts_borrows_free_resources() -> None:
    rendered = quotas(cluster_queue(queue("team-a"), [POOL]))
    assert rendered == {
        (WHOLE, "cpu"): {"nominalQuota": "0"},
        (WHOLE, "memory"): {"nominalQuota": "0"},
        (A100_FLAVOR, GPU_RESOURCE): {"nominalQuota": "0"},
    }


def test_queues_and_their_cohort_share_all_resources_of_the_nodes() -> None:
    tree = [
        queue("research", deserved={"gpus": 16}, capability={"gpus": 24}),
        queue("vision", parent="research", deserved={"gpus": 6}),
        queue("team-b", guarantee={"gpus": 8}),
    ]
    parts = [*cohorts(tree, [POOL]), *(cluster_queue(each, [POOL]) for each in tree[1:])]
    gpus = {
        f"{body['kind']} {body['metadata']['name']}": quotas(body)[A100_FLAVOR, GPU_RESOURCE]["nominalQuota"]
        for body in parts
    }
    assert gpus == {
        f"Cohort {WHOLE}": "8",
        "Cohort research": "10",
        "ClusterQueue vision": "6",
        "ClusterQueue team-b": "8",
    }
    assert sum(map(int, gpus.values())) == POOL.count * POOL.gpus
    assert [body["spec"].get("parentName") for body in parts[:2]] == [None, WHOLE]
    assert [body["spec"]["cohortName"] for body in parts[2:]] == ["research", WHOLE]


def test_a_product_without_an_amount_is_zero_if_others_have_one() -> None:
    team_a = queue("team-a", capability={"gpusByProduct": {"NVIDIA-H100-80GB-HBM3": 8}})
    rendered = quotas(cluster_queue(team_a, [POOL, H100]))
    assert rendered[H100_FLAVOR, GPU_RESOURCE] == {"nominalQuota": "0", "borrowingLimit": "8"}
    assert rendered[A100_FLAVOR, GPU_RESOURCE] == {"nominalQuota": "0", "borrowingLimit": "0"}


@pytest.mark.parametrize(("strategy", "of_kueue"), [("fifo", "StrictFIFO"), ("traverse", "BestEffortFIFO")])
def test_order_weight_and_namespaces_are_rendered_for_kueue(strategy: str, of_kueue: str) -> None:
    spec = cluster_queue(queue("research", "team-a", weight=2, dequeueStrategy=strategy), [POOL])["spec"]
    assert spec["queueingStrategy"] == of_kueue
    assert spec["fairSharing"] == {"weight": "2"}
    assert spec["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a"]
    assert spec["preemption"]["reclaimWithinCohort"] == "Any"
    assert local_queue(queue("research"))["spec"] == {"clusterQueue": "research"}


def metadata(scheduling: Scheduling, **keys: Any) -> dict[str, Any]:
    """The metadata of a RayCluster."""
    settings = valid({"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **keys})
    found: dict[str, Any] = ray_cluster(settings, (POOL,), scheduling=scheduling)["metadata"]
    return found


ALL = {"priorityClass": "urgent", "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}


def test_queue_priority_and_topology_are_labels_for_volcano_and_kuberay() -> None:
    assert metadata(Scheduling("volcano", "research"), labels={"stage": "dev"}, **ALL)["labels"] == {
        "stage": "dev",
        "volcano.sh/queue-name": "research",
        "ray.io/priority-class-name": "urgent",
        "volcano.sh/network-topology-mode": "hard",
        "volcano.sh/network-topology-highest-tier-allowed": "2",
    }


def test_queue_priority_and_scaling_are_labels_and_annotations_for_kueue() -> None:
    rendered = metadata(Scheduling("kueue", "research"), priorityClass="urgent")
    assert rendered["labels"] == {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/priority-class": "urgent"}
    assert rendered["annotations"]["kueue.x-k8s.io/elastic-job"] == "true"
    fixed = metadata(Scheduling("kueue", "research"), autoscaling=False)
    assert "kueue.x-k8s.io/elastic-job" not in fixed["annotations"]


@pytest.mark.parametrize(("scales", "gates"), [(True, [{"name": "kueue.x-k8s.io/elastic-job"}]), (False, None)])
def test_pods_of_a_raycluster_that_scales_wait_until_kueue_admits_them(scales: bool, gates: Any) -> None:
    """Its webhook adds the gates to a new RayCluster only, and refuses every later one without them."""
    keys = {"workers": {"pool": "a100", "variants": [{"gpus": 8}]}, "autoscaling": scales}
    settings = valid({"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **keys})
    spec = ray_cluster(settings, (POOL,), scheduling=Scheduling("kueue", "research"))["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    assert [group["template"]["spec"].get("schedulingGates") for group in groups] == [gates, gates]


def replicas(scheduling: Scheduling, **keys: Any) -> list[int | None]:
    """Initial workers of a RayCluster with a group of a pool and one of `workerGroups`."""
    settings = valid(
        {
            "name": "training",
            "rayVersion": "2.60.0",
            "image": "rayproject/ray:2.60.0",
            "workers": {"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 2}]},
            "workerGroups": [{"groupName": "loaders", "cpu": 4, "memory": "8Gi", "minReplicas": 1, **keys}],
        }
    )
    groups = ray_cluster(settings, (POOL,), scheduling=scheduling)["spec"]["workerGroupSpecs"]
    return [group.get("replicas") for group in groups]


def test_kueue_counts_as_many_workers_as_kuberay_starts() -> None:
    """Kueue counts `replicas`, and KubeRay starts at least `minReplicas`."""
    queued = Scheduling("kueue", "research")
    assert replicas(queued) == [2, 1]
    assert replicas(queued, replicas=3) == [2, 3]
    assert replicas(Scheduling("kueue")) == replicas(Scheduling("volcano", "research")) == [0, None]


def test_volcano_does_not_evict_a_head_for_another_queue_and_without_it_heads_are_unchanged() -> None:
    volcano = Scheduling("volcano", "research")
    assert head_annotations(volcano)["volcano.sh/preemptable"] == "false"
    own = {"head": {"podTemplate": {"metadata": {"annotations": {"volcano.sh/preemptable": "true"}}}}}
    assert head_annotations(volcano, **own)["volcano.sh/preemptable"] == "true"
    assert "volcano.sh/preemptable" not in head_annotations(Scheduling("volcano"), podDefaults="none")
    assert "volcano.sh/preemptable" not in head_annotations(Scheduling("kueue", "research"))
    assert "volcano.sh/preemptable" not in head_annotations(NO_SCHEDULING)
    assert "labels" not in metadata(NO_SCHEDULING)


def head_annotations(scheduling: Scheduling, **keys: Any) -> dict[str, str]:
    settings = valid({"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **keys})
    template = ray_cluster(settings, (POOL,), scheduling=scheduling)["spec"]["headGroupSpec"]["template"]
    return dict((template.get("metadata") or {}).get("annotations") or {})


def cluster(name: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **settings}


def stack(*tenants: dict[str, Any], queues: list[dict[str, Any]] | None = None) -> StackSettings:
    return parse({"scheduler": {"volcano": {}}, "queues": queues or [], "tenants": list(tenants)})


def allowed(settings: StackSettings) -> dict[str, tuple[str, ...]]:
    """The namespaces of each queue."""
    return {queue.name: queue.namespaces for queue in queues_of(settings)}


def test_a_queue_is_for_tenants_that_name_it_or_whose_clusters_name_it_or_for_configured_ones() -> None:
    settings = stack(
        {"name": "team-a", "queue": "research"},
        {"name": "team-b", "namespace": "b", "clusters": [cluster("tuning", queue="research")]},
        {"name": "team-c", "namespace": "c", "queue": {}},
        queues=[{"name": "research"}, {"name": "batch"}, {"name": "listed", "allowedNamespaces": ["team-a", "other"]}],
    )
    assert allowed(settings) == {
        **{"research": ("team-a", "b"), "batch": (), "listed": ("team-a", "other")},
        "c": ("c",),
    }


def test_a_clusters_own_queue_overrides_its_tenants() -> None:
    settings = stack(
        {"name": "team-a", "queue": {}, "clusters": [cluster("here"), cluster("there", queue="batch")]},
        {"name": "team-b", "clusters": [cluster("nowhere")]},
        queues=[{"name": "batch"}],
    )
    waiting = {
        each.name: scheduling_of(settings, tenant, each) for tenant in settings.tenants for each in tenant.clusters
    }
    assert waiting == {
        "here": Scheduling("volcano", "team-a"),
        "there": Scheduling("volcano", "batch"),
        "nowhere": Scheduling("volcano", None),
    }
    alone = parse({"tenants": [{"name": "team-a", "clusters": [cluster("here")]}]})
    assert scheduling_of(alone, alone.tenants[0], alone.tenants[0].clusters[0]) == NO_SCHEDULING


def test_a_cluster_chooses_kubernetes_scheduler_beside_the_queue_of_its_tenant() -> None:
    clusters = [cluster("waits"), cluster("at-once", scheduler="kubernetes")]
    settings = parse(
        {
            "scheduler": {"kueue": {}},
            "nodes": [POOL.model_dump(by_alias=True)],
            "tenants": [
                {"name": "team-a", "queue": {}, "clusters": clusters},
                {"name": "team-b", "clusters": [cluster("free")]},
            ],
        }
    )
    chosen = {
        each.name: (scheduler_of(settings, tenant, each), scheduling_of(settings, tenant, each).queue)
        for tenant in settings.tenants
        for each in tenant.clusters
    }
    assert chosen == {"waits": ("kueue", "team-a"), "at-once": ("kubernetes", None), "free": ("kubernetes", None)}


def test_rayclusters_cannot_wait_in_parents() -> None:
    settings = stack(
        {"name": "team-a", "queue": "vision"},
        queues=[
            {"name": "research", "allowedNamespaces": ["team-a"]},
            {"name": "vision", "parent": "research"},
        ],
    )
    assert usable(settings, settings.tenants[0]) == ["vision"]


def rules(problems: list[Problem]) -> list[tuple[str, Any]]:
    """Rule and path of each problem."""
    return [(each.rule, each.path) for each in problems]


def training(*variants: dict[str, Any], **keys: Any) -> Demand:
    """The demand of a RayCluster. Its head has 2 CPUs, in addition to KubeRay's autoscaler."""
    workers = {"pool": "a100", "variants": list(variants)} if variants else None
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **keys}
    settings = valid({**cluster, **({"workers": workers} if workers else {}), "head": {"cpu": 2, "memory": "8Gi"}})
    return demand(ray_cluster(settings, (POOL,)), None)


def refused(demand: Demand, *queues: Queue, name: str = "team-a") -> list[Problem]:
    return list(beyond_room("training", demand, name, rooms(queues, [POOL])[name]))


@given(configured=amounts())
def test_amounts_in_order_are_accepted(configured: dict[str, Any]) -> None:
    QueueSettings.model_validate(configured)


@given(configured=amounts(), part=st.sampled_from(["guarantee", "deserved"]), resource=st.sampled_from(["gpus", "cpu"]))
def test_an_amount_above_the_next_one_is_refused_with_both_numbers(
    configured: dict[str, Any], part: str, resource: str
) -> None:
    limit = configured.get("capability", {}).get(resource)
    if limit is None:
        return
    above = {**configured, part: {**configured[part], resource: limit + 1}}
    with pytest.raises(ValueError, match=rf"{part} {limit + 1} of .* is more than \w+ \d+"):
        QueueSettings.model_validate(above)


def test_the_guarantee_of_each_product_is_deserved_too() -> None:
    settings = QueueSettings.model_validate({"guarantee": {"gpus": 8}, "deserved": {"cpu": 64}})
    assert settings.amounts("deserved") == {GPU_RESOURCE: 8, "cpu": 64}
    guarantee = {"gpusByProduct": {"A100": 8, "H100": 8}}
    QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"cpu": 64}})
    QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"gpusByProduct": {"A100": 8, "H100": 16}}})
    with pytest.raises(ValueError, match="guarantee 8 of A100 is more than deserved 0"):
        QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"gpusByProduct": {"H100": 16}}})


@given(tree=trees())
def test_in_a_valid_tree_every_level_fits_into_its_parent(tree: list[Queue]) -> None:
    if problems_of_queues(tree, [POOL]):
        return
    nodes = on_nodes([POOL])
    for resource, available in nodes.items():
        guaranteed = [each.settings.amounts("guarantee").get(resource, 0) for each in children(tree)[None]]
        assert sum(guaranteed) <= available
    for parent in tree:
        for child in children(tree)[parent.name]:
            for resource, most in child.settings.amounts("capability").items():
                assert most <= parent.settings.amounts("capability").get(resource, 0)


@given(tree=trees())
def test_the_room_of_a_queue_is_never_more_than_that_of_its_parent_or_its_capability(tree: list[Queue]) -> None:
    by_queue = rooms(tree, [POOL])
    for each in tree:
        for resource, room in by_queue[each.name].items():
            above = by_queue[each.settings.parent] if each.settings.parent else {}
            assert room.most <= each.settings.amounts("capability").get(resource, room.most)
            assert resource not in above or room.most <= above[resource].most


@given(tree=trees())
def test_every_queue_of_a_valid_tree_has_room_for_its_guarantee(tree: list[Queue]) -> None:
    if problems_of_queues(tree, [POOL]):
        return
    by_queue = rooms(tree, [POOL])
    for each in children(tree)[None]:
        for resource, kept in each.settings.amounts("guarantee").items():
            assert by_queue[each.name][resource].most >= kept


@given(tree=trees(most=6), order=st.randoms(use_true_random=False))
def test_parents_come_before_their_children_in_any_configured_order(tree: list[Queue], order: Any) -> None:
    shuffled = list(tree)
    order.shuffle(shuffled)
    ordered = [each.name for each in parents_first(shuffled)]
    assert sorted(ordered) == sorted(each.name for each in tree)
    for each in tree:
        assert each.settings.parent is None or ordered.index(each.settings.parent) < ordered.index(each.name)


def test_without_nodes_or_a_quota_for_a_resource_nothing_limits_it() -> None:
    greedy = [queue("a", guarantee={"gpus": 1000})]
    assert problems_of_queues(greedy, []) == []
    assert rules(problems_of_queues(greedy, [POOL])) == [("guarantees-fit-nodes", ("a", "guarantee", "gpus"))]
    shared = queue("research", "team-a", "team-b", guarantee={"gpus": 8})
    assert list(beyond_quotas(shared, [{GPU_RESOURCE: Decimal(4)}, {"cpu": Decimal(4)}])) == []


def test_a_gang_is_the_head_with_its_autoscaler_and_the_minimum_workers() -> None:
    gang = training({"gpus": 4, "minReplicas": 2}, {"gpus": 8}).gang
    assert gang[GPU_RESOURCE] == 8
    assert gang["pods"] == 3
    assert gang["cpu"] == Decimal("2.5") + 2 * 30
    gang = training(autoscaling=False, workerGroups=[{"groupName": "all", "cpu": 1, "replicas": 3}]).gang
    assert (gang["pods"], gang["cpu"]) == (Decimal(4), Decimal(5))
