"""Volcano in the rehearsal: the real scheduler, controllers and webhook, as the stack installs them."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
import yaml
from kubernetes import client, utils

from core.nodes import GPU_RESOURCE
from local import tools
from local.host_pods.states import read_states
from local.rehearsal import Rehearsal
from testbed.gangs import HOME, SCHEDULING, Gangs, settled
from testbed.platform_stack import Rays, Stack, existing
from tests.engine.conftest import MakeStack
from tests.engine.people import Judge, Person, account, refusal

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]

VOLCANO = "volcano-system"

MANIFEST = tools.VOLCANO.share("installer") / "volcano-development.yaml"


def with_volcano(settings: dict[str, Any], **volcano: Any) -> None:
    """The dev stack with Volcano, and with an operator that has rights in only one namespace."""
    settings["scheduler"] = {"volcano": volcano}
    settings["operator"]["watchNamespaces"] = ["team-a"]


@pytest.fixture(scope="module")
def before(cluster: Rehearsal) -> set[str]:
    """The objects in the cluster before the stack."""
    return existing(cluster)


@pytest.fixture(scope="module")
def made(stack: MakeStack, before: set[str]) -> Stack:
    """A stack. Each test needs `up`."""
    return stack("volcano")


@pytest.fixture
def up(made: Stack, cluster: Rehearsal) -> Stack:
    """The stack with Volcano after `pulumi up`, with its programs."""
    made.settle(with_volcano)
    settled(lambda: all(running(cluster, name) for name in PROGRAMS))
    return made


PROGRAMS = ("volcano-scheduler", "volcano-controllers", "volcano-admission")


def running(cluster: Rehearsal, name: str) -> bool:
    """Whether a program of Volcano runs."""
    states = [pod.state for pod in read_states(cluster.run) if pod.deployment == f"{VOLCANO}/{name}"]
    return states == ["Running"]


@pytest.fixture(scope="module")
def home(made: Stack, cluster: Rehearsal) -> Iterator[Gangs]:
    """A namespace for gangs."""
    gangs = Gangs(cluster)
    utils.create_from_dict(gangs.api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    yield gangs
    gangs.core.delete_namespace(HOME)
    settled(lambda: f"namespace {HOME}" not in existing(cluster))


@pytest.fixture
def gangs(up: Stack, home: Gangs) -> Gangs:
    """Gangs in a separate namespace."""
    return home


def test_its_programs_run_when_up_ends(up: Stack, cluster: Rehearsal) -> None:
    assert [name for name in PROGRAMS if not running(cluster, name)] == []
    assert up.outputs()["scheduler"] == {"name": "volcano", "version": "1.14.1"}


def test_a_raycluster_starts_as_a_gang(gangs: Gangs, rays: Rays) -> None:
    assert gangs.group("team-a", "ray-training-pg")["spec"]["minMember"] == 1
    (head,) = gangs.pods("team-a")
    assert head["spec"]["schedulerName"] == "volcano"
    assert rays.read("team-a", "training")["status"]["state"] == "ready"


def test_a_gang_starts_completely_or_uses_nothing(gangs: Gangs) -> None:
    """Each needs three of the four nodes."""
    gangs.start("first", pods=3, gpus=8)
    settled(lambda: len(gangs.placed("first")) == 3)
    gangs.start("second", pods=3, gpus=8)
    settled(lambda: "NotEnoughResources" in gangs.conditions("second"))
    assert gangs.placed("second") == []
    gangs.end("first")
    settled(lambda: len(gangs.placed("second")) == 3)
    gangs.end("second")


def test_workers_fill_a_node_before_they_use_another(gangs: Gangs) -> None:
    gangs.start("filling", pods=8, gpus=1)
    settled(lambda: len(gangs.placed("filling")) == 8)
    assert len(set(gangs.placed("filling"))) == 1
    gangs.end("filling")


DESERVED = {"lender": 16, "owner": 16, "guest": 0}
"""GPUs that queues deserve; the cluster has 32."""


@pytest.fixture
def queues(gangs: Gangs) -> Iterator[None]:
    """Two queues that deserve half of the cluster each, and one that deserves nothing."""
    for name, gpus in DESERVED.items():
        spec: dict[str, Any] = {"deserved": {GPU_RESOURCE: str(gpus), "cpu": "128"}} if gpus else {}
        gangs.queue(name, **spec)
    settled(lambda: {gangs.state_of_queue(name) for name in DESERVED} == {"Open"})
    yield
    for name in DESERVED:
        gangs.delete_queue(name)


@pytest.mark.usefixtures("queues")
def test_a_queue_reclaims_what_it_deserves_and_no_more(gangs: Gangs) -> None:
    """The lender's gang uses all four nodes and needs one; it keeps two, which the queue deserves."""
    gangs.start("borrowed", pods=4, gpus=8, queue="lender", minimum=1)
    settled(lambda: len(gangs.placed("borrowed")) == 4)
    gangs.start("owed", pods=2, gpus=8, queue="owner")
    settled(lambda: len(gangs.placed("owed")) == 2)
    assert len(gangs.placed("borrowed")) == 2
    for name in ("borrowed", "owed"):
        gangs.end(name)


