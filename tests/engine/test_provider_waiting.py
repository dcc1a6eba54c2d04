"""Waits of `up` and `destroy`, and their messages after the time limit."""

import json
import signal
import time
from collections.abc import Iterator

import pytest

from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeProject
from tests.engine.provider_stack import Stack, provider_stack

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(180),
]


@pytest.fixture
def stack(project: MakeProject, cluster: Rehearsal) -> Iterator[Stack]:
    with provider_stack(project, cluster) as made:
        yield made


UNSCHEDULABLE = """
    body = web(**{annotations})
    body["spec"]["template"]["spec"]["node_selector"] = {{"disk": "none-has-this"}}
    Deployment("web", **body, opts=here())
"""


def test_up_ends_when_the_pods_of_a_deployment_are_available(stack: Stack) -> None:
    program = 'pulumi.export("available", Deployment("web", **web(replicas=%s), opts=here()).status.available_replicas)'
    stack.up(program % 2)
    assert stack.project.outputs() == {"available": 2}
    stack.up(program % 3)
    assert stack.project.outputs() == {"available": 3}


def test_a_rollout_that_takes_too_long_reports_why_and_stays_in_the_state(stack: Stack) -> None:
    program = UNSCHEDULABLE.format(annotations={"pulumi.com/timeoutSeconds": "6"})
    failed = stack.up(program, fails=True).output
    assert "'web' timed out waiting to be Ready" in failed
    assert "0/1 Pods available" in failed
    assert "[MinimumReplicasUnavailable]" in failed
    assert "Deployment" in "".join(resource["type"] for resource in stack.project.resources())
    stack.up('Deployment("web", **web(), opts=here())')
    stack.project.changes_nothing()


def test_a_program_can_disable_a_wait(stack: Stack) -> None:
    stack.up(UNSCHEDULABLE.format(annotations={"pulumi.com/skipAwait": "true"}))
    assert stack.field("deployment/web", ".status.availableReplicas") == ""


def test_a_custom_timeout_limits_the_wait(stack: Stack) -> None:
    timeout = 'here(custom_timeouts=pulumi.CustomTimeouts(create="4s")))'
    program = UNSCHEDULABLE.format(annotations={}).replace("here())", timeout)
    assert "'web' timed out waiting to be Ready" in stack.up(program, fails=True).output


SERVICE = """
    spec = {{"selector": {{"app": {app!r}}}, "ports": [{{"port": 80}}]}}
    limit = {{"pulumi.com/timeoutSeconds": "3"}}
    Service("front", metadata=named("front", **limit), spec=spec, opts=here())
"""


def test_a_service_waits_for_the_pods_behind_it(stack: Stack) -> None:
    def set_ready(value: str) -> None:
        status = {"status": {"conditions": [{"type": "Ready", "status": value}]}}
        stack.kubectl("patch", "pod/web", "--subresource=status", "-p", json.dumps(status))

    stack.kubectl("run", "web", "--image=example.com/web:1", "--labels=app=web")
    stack.kubectl("wait", "pod/web", "--for=condition=Ready")
    set_ready("False")
    assert "Service does not target any Pods" in stack.up(SERVICE.format(app="web"), fails=True).output
    set_ready("True")
    stack.project.up()


def test_a_service_without_pods_is_accepted_after_a_while(stack: Stack) -> None:
    stack.up(SERVICE.format(app="nobody"))


def test_headless_services_and_claims_that_bind_late_are_not_awaited(stack: Stack) -> None:
    stack.up("""
        ports = [{"port": 80}]
        spec = {"cluster_ip": "None", "selector": {"app": "nobody"}, "ports": ports}
        Service("headless", metadata=named("headless"), spec=spec, opts=here())
        Service("free", metadata=named("free"), spec={"ports": ports}, opts=here())
        late = kubernetes.storage.v1.StorageClass(
            "late", provisioner="example.com/none", volume_binding_mode="WaitForFirstConsumer", opts=here()
        )
        claim = {"access_modes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim["storage_class_name"] = late.metadata.name
        PersistentVolumeClaim("claim", metadata=named("claim"), spec=claim, opts=here())
    """)
    assert stack.field("persistentvolumeclaim/claim", ".status.phase") == "Pending"


