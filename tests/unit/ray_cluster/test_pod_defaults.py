"""The defaults of a RayCluster's pods, and the settings that override them."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.priority_classes.settings import PriorityNames
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.pods import DRAIN_VARIABLE
from components.ray_cluster.rules import valid
from core.nodes import NodePool
from kuberay import OperatorContext, validate

POOLS = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8),)
ENTRY = {
    "name": "training",
    "rayVersion": "2.60.0",
    "image": "rayproject/ray:2.60.0",
    "workers": {"pool": "a100"},
    "workerGroups": [{"groupName": "small", "cpu": 2, "memory": "4Gi"}],
}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def spec(account: str | None = None, priorities: PriorityNames | None = None, **keys: Any) -> dict[str, Any]:
    """The spec of a cluster that the operator accepts."""
    settings = valid({**ENTRY, **keys})
    body = ray_cluster(settings, POOLS, account, priorities or PriorityNames())
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def pods(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The pod spec of the head, and of each worker group."""
    return [group["template"]["spec"] for group in (made["headGroupSpec"], *made["workerGroupSpecs"])]


def test_pods_meet_pod_security_restricted() -> None:
    made = spec()
    for pod in pods(made):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    for container in (*(pod["containers"][0] for pod in pods(made)), made["autoscalerOptions"]):
        assert container["securityContext"] == {**RESTRICTED, "runAsUser": 1000}


def test_pod_defaults_none_adds_nothing() -> None:
    made = spec(podDefaults="none", priorities=PriorityNames("ray-head", "ray-worker"))
    for pod in pods(made):
        assert pod.keys() <= {"restartPolicy", "containers"}
        assert "securityContext" not in pod["containers"][0]
    assert made["autoscalerOptions"].keys() == {"version", "idleTimeoutSeconds", "imagePullPolicy"}


def ends(**settings: Any) -> list[tuple[str | None, int | None]]:
    """Ray's seconds for a drain, and the grace period, of the head and of one worker of each kind."""
    group = {"groupName": "any", **settings.pop("group", {})}
    made = pods(spec(workers={"pool": "a100", "variants": [{"gpus": 8}]}, workerGroups=[group], **settings))
    env = [{each["name"]: each["value"] for each in pod["containers"][0].get("env", [])} for pod in made]
    graces = [pod.get("terminationGracePeriodSeconds") for pod in made]
    return [(each.get(DRAIN_VARIABLE), grace) for each, grace in zip(env, graces, strict=True)]


def test_a_worker_finishes_its_work_before_it_is_killed_and_a_head_ends_at_once() -> None:
    assert ends() == [("0", 10), ("40", 60), ("40", 60)]
    assert ends(drainTimeout="2m", group={"drainTimeout": "0s"}) == [("0", 10), ("120", 140), ("0", 20)]
    assert ends(podDefaults="none") == [(None, None)] * 3
    assert ends(podDefaults="none", drainTimeout="5s") == [(None, None), ("5", 25), ("5", 25)]
    old = {"rayVersion": "2.56.0", "image": "rayproject/ray:2.56.0"}
    assert ends(**old) == [(None, 10), (None, None), (None, None)]
    with pytest.raises(ValidationError, match=r"Ray drains from 2\.57\.0 on, and rayVersion is '2\.56\.0'"):
        ends(**old, drainTimeout="2m")


def test_a_head_does_not_wait_long_for_its_autoscaler_to_end() -> None:
    assert "terminationGracePeriodSeconds" not in pods(spec(autoscaling=False))[0]
    head = {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 60}}}
    assert pods(spec(head=head))[0]["terminationGracePeriodSeconds"] == 60


def test_another_user_or_that_of_the_image_can_be_set() -> None:
    assert pods(spec(runAsUser=2000))[0]["containers"][0]["securityContext"]["runAsUser"] == 2000
    made = spec(runAsUser="image")
    assert [pod["containers"][0]["securityContext"] for pod in pods(made)] == [RESTRICTED] * 6
    assert made["autoscalerOptions"]["securityContext"] == RESTRICTED


def test_added_containers_are_restricted_unless_they_have_a_security_context() -> None:
    proxy = {"name": "proxy", "image": "proxy:1", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}
    template = {
        "spec": {
            "containers": [{"name": "logs", "image": "logs:1"}, proxy],
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        }
    }
    head = pods(spec(head={"podTemplate": template}))[0]
    assert [each["securityContext"] for each in head["containers"][1:]] == [RESTRICTED, proxy["securityContext"]]
    assert [each["securityContext"] for each in head["initContainers"]] == [RESTRICTED]


def test_a_pod_template_overrides_the_defaults() -> None:
    template = {
        "spec": {
            "priorityClassName": "mine",
            "automountServiceAccountToken": True,
            "securityContext": {"fsGroup": 100},
            "containers": [{"name": "ray-head", "securityContext": {"runAsUser": 7, "readOnlyRootFilesystem": True}}],
        }
    }
    head = pods(spec(head={"podTemplate": template}, priorities=PriorityNames("ray-head")))[0]
    assert (head["priorityClassName"], head["automountServiceAccountToken"]) == ("mine", True)
    assert head["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": 100,
    }
    assert head["containers"][0]["securityContext"] == {**RESTRICTED, "runAsUser": 7, "readOnlyRootFilesystem": True}


def test_heads_and_workers_have_the_stacks_priority_classes() -> None:
    head, *workers = pods(spec(priorities=PriorityNames("ray-head", "ray-worker")))
    assert head["priorityClassName"] == "ray-head"
    assert {pod["priorityClassName"] for pod in workers} == {"ray-worker"}
    assert not any("priorityClassName" in pod for pod in pods(spec()))


def test_pods_have_no_token_and_the_autoscaler_has_its_own() -> None:
    """Otherwise user code in the head could use the autoscaler's rights."""
    made = spec()
    assert {pod["automountServiceAccountToken"] for pod in pods(made)} == {False}
    assert "volumeMounts" not in pods(made)[0]["containers"][0]
    [volume] = pods(made)[0]["volumes"]
    [mount] = made["autoscalerOptions"]["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/var/run/secrets/kubernetes.io/serviceaccount")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == ["serviceAccountToken", "configMap"]


def test_volumes_of_the_cluster_stay_beside_the_autoscalers_token() -> None:
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    head, *workers = pods(spec(volumes=[data]))
    assert [volume["name"] for volume in head["volumes"]] == ["data", "autoscaler-token"]
    assert {volume["name"] for pod in workers for volume in pod["volumes"]} == {"data"}


def test_a_head_without_an_autoscaler_has_no_token_at_all() -> None:
    head = pods(spec(autoscaling=False))[0]
    assert (head["automountServiceAccountToken"], "volumes" in head) == (False, False)


def test_pods_of_a_named_account_have_its_token() -> None:
    for made in (spec("the-tenants"), spec(serviceAccount="its-own")):
        assert not any("automountServiceAccountToken" in pod or "volumes" in pod for pod in pods(made))
        assert "volumeMounts" not in made["autoscalerOptions"]


def test_a_pod_template_may_name_the_account() -> None:
    head, *workers = pods(spec(head={"podTemplate": {"spec": {"serviceAccountName": "runner"}}}))
    assert "automountServiceAccountToken" not in head
    assert {pod["automountServiceAccountToken"] for pod in workers} == {False}