@pytest.mark.usefixtures("queues")
def test_a_queue_that_uses_no_more_than_it_deserves_loses_nothing(gangs: Gangs) -> None:
    """Both gangs can lose a pod; only the guest uses more than it deserves."""
    gangs.start("deserved", pods=2, gpus=8, queue="lender", minimum=1)
    gangs.start("undeserved", pods=2, gpus=8, queue="guest", minimum=1)
    settled(lambda: len([*gangs.placed("deserved"), *gangs.placed("undeserved")]) == 4)
    gangs.start("owed", pods=1, gpus=8, queue="owner")
    settled(lambda: len(gangs.placed("owed")) == 1)
    assert (len(gangs.placed("deserved")), len(gangs.placed("undeserved"))) == (2, 1)
    for name in ("deserved", "undeserved", "owed"):
        gangs.end(name)


@pytest.mark.usefixtures("queues")
def test_no_gang_loses_required_pods_to_a_queue_that_deserves_them(gangs: Gangs) -> None:
    gangs.start("whole", pods=4, gpus=8, queue="lender")
    settled(lambda: len(gangs.placed("whole")) == 4)
    gangs.start("waiting", pods=1, gpus=8, queue="owner")
    settled(lambda: "NotEnoughResources" in gangs.conditions("waiting"))
    assert len(gangs.placed("whole")) == 4
    gangs.end("whole")
    settled(lambda: len(gangs.placed("waiting")) == 1)
    gangs.end("waiting")


TOO_MUCH = {"capability": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "2"}}}
"""A queue with a guarantee above its capability."""


def test_volcanos_own_webhook_refuses_an_invalid_queue(gangs: Gangs) -> None:
    # While the webhook does not listen yet, the API server accepts the queue, so this is a dry run.
    settled(lambda: "validatequeue.volcano.sh" in refusal(lambda: gangs.queue("wrong", dry_run="All", **TOO_MUCH)))
    refused = refusal(lambda: gangs.queue("wrong", dry_run="All", **TOO_MUCH))
    assert "guarantee should less equal than capability" in refused


@pytest.fixture
def webhook_down(gangs: Gangs, cluster: Rehearsal) -> Iterator[None]:
    """Scales the webhook to no pod."""
    gangs.apps.patch_namespaced_deployment("volcano-admission", VOLCANO, {"spec": {"replicas": 0}})
    name = f"{VOLCANO}/volcano-admission"
    settled(lambda: name not in [pod.deployment for pod in read_states(cluster.run)])
    yield
    gangs.apps.patch_namespaced_deployment("volcano-admission", VOLCANO, {"spec": {"replicas": 1}})
    settled(lambda: running(cluster, "volcano-admission"))


@pytest.mark.usefixtures("webhook_down")
def test_gangs_start_while_the_webhook_is_down(gangs: Gangs) -> None:
    gangs.start("unchecked", pods=2, gpus=8)
    settled(lambda: len(gangs.placed("unchecked")) == 2)
    gangs.end("unchecked")


@pytest.fixture
def strict(up: Stack) -> None:
    """The stack with `failurePolicy: Fail`."""
    up.edit(lambda settings: with_volcano(settings, webhook={"failurePolicy": "Fail"}))
    up.up()


