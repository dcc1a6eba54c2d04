"""Queues of Volcano on a real API server: their allowed namespaces, and a gang that changes its queue. Which schedulers
a tenant may use.

No scheduler runs here: test_volcano.py tests Volcano's own behavior.
"""

import time
from typing import Any, cast

import pytest
import yaml
from kubernetes import client

from components.access.admission import restrictions
from components.access.manifests import Grant, bodies
from components.access.personas import ALL_RAY_KINDS, rule
from components.access.restricted import Restricted
from components.crds.definitions import whole
from components.dynamic.pod_group import pod_group
from components.manifest_files import read
from components.queues.settings import Queue, QueueSettings
from components.queues.volcano import allowed_namespaces, volcano_queue
from core.body import Body
from local import tools
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl
from testbed.pods.steps import until
from tests.engine.conftest import PROGRAMS, MakeProject
from tests.unit.kuberay.manifests import manifest

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

VOLCANO = tools.VOLCANO.share("installer") / "volcano-development.yaml"
KUBERAY = tools.KUBERAY.share("config") / "crd/bases"

RAY_CRDS = [KUBERAY / f"ray.io_{plural}.yaml" for plural in ALL_RAY_KINDS]

VOLCANO_CRDS = {"queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh"}

ALLOWED, OTHER = "queues-allowed", "queues-other"

SETTLES = 180.0
"""Seconds within which the API server enforces a policy or a changed list of namespaces; it takes one or two."""

QUEUE = "research"

REFUSAL = (
    f"queue {QUEUE} is not for namespace {OTHER}, but for {ALLOWED}: name another queue, or add the namespace to the "
    "allowedNamespaces of this one"
)


def pod(**metadata: Any) -> Body:
    containers = [{"name": "main", "image": "example.com/main:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def labelled(body: Body, queue: str) -> Body:
    return {**body, "metadata": {**body["metadata"], "labels": {"volcano.sh/queue-name": queue}}}


def of_volcano(kind: str, api_version: str, queue: str) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "gang"}, "spec": {"queue": queue}}


NAMING: dict[str, Any] = {
    "RayCluster": lambda queue: labelled(manifest("RayCluster"), queue),
    "RayJob": lambda queue: labelled(manifest("RayJob"), queue),
    "RayService": lambda queue: labelled(manifest("RayService"), queue),
    "pod by its label": lambda queue: labelled(pod(name="main"), queue),
    "pod by its annotation": lambda queue: pod(name="main", annotations={"scheduling.volcano.sh/queue-name": queue}),
    "PodGroup": lambda queue: of_volcano("PodGroup", "scheduling.volcano.sh/v1beta1", queue),
    "Job of Volcano": lambda queue: of_volcano("Job", "batch.volcano.sh/v1alpha1", queue),
}
"""All kinds of objects that can name a queue."""


