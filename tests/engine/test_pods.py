"""Pods that the operator creates for a stack's RayCluster, where the API server enforces Pod Security `restricted`."""

import base64
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.platform_stack import Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE = "guarded"


@pytest.fixture(scope="module")
def made(stack_on_operator: MakeStack, core: client.CoreV1Api) -> Iterator[Stack]:
    """A stack in a namespace that exists. Each test needs `up`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE, labels=labels)))
    made = stack_on_operator("guarded")
    yield made
    made.destroy()
    core.delete_namespace(NAMESPACE)


@pytest.fixture
def up(made: Stack) -> Stack:
    """A cluster with a worker, TLS, and a sidecar of the head without a security context."""
    return made.settle(guarded)


def guarded(settings: dict[str, Any]) -> None:
    settings["tenants"][0] |= {"namespace": NAMESPACE, "createNamespace": False}
    logs = {"name": "logs", "image": "fluent/fluent-bit:3.2"}
    training(settings)["head"] = {"podTemplate": {"spec": {"containers": [logs]}}}
    training(settings)["workers"] = {"pool": "a100", "variants": [{"gpus": 1, "minReplicas": 1}]}
    training(settings)["tls"] = {}


def pods(core: client.CoreV1Api, node_type: str) -> list[Any]:
    """The pods of a kind that are not being deleted."""
    found: list[Any] = core.list_namespaced_pod(NAMESPACE, label_selector=f"ray.io/node-type={node_type}").items
    return [each for each in found if each.metadata.deletion_timestamp is None]


def pod(core: client.CoreV1Api, node_type: str) -> Any:
    """The only one of them."""
    [there] = pods(core, node_type)
    return there


def evict(core: client.CoreV1Api, name: str) -> None:
    """Like `kubectl drain`."""
    core.create_namespaced_pod_eviction(
        name, NAMESPACE, client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace=NAMESPACE))
    )


def test_no_container_has_more_rights_than_restricted_allows(up: Stack, core: client.CoreV1Api) -> None:
    names = set()
    for each in (pod(core, "head"), pod(core, "worker")):
        assert each.spec.security_context.run_as_non_root
        for container in [*each.spec.containers, *(each.spec.init_containers or [])]:
            names.add(container.name)
            assert container.security_context.allow_privilege_escalation is False
            assert container.security_context.capabilities.drop == ["ALL"]
    assert names == {"ray-head", "autoscaler", "logs", "ray-worker", "certificate", "wait-gcs-ready"}


def test_the_authoritys_key_is_only_in_its_secret_and_encrypted_in_the_state(up: Stack, core: client.CoreV1Api) -> None:
    secret: Any = core.read_namespaced_secret("training-ray-authority", NAMESPACE)
    assert b"PRIVATE KEY" in base64.b64decode(secret.data["tls.key"])
    state = up.pulumi("stack", "export").output
    assert "BEGIN CERTIFICATE" in state
    assert "PRIVATE KEY" not in state
    assert secret.data["tls.key"] not in state


def test_heads_have_a_higher_priority_than_workers(up: Stack, core: client.CoreV1Api) -> None:
    assert pod(core, "head").spec.priority > pod(core, "worker").spec.priority


def test_the_preview_warns_of_a_cluster_without_authentication(up: Stack) -> None:
    """A running head would refuse workers without a token, which the preview reports too."""
    quiet = up.pulumi("preview").output
    up.edit(lambda settings: training(settings).update(authOptions={"mode": "disabled"}))
    refused = up.pulumi("preview", fails=True).output
    up.edit(lambda settings: training(settings).update(updates={"strategy": "none"}))
    warned = up.pulumi("preview").output
    assert "has no token authentication" not in quiet
    assert "its head keeps the authOptions that it has started with" in refused
    assert "warning: RayCluster 'training' has no token authentication" in warned


def test_a_head_is_evicted_only_if_the_stack_file_allows_it(up: Stack, core: client.CoreV1Api) -> None:
    head = pod(core, "head").metadata.name
    with pytest.raises(client.ApiException) as refused:
        evict(core, head)
    assert refused.value.status == HTTPStatus.TOO_MANY_REQUESTS
    up.edit(lambda settings: training(settings)["head"].update(evictable=True))
    up.up()
    evict(core, head)
    until(lambda: [each.metadata.name for each in pods(core, "head")] not in ([], [head]), "there is another head")


@pytest.mark.last
def test_a_second_up_changes_nothing_and_destroy_leaves_nothing(up: Stack, cluster: Rehearsal) -> None:
    up.changes_nothing()
    up.destroy()
    classes: list[Any] = client.SchedulingV1Api(cluster.client()).list_priority_class().items
    assert {each.metadata.name for each in classes} == {"system-cluster-critical", "system-node-critical"}