@pytest.mark.usefixtures("strict", "webhook_down")
def test_with_failure_policy_fail_the_refusal_names_the_webhook(gangs: Gangs) -> None:
    refused = refusal(lambda: gangs.start("never", pods=1, gpus=1))
    assert 'failed calling webhook \\"validatepodgroup.volcano.sh\\"' in refused


def rules_of_the_manifest(name: str) -> set[tuple[str, str, str, str]]:
    """The rights in a ClusterRole of Volcano's manifest: verb, group, resource, name."""
    documents = yaml.load_all(MANIFEST.read_text(), Loader=yaml.CSafeLoader)
    role = next(each for each in documents if each["kind"] == "ClusterRole" and each["metadata"]["name"] == name)
    return {
        (verb, group, resource, "")
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.usefixtures("up")
@pytest.mark.parametrize("name", ["volcano-scheduler", "volcano-controllers"])
@pytest.mark.parametrize("namespace", [VOLCANO, "default", "kube-system"])
def test_its_programs_have_exactly_the_rights_of_the_manifest(name: str, namespace: str, cluster: Rehearsal) -> None:
    judge = Judge(cluster.client())
    everybody = judge.rules(Person("anybody"), namespace)
    assert judge.rules(account(VOLCANO, name), namespace) - everybody == rules_of_the_manifest(name) - everybody


CERTIFICATES = "certificates.k8s.io"


@pytest.mark.usefixtures("up")
def test_the_webhook_has_the_rights_of_the_manifest_except_those_for_certificates(cluster: Rehearsal) -> None:
    judge = Judge(cluster.client())
    everybody = judge.rules(Person("anybody"), VOLCANO)
    given = {rule for rule in rules_of_the_manifest("volcano-admission") if rule[1] != CERTIFICATES}
    assert judge.rules(account(VOLCANO, "volcano-admission"), VOLCANO) - everybody == given


def test_a_refresh_and_an_up_change_nothing(up: Stack) -> None:
    """The webhook writes its authority into the webhook configurations when it starts; they have it already."""
    up.changes_nothing(refreshed=True)


def test_the_scheduler_restarts_with_another_configuration(up: Stack, cluster: Rehearsal) -> None:
    up.edit(lambda settings: with_volcano(settings, scheduler={"queueShares": "proportion"}))
    up.up()
    folder = cluster.run / "host-pods" / f"{VOLCANO}_volcano-scheduler"
    file = folder / "mounts" / "volcano.scheduler" / "volcano-scheduler.conf"
    settled(lambda: file.is_file() and "proportion" in file.read_text())
    up.settle(with_volcano)
    settled(lambda: file.is_file() and "proportion" not in file.read_text())


def on_existing_volcano(settings: dict[str, Any]) -> None:
    """Volcano and the operator exist; the tenant has another namespace."""
    settings["scheduler"] = {"volcano": {"install": "existing"}}
    settings["operator"] = {"install": "existing", "watchNamespaces": ["team-b"]}
    settings["tenants"][0]["name"] = "team-b"


def test_another_stack_uses_the_existing_volcano(up: Stack, stack: MakeStack, cluster: Rehearsal) -> None:
    other = stack("other")
    other.edit(lambda settings: with_volcano(settings, install="existing", namespace="elsewhere"))
    refused = other.pulumi("preview", fails=True).output
    assert "there is no Deployment volcano-scheduler with a version in namespace 'elsewhere'" in refused
    assert "Traceback" not in refused
    other.edit(on_existing_volcano)
    assert "volcano-scheduler" not in other.pulumi("preview").output


@pytest.mark.last
def test_it_was_denied_nothing_and_destroy_deletes_everything_after_an_external_queue(
    up: Stack, gangs: Gangs, cluster: Rehearsal, before: set[str]
) -> None:
    denied = [name for name in PROGRAMS if "is forbidden" in (cluster.run / "logs" / f"{name}.log").read_text()]
    assert denied == []
    gangs.queue("external")
    refused = up.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "Volcano's CRDs are not deleted while there is Queue external" in refused
    gangs.delete_queue("external")
    up.destroy()
    settled(lambda: existing(cluster) - {f"namespace {HOME}"} == before)
    with pytest.raises(client.ApiException) as gone:
        gangs.objects.list_cluster_custom_object(*SCHEDULING, "queues")
    assert gone.value.status == HTTPStatus.NOT_FOUND