@pytest.fixture(scope="module")
def kubectl(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl on a cluster with the kinds, two namespaces, a queue for one of them, and the policies."""
    does = Kubectl(cluster).does
    of_volcano = tmp_path_factory.mktemp("crds") / "volcano.yaml"
    of_volcano.write_text(yaml.safe_dump_all(each for each in whole(read(str(VOLCANO))) if _needed(each)))
    files = [argument for crd in (*RAY_CRDS, of_volcano) for argument in ("-f", str(crd))]
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (ALLOWED, OTHER)]
    queues = [volcano_queue(Queue(QUEUE, QueueSettings(), (ALLOWED,))), volcano_queue(Queue("free", QueueSettings()))]
    del queues[1]["metadata"]["labels"]
    does("apply", "--server-side", *files)
    does("wait", "--for=condition=Established", "--timeout=300s", *files)
    does("apply", "-f", "-", bodies=[*namespaces, *queues, *allowed_namespaces()])
    until_refused(Kubectl(cluster), "PodGroup", OTHER)
    until_refused(Kubectl(cluster), "RayCluster", OTHER)
    return Kubectl(cluster)


def _needed(body: Body) -> bool:
    return body["kind"] == "CustomResourceDefinition" and body["metadata"]["name"] in VOLCANO_CRDS


def until_refused(kubectl: Kubectl, kind: str, namespace: str) -> None:
    deadline = time.monotonic() + SETTLES
    while not kubectl.creates(namespace, NAMING[kind](QUEUE)):
        assert time.monotonic() < deadline, f"a {kind} of {namespace} is taken"
        time.sleep(0.2)


@pytest.mark.parametrize("kind", NAMING)
def test_a_namespace_on_the_list_may_use_the_queue(kind: str, kubectl: Kubectl) -> None:
    assert kubectl.creates(ALLOWED, NAMING[kind](QUEUE)) == ""


@pytest.mark.parametrize("kind", NAMING)
def test_another_namespace_is_refused_and_the_error_names_the_allowed_ones(kind: str, kubectl: Kubectl) -> None:
    assert REFUSAL in kubectl.creates(OTHER, NAMING[kind](QUEUE))


@pytest.mark.parametrize("kind", NAMING)
def test_external_queues_are_open_to_all_namespaces(kind: str, kubectl: Kubectl) -> None:
    assert kubectl.creates(OTHER, NAMING[kind]("free")) == ""


def test_objects_without_a_queue_are_not_affected(kubectl: Kubectl) -> None:
    assert kubectl.creates(OTHER, pod(name="main")) == ""
    assert kubectl.creates(OTHER, manifest("RayCluster")) == ""


def test_no_podgroup_hides_others_from_volcano(kubectl: Kubectl) -> None:
    """Go decodes no exponent with a fraction."""
    gang = NAMING["PodGroup"]("free")
    gang["spec"]["minResources"] = {"cpu": "1e1.5"}
    assert "should match" in kubectl.creates(ALLOWED, gang)


def test_an_existing_object_may_not_move_into_a_queue_of_another_namespace(kubectl: Kubectl) -> None:
    kubectl.does("create", "-n", OTHER, "-f", "-", bodies=[NAMING["RayCluster"]("free"), NAMING["PodGroup"]("free")])
    moved = {
        "rayclusters/ray": f'{{"metadata": {{"labels": {{"volcano.sh/queue-name": "{QUEUE}"}}}}}}',
        "podgroups/gang": f'{{"spec": {{"queue": "{QUEUE}"}}}}',
    }
    for name, patch in moved.items():
        assert REFUSAL in kubectl.tries("patch", "-n", OTHER, name, "--type=merge", "-p", patch).stderr
    kubectl.does("delete", "-n", OTHER, *moved)


def test_a_namespace_that_leaves_the_list_keeps_and_edits_its_objects_but_creates_none(kubectl: Kubectl) -> None:
    left, name = ALLOWED, "podgroups/gang"
    kubectl.does("create", "-n", left, "-f", "-", bodies=[NAMING["PodGroup"](QUEUE)])
    annotation = "ray-platform/allowed-namespaces"
    kubectl.does("annotate", "queues.scheduling.volcano.sh", QUEUE, "--overwrite", f"{annotation}=")
    try:
        until_refused(kubectl, "PodGroup", left)
        assert "but for none:" in kubectl.creates(left, NAMING["PodGroup"](QUEUE))
        kubectl.does("patch", "-n", left, name, "--type=merge", "-p", '{"spec": {"minMember": 3}}')
    finally:
        kubectl.does("annotate", "queues.scheduling.volcano.sh", QUEUE, "--overwrite", f"{annotation}={ALLOWED}")
        kubectl.does("delete", "-n", left, name)
        until(lambda: kubectl.creates(left, NAMING["PodGroup"](QUEUE)) == "", "it is on the list again", SETTLES)


def test_a_changed_queue_or_priority_reaches_the_gang_of_kuberay(
    kubectl: Kubectl, project: MakeProject, cluster: Rehearsal
) -> None:
    gangs = client.CustomObjectsApi(cluster.client())
    made = NAMING["PodGroup"]("free")
    made["metadata"]["name"] = pod_group("training")
    gang = project(PROGRAMS / "gang.py", cluster)
    gang.import_checkout()
    gang.configure("namespace", ALLOWED)

    def live() -> Body:
        found = gangs.get_namespaced_custom_object(
            "scheduling.volcano.sh", "v1beta1", ALLOWED, "podgroups", pod_group("training")
        )
        return cast("Body", cast("Body", found)["spec"])

    gang.configure("queue", "free")
    gang.up()  # KubeRay creates the gang later
    kubectl.does("create", "-n", ALLOWED, "-f", "-", bodies=[made])
    gang.changes_nothing()
    gang.configure("queue", QUEUE)
    gang.configure("priority", "urgent")
    assert "queue" in gang.pulumi("preview", "--diff").output
    gang.up()
    assert (live()["queue"], live()["priorityClassName"]) == (QUEUE, "urgent")
    gang.pulumi("config", "rm", "queue")
    gang.pulumi("config", "rm", "priority")
    gang.up()
    assert (live()["queue"], live().get("priorityClassName", "")) == ("default", "")
    gang.pulumi("destroy", "--yes", "--skip-preview")
    assert live()["queue"] == "default"


def test_an_update_fails_with_a_reason_if_a_gang_cannot_be_moved(
    kubectl: Kubectl, project: MakeProject, cluster: Rehearsal
) -> None:
    made = NAMING["PodGroup"]("free")
    made["metadata"]["name"] = pod_group("training")
    kubectl.does("create", "-n", OTHER, "-f", "-", bodies=[made])
    gang = project(PROGRAMS / "gang.py", cluster)
    gang.import_checkout()
    gang.configure("namespace", OTHER)
    gang.configure("queue", QUEUE)
    refused = gang.up(fails=True).output
    assert f"PodGroup {OTHER}/{pod_group('training')} keeps its queue and priority: " in refused
    assert REFUSAL in refused


def test_a_queue_stays_while_a_raycluster_of_any_namespace_names_it(
    kubectl: Kubectl, project: MakeProject, cluster: Rehearsal
) -> None:
    guarded = project(PROGRAMS / "queue_guard.py", cluster)
    guarded.import_checkout()
    guarded.configure("queue", "free")
    guarded.up()
    kubectl.does("create", "-n", OTHER, "-f", "-", bodies=[NAMING["RayCluster"]("free")])
    refused = guarded.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert f"queue 'free' is not deleted, because it is used by RayCluster {OTHER}/ray" in refused
    kubectl.does("delete", "-n", OTHER, "rayclusters/ray")
    guarded.pulumi("destroy", "--yes", "--skip-preview")


def test_another_network_topology_recreates_the_cluster_and_the_preview_reports_it(
    kubectl: Kubectl, project: MakeProject, cluster: Rehearsal
) -> None:
    training = project(PROGRAMS / "scheduled_cluster.py", cluster)
    training.import_checkout()
    for key, value in {"namespace": ALLOWED, "queue": QUEUE, "mode": "soft"}.items():
        training.configure(key, value)
    training.up(fails=True)  # there is no operator: the RayCluster is created, but never ready
    training.configure("queue", "free")
    assert "replace" not in training.pulumi("preview", "--diff").output
    training.configure("mode", "hard")
    replaced = training.pulumi("preview", "--diff").output
    assert "replace" in replaced
    assert "volcano.sh/network-topology-mode" in replaced
    training.pulumi("destroy", "--yes", "--skip-preview")


OF_KUEUE, OF_VOLCANO, OF_KUBERNETES = "queues-kueue", "queues-volcano", "queues-kubernetes"
"""Namespaces of tenants with one scheduler each. In the second the operator creates PodGroups."""

KUEUES, VOLCANOS = {"kueue.x-k8s.io/queue-name": QUEUE}, {"volcano.sh/queue-name": "free"}


@pytest.fixture(scope="module")
def judging(kubectl: Kubectl) -> Kubectl:
    """kubectl on the cluster with the policies of both stacks, and people who may create everything there."""
    ours = [
        *restrictions(
            "kueue",
            Restricted((OF_KUEUE, OF_KUBERNETES), schedulers={OF_KUEUE: ["kueue"], OF_KUBERNETES: ["kubernetes"]}),
        ),
        *restrictions("volcano", Restricted((OF_VOLCANO,), scheduler="volcano", schedulers={OF_VOLCANO: ["volcano"]})),
    ]
    made = [each.body for each in ours]
    made += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (OF_KUEUE, OF_VOLCANO, OF_KUBERNETES)
    ]
    rules = [
        rule("ray.io", ALL_RAY_KINDS, ["get", "create", "patch"]),
        rule("", ["pods"], ["create"]),
    ]
    subjects = ["user:ada", f"serviceAccount:{OF_VOLCANO}/default", f"serviceAccount:{OF_KUEUE}/default"]
    made += bodies(Grant("writer", rules, subjects), "ClusterRole").values()
    kubectl.does("apply", "-f", "-", bodies=made)
    until_judged(kubectl, OF_KUEUE, manifest("RayCluster"))
    until_judged(kubectl, OF_VOLCANO, with_labels(manifest("RayCluster"), KUEUES))
    return kubectl


def with_labels(body: Body, labels: Body) -> Body:
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


def with_spec(body: Body, **spec: Any) -> Body:
    return {**body, "spec": {**body["spec"], **spec}}


def judged(kubectl: Kubectl, namespace: str, body: Body, user: str = "ada") -> str:
    """The API server's refusal of an object of a person or an account, as a dry run; empty if it accepts it."""
    arguments = ("create", "-n", namespace, "--as", user, "--dry-run=server", "-f", "-")
    return kubectl.tries(*arguments, bodies=[body]).stderr


def until_judged(kubectl: Kubectl, namespace: str, body: Body) -> None:
    until(lambda: "is not for this namespace" in judged(kubectl, namespace, body), "the policies are in force", SETTLES)


SELECTING = {"entrypoint": "true", "submissionMode": "HTTPMode", "clusterSelector": {"ray.io/cluster": "ray"}}
ON_ANOTHER = {**manifest("RayJob"), "spec": SELECTING}
IN_A_POD = {"spec": {"containers": [{"name": "submitter", "image": "example.com/main:1"}]}}

JUDGED: dict[str, tuple[str, Body, str]] = {
    "a RayCluster in a queue of Kueue": (OF_KUEUE, with_labels(manifest("RayCluster"), KUEUES), ""),
    "a RayCluster that passes Kueue's queues": (OF_KUEUE, manifest("RayCluster"), "scheduler kubernetes"),
    "a RayCluster in two queues": (
        OF_KUEUE,
        with_labels(manifest("RayCluster"), {**KUEUES, **VOLCANOS}),
        "scheduler volcano",
    ),
    "a RayJob in a queue of Kueue": (OF_KUEUE, with_labels(manifest("RayJob"), KUEUES), ""),
    "a RayJob that passes Kueue's queues": (OF_KUEUE, manifest("RayJob"), "scheduler kubernetes"),
    "a RayJob on a RayCluster": (OF_KUEUE, ON_ANOTHER, ""),
    "a RayJob on a RayCluster with a pod of its own": (
        OF_KUEUE,
        with_spec(ON_ANOTHER, submissionMode="K8sJobMode", submitterPodTemplate=IN_A_POD),
        "scheduler kubernetes",
    ),
    "a RayService in a queue of Kueue": (OF_KUEUE, with_labels(manifest("RayService"), KUEUES), ""),
    "a RayService that passes Kueue's queues": (OF_KUEUE, manifest("RayService"), "scheduler kubernetes"),
    "RayJobs of a RayCronJob, which have no queue": (
        OF_KUEUE,
        with_labels(manifest("RayCronJob"), KUEUES),
        "scheduler kubernetes",
    ),
    "a RayCluster of Volcano": (OF_VOLCANO, manifest("RayCluster"), ""),
    "a RayCluster of Volcano in a queue": (OF_VOLCANO, with_labels(manifest("RayCluster"), VOLCANOS), ""),
    "a RayCluster of Volcano in Kueue's queue": (
        OF_VOLCANO,
        with_labels(manifest("RayCluster"), KUEUES),
        "scheduler kueue",
    ),
    "a RayCluster of Kubernetes": (OF_KUBERNETES, manifest("RayCluster"), ""),
    "a RayCluster of Kubernetes in Kueue's queue": (
        OF_KUBERNETES,
        with_labels(manifest("RayCluster"), KUEUES),
        "scheduler kueue",
    ),
    "a RayService of Kubernetes in Volcano's queue": (
        OF_KUBERNETES,
        with_labels(manifest("RayService"), VOLCANOS),
        "scheduler volcano",
    ),
}
"""What a person may create where a tenant has one scheduler, and what is refused."""


@pytest.mark.parametrize("what", JUDGED)
def test_a_tenant_uses_only_its_schedulers(what: str, judging: Kubectl) -> None:
    namespace, body, scheduler = JUDGED[what]
    error = judged(judging, namespace, body)
    assert f"{scheduler} is not for this namespace" in error if scheduler else error == ""


@pytest.mark.parametrize(
    ("namespace", "spec", "scheduler"),
    [
        (OF_VOLCANO, {"schedulerName": "volcano"}, ""),
        (OF_VOLCANO, {}, "scheduler kubernetes"),
        (OF_KUEUE, {}, "scheduler kubernetes"),
    ],
)
def test_nor_do_pods_of_its_code(namespace: str, spec: Body, scheduler: str, judging: Kubectl) -> None:
    account = f"system:serviceaccount:{namespace}:default"
    error = judged(judging, namespace, with_spec(pod(name="main"), **spec), account)
    assert f"{scheduler} is not for this namespace" in error if scheduler else error == ""


def test_what_was_there_before_stays_and_can_be_changed(judging: Kubectl) -> None:
    before = manifest("RayCluster") | {"metadata": {"name": "before"}}
    judging.does("create", "-n", OF_KUEUE, "-f", "-", bodies=[before])
    patched = ("patch", "-n", OF_KUEUE, "--as", "ada", "rayclusters/before", "--type=merge", "-p")
    judging.does(*patched, '{"spec": {"suspend": true}}')
    labels = '{"metadata": {"labels": {"volcano.sh/queue-name": "free"}}}'
    assert "scheduler volcano is not for this namespace" in judging.tries(*patched, labels).stderr