WAITS_FOR = """
    ConfigMap("settings", metadata=named("settings", **{{"pulumi.com/waitFor": {awaited!r}, {limit}}}), opts=here())
"""


@pytest.mark.parametrize(
    "awaited", ["jsonpath={.metadata.labels.done}=yes", '["jsonpath={.metadata.labels.done}", "jsonpath={.kind}"]']
)
def test_an_object_is_awaited_as_its_annotation_configures(stack: Stack, awaited: str) -> None:
    stack.write(WAITS_FOR.format(awaited=awaited, limit=""))
    update = stack.project.start("up", "--yes", "--skip-preview")
    while "settings" not in stack.names("configmaps"):
        time.sleep(0.1)
    time.sleep(1)
    assert update.poll() is None
    stack.kubectl("label", "configmap/settings", "done=yes")
    output, _ = update.communicate(timeout=30)
    assert update.returncode == 0, output


def test_a_wait_that_times_out_reports_the_actual_value(stack: Stack) -> None:
    program = WAITS_FOR.format(awaited="jsonpath={.data.state}=ready", limit='"pulumi.com/timeoutSeconds": "2"')
    program = program.replace("opts=", 'data={"state": "pending"}, opts=')
    failed = stack.up(program, fails=True).output
    assert "timed out waiting for the condition" in failed
    assert 'Waiting for {.data.state}=ready (found "pending")' in failed


def test_an_invalid_annotation_is_refused(stack: Stack) -> None:
    refused = stack.up(WAITS_FOR.format(awaited="jsonpath=.data.state", limit=""), fails=True).output
    assert ".data.state should be wrapped in brackets { ... }" in refused


def test_a_job_is_awaited_until_it_has_failed(stack: Stack) -> None:
    program = """
        pod = {"restart_policy": "Never", "containers": [{"name": "task", "image": "example.com/task:1"}]}
        spec = {"active_deadline_seconds": 2, "template": {"spec": pod | {"node_selector": {"disk": "none-has-this"}}}}
        Job("task", metadata=named("task"), spec=spec, opts=here())
    """
    assert "DeadlineExceeded" in stack.up(program, fails=True).output


def test_an_interrupt_ends_a_wait_and_keeps_the_object_in_the_state(stack: Stack) -> None:
    stack.write(UNSCHEDULABLE.format(annotations={}))
    update = stack.project.start("up", "--yes", "--skip-preview")
    while "web" not in stack.names("deployments"):
        time.sleep(0.1)
    time.sleep(1)
    update.send_signal(signal.SIGINT)
    output, _ = update.communicate(timeout=30)
    assert update.returncode != 0, output
    assert "Deployment" in "".join(resource["type"] for resource in stack.project.resources())


def test_the_error_of_a_deletion_names_the_blocking_finalizer(stack: Stack) -> None:
    limit = 'here(custom_timeouts=pulumi.CustomTimeouts(delete="3s"))'
    stack.up(f'ConfigMap("settings", metadata=named("settings"), opts={limit})')
    stack.kubectl("patch", "configmap/settings", "-p", json.dumps({"metadata": {"finalizers": ["example.com/hold"]}}))
    failed = stack.project.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "example.com/hold" in failed
    stack.kubectl("patch", "configmap/settings", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')


@pytest.mark.parametrize(("policy", "left"), [("foreground", set()), ("orphan", {"ReplicaSet"})])
def test_a_deletion_includes_owned_objects_unless_it_orphans_them(stack: Stack, policy: str, left: set[str]) -> None:
    annotations = {"pulumi.com/deletionPropagationPolicy": policy}
    stack.up(f'Deployment("web", **web(**{annotations}), opts=here())')
    stack.up("")
    assert {"ReplicaSet" for _ in stack.names("replicasets")} == left


def test_a_missing_object_counts_as_deleted(stack: Stack) -> None:
    stack.up('ConfigMap("settings", metadata=named("settings"), opts=here())')
    stack.kubectl("delete", "configmap/settings")
    assert "1 deleted" in stack.up("").output
