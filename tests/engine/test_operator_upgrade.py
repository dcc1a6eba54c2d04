"""The operator is upgraded while RayClusters run: from the oldest supported version to the pinned one, both real."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from local.tools import KUBERAY, KUBERAY_1_5
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(1500)]

NAMESPACE = "team-a"
OLD, NEW = KUBERAY_1_5.version.removeprefix("v"), KUBERAY.version.removeprefix("v")
OPERATOR = ("--namespace=ray-system", "deployment/kuberay-operator")
SETTLES = 180.0
"""Seconds within which the operator acts."""


def two_clusters(settings: dict[str, Any]) -> None:
    """One with two workers, and one whose only worker has two hosts."""
    first = training(settings)
    versions = {key: first[key] for key in ("rayVersion", "image")}
    first["workers"] = {"pool": "a100", "variants": [{"gpus": 1, "minReplicas": 2, "maxReplicas": 4}]}
    group = {"groupName": "pair", "numOfHosts": 2, "cpu": 1, "memory": "2Gi", "minReplicas": 1, "maxReplicas": 1}
    settings["tenants"][0]["clusters"].append({"name": "hosts", "workerGroups": [group], **versions})


def version(number: str, **more: Any) -> Callable[[dict[str, Any]], None]:
    return lambda settings: settings.update(operator={"version": number, **more})


@pytest.fixture
def old(stack: MakeStack) -> Stack:
    """A stack with the older operator, after `pulumi up`. Its cluster ends with it."""
    made = stack("upgraded")
    made.edit(two_clusters)
    made.edit(version(OLD))
    made.up()
    return made


@pytest.fixture
def pods(core: client.CoreV1Api) -> Callable[[str], dict[str, Any]]:
    """Returns the pods of a RayCluster that are not being deleted, by uid."""

    def live(cluster: str) -> dict[str, Any]:
        listed: Any = core.list_namespaced_pod(NAMESPACE, label_selector=f"ray.io/cluster={cluster}")
        return {pod.metadata.uid: pod for pod in listed.items if not pod.metadata.deletion_timestamp}

    return live


Pods = Callable[[str], dict[str, Any]]


def the_older_operator_serves_the_stacks_clusters(old: Stack, rays: Rays, pods: Pods) -> None:
    assert old.outputs()["operator"]["version"] == OLD
    assert [rays.read(NAMESPACE, name)["status"]["state"] for name in ("training", "hosts")] == ["ready"] * 2
    assert [len(pods(name)) for name in ("training", "hosts")] == [3, 3]
    old.changes_nothing()


def an_upgrade_that_would_create_workers_twice_is_refused(old: Stack) -> None:
    old.edit(version(NEW))
    refused = old.pulumi("preview", fails=True).output
    assert "would create all workers with several hosts a second time" in refused
    assert f"nobody would delete those that KubeRay {OLD} has created" in refused
    assert "team-a/hosts pair" in refused
    assert "RayMultiHostIndexing: false" in refused
    assert "Traceback" not in refused


def an_upgrade_changes_crds_first_and_keeps_all_pods(old: Stack, rays: Rays, pods: Pods) -> None:
    before = {name: set(pods(name)) for name in ("training", "hosts")}
    old.edit(version(NEW, featureGates={"RayMultiHostIndexing": False}))
    output = old.up().output
    assert "CRD rayclusters.ray.io changes: adds v1 spec.authOptions" in output
    assert "v1 spec.upgradeStrategy" in output
    lines = output.splitlines()
    applied = next(at for at, line in enumerate(lines) if "platform-kuberay-crds updated" in line)
    deployment = next(at for at, line in enumerate(lines) if "apps/v1:Deployment" in line)
    assert applied < deployment
    assert old.outputs()["operator"]["version"] == NEW
    # The new operator works: it creates a worker, and keeps the others.
    old.edit(lambda settings: training(settings)["workers"]["variants"][0].update(minReplicas=3))
    old.up()
    # `up` ends when the RayCluster is ready, which may still be its earlier status if the operator is slow.
    until(lambda: len(pods("training")) > len(before["training"]), "the operator has created a worker", SETTLES)
    after = pods("training")
    made = after.keys() - before["training"]
    assert before["training"] < after.keys()
    assert [after[uid].spec.containers[0].readiness_probe.http_get.path for uid in made] == ["/api/healthz"]
    assert set(pods("hosts")) == before["hosts"]
    assert rays.read(NAMESPACE, "hosts")["status"]["state"] == "ready"
    old.changes_nothing()


def a_downgrade_is_refused(old: Stack) -> None:
    old.edit(version(OLD))
    refused = old.pulumi("preview", fails=True).output
    assert f"operator.version is {OLD}, and the cluster has: operator {NEW}" in refused
    assert "This would be a downgrade" in refused
    assert "Traceback" not in refused
    old.edit(version(NEW, featureGates={"RayMultiHostIndexing": False}))
    old.changes_nothing()


def a_head_of_the_older_operator_is_not_recreated_for_the_strategy_recreate(old: Stack, rays: Rays, pods: Pods) -> None:
    """The newer one compares with an annotation that only its own heads have (docs/upgrades.md)."""
    before = set(pods("training"))
    [workers] = rays.read(NAMESPACE, "training")["spec"]["workerGroupSpecs"]
    one_more = {**workers, "replicas": len(before), "minReplicas": len(before)}
    head = {"rayStartParams": {"num-cpus": "1"}}
    spec = {"upgradeStrategy": {"type": "Recreate"}, "headGroupSpec": head, "workerGroupSpecs": [one_more]}
    rays.patch(NAMESPACE, "training", {"spec": spec})
    # It decides whether it recreates pods before it creates any.
    until(lambda: len(pods("training")) > len(before), "the operator has dealt with the change", SETTLES)
    assert before < set(pods("training"))


def without_the_refusal_workers_are_created_twice(old: Stack, cluster: Rehearsal, pods: Pods) -> None:
    """Without the feature gate's `false` the newer operator creates workers with several hosts a second time."""
    before = set(pods("hosts"))
    kubectl = Kubectl(cluster)
    arguments = json.loads(kubectl.does("get", *OPERATOR, "--output=json"))["spec"]["template"]["spec"]["containers"][0]
    without = [each for each in arguments["args"] if not each.startswith("--feature-gates")]
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": without}]
    kubectl.does("patch", *OPERATOR, "--type=json", f"--patch={json.dumps(patch)}")
    until(lambda: len(pods("hosts")) >= len(before) + 2, "the operator has created them again", SETTLES)
    assert before < set(pods("hosts"))
    assert len(pods("hosts")) == len(before) + 2


def test_the_operator_is_upgraded_while_ray_clusters_run(
    old: Stack, rays: Rays, pods: Pods, cluster: Rehearsal
) -> None:
    the_older_operator_serves_the_stacks_clusters(old, rays, pods)
    an_upgrade_that_would_create_workers_twice_is_refused(old)
    an_upgrade_changes_crds_first_and_keeps_all_pods(old, rays, pods)
    a_downgrade_is_refused(old)
    a_head_of_the_older_operator_is_not_recreated_for_the_strategy_recreate(old, rays, pods)
    without_the_refusal_workers_are_created_twice(old, cluster, pods)
