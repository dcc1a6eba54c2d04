"""The RayCluster of a cluster's settings: our keys, KubeRay's own, scaling, and the defaults of its pods."""

import re
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from components.priority_classes.settings import PriorityNames
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from core.nodes import NodePool
from kuberay import OperatorContext, validate
from kuberay.ray_start import DRAIN_VARIABLE

POOLS = (
    NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),
    NodePool(pool="cpu", count=3, cpu="32", memory="128Gi", labels={"role": "heads"}),
    NodePool(pool="plain", count=2, cpu="32", memory="128Gi"),
    NodePool(pool="any-a100", count=4, cpu="64", memory="1000Gi", gpus=8),
)
SMALL = {"groupName": "small", "cpu": 2, "memory": "4Gi"}


def spec(*, account: str | None = None, priorities: PriorityNames | None = None, **settings: Any) -> dict[str, Any]:
    """The spec, and the metadata, of a cluster that the operator accepts."""
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **settings}
    body = ray_cluster(valid(entry), POOLS, account, priorities or PriorityNames())
    assert validate(body, OperatorContext()) == []
    return {**body["spec"], "metadata": body["metadata"]}


on_a100 = partial(spec, account="ray-deployer", workers={"pool": "a100"})
of_one_group = partial(spec, workerGroups=[SMALL])
with_a_group = partial(spec, workers={"pool": "any-a100"}, workerGroups=[SMALL])


def head(**settings: Any) -> dict[str, Any]:
    pod: dict[str, Any] = on_a100(**settings)["headGroupSpec"]["template"]["spec"]
    return pod


def workers(**settings: Any) -> list[dict[str, Any]]:
    return [group["template"]["spec"] for group in on_a100(**settings)["workerGroupSpecs"]]


def test_no_task_runs_on_the_head_which_opens_rays_ports_by_kuberays_names() -> None:
    assert on_a100()["headGroupSpec"]["rayStartParams"] == {
        "num-cpus": "0",
        "num-gpus": "0",
        "dashboard-host": "0.0.0.0",  # noqa: S104 (what Ray gets inside its pod)
    }
    assert {port["name"]: port["containerPort"] for port in head()["containers"][0]["ports"]} == {
        **{"gcs-server": 6379, "dashboard": 8265, "client": 10001, "metrics": 8080, "serve": 8000}
    }


def test_requests_are_limits_and_every_worker_starts_single_threaded() -> None:
    for pod in [head(), *workers()]:
        resources = pod["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"]
    for pod in workers():
        env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
        assert env.items() >= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}.items()


def test_the_head_may_be_bound_to_a_pool() -> None:
    assert head(head={"pool": "cpu"})["nodeSelector"] == {"role": "heads"}
    assert "nodeSelector" not in head()


def test_head_and_workers_run_as_the_tenants_account_or_the_one_that_is_set() -> None:
    assert {pod["serviceAccountName"] for pod in [head(), *workers()]} == {"ray-deployer"}
    mine = {"serviceAccount": "mine"}
    assert {pod["serviceAccountName"] for pod in [head(**mine), *workers(**mine)]} == {"mine"}
    assert "serviceAccountName" not in head(account=None)


def test_autoscaler_v2_removes_idle_workers() -> None:
    rendered = on_a100(idleTimeout="5m")
    assert rendered["enableInTreeAutoscaling"] is True
    assert rendered["autoscalerOptions"]["version"] == "v2"
    assert rendered["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    assert {pod["restartPolicy"] for pod in [head(), *workers()]} == {"Never"}


def test_environment_of_a_group_overrides_that_of_the_cluster_and_the_default() -> None:
    settings = {
        "env": {"OMP_NUM_THREADS": 4, "HF_HOME": "/data"},
        "workers": {"pool": "a100", "env": {"HF_HOME": "/w"}},
    }
    env = {each["name"]: each["value"] for each in workers(**settings)[0]["containers"][0]["env"]}
    assert env.items() >= {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1", "HF_HOME": "/w"}.items()
    assert head(**settings)["containers"][0]["env"][-2:] == [
        {"name": "OMP_NUM_THREADS", "value": "4"},
        {"name": "HF_HOME", "value": "/data"},
    ]


def test_image_policy_secrets_volumes_labels_and_annotations_are_rendered() -> None:
    settings: dict[str, Any] = {
        "image": "mirror.example/ray:2.60.0-gpu",
        "imagePullPolicy": "Always",
        "imagePullSecrets": ["mirror"],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "labels": {"owner": "team-a"},
        "annotations": {"contact": "team-a"},
    }
    rendered = on_a100(**settings)
    templates = [each["template"] for each in (rendered["headGroupSpec"], *rendered["workerGroupSpecs"])]
    for pod, container in ((each["spec"], each["spec"]["containers"][0]) for each in templates):
        assert (container["image"], container["imagePullPolicy"]) == ("mirror.example/ray:2.60.0-gpu", "Always")
        assert container["volumeMounts"] == settings["volumeMounts"]
        assert pod["volumes"] == settings["volumes"]
        assert pod["imagePullSecrets"] == [{"name": "mirror"}]
    assert {str(each["metadata"]["labels"]) for each in (rendered, *templates)} == {str({"owner": "team-a"})}
    # Its deletion is left to the operator.
    expected = {"contact": "team-a", "pulumi.com/deletionPropagationPolicy": "background"}
    assert rendered["metadata"]["annotations"].items() >= expected.items()


def test_callers_need_a_token_from_the_first_ray_with_tokens() -> None:
    assert on_a100()["authOptions"] == {"mode": "token"}
    assert "authOptions" not in on_a100(rayVersion="2.51.1", image="rayproject/ray:2.51.1")
    assert on_a100(authOptions={"secretName": "mine"})["authOptions"] == {"mode": "token", "secretName": "mine"}
    assert on_a100(authOptions={"mode": "disabled"})["authOptions"] == {"mode": "disabled"}


def test_overrides_are_merged_last_by_the_names_in_lists() -> None:
    container = {"name": "ray-worker", "securityContext": {"$patch": "replace", "runAsNonRoot": True}}
    rendered = on_a100(
        overrides={
            "workerGroupSpecs": [
                {"groupName": "a100-8gpu", "maxReplicas": 3, "template": {"spec": {"containers": [container]}}}
            ],
            "headGroupSpec": {"serviceType": "ClusterIP"},
            "authOptions": None,
        }
    )
    largest = rendered["workerGroupSpecs"][3]
    assert [group["groupName"] for group in rendered["workerGroupSpecs"]][3] == "a100-8gpu"
    assert largest["maxReplicas"] == 3
    assert largest["template"]["spec"]["containers"][0]["securityContext"] == {"runAsNonRoot": True}
    assert largest["template"]["spec"]["containers"][0]["image"] == "rayproject/ray:2.60.0"
    assert rendered["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert "authOptions" not in rendered


@pytest.mark.parametrize(
    "image",
    ["rayproject/ray:2.60.0", "rayproject/ray:2.60.0-py311-gpu", f"host:5000/ray:2.60.0.dev1@sha256:{'a' * 64}"],
)
def test_tags_that_start_with_the_version_are_accepted_and_without_verification_any(image: str) -> None:
    assert head(image=image)["containers"][0]["image"] == image
    assert on_a100(image="registry.example/ours:7f3c", verifyImageTag=False)["rayVersion"] == "2.60.0"


def group(**settings: Any) -> dict[str, Any]:
    [rendered] = spec(workerGroups=[{**SMALL, **settings}])["workerGroupSpecs"]
    return dict(rendered)


def test_a_group_has_only_its_configured_values() -> None:
    amounts = {"cpu": "2", "memory": "4Gi"}
    container = {
        "name": "ray-worker",
        "image": "rayproject/ray:2.60.0",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": amounts, "requests": amounts},
    }
    assert spec(workerGroups=[SMALL], podDefaults="none")["workerGroupSpecs"] == [
        {
            "groupName": "small",
            "minReplicas": 0,
            "rayStartParams": {},
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
    ]


def test_all_settings_of_a_group_are_rendered() -> None:
    made = group(
        replicas=2,
        minReplicas=1,
        maxReplicas=3,
        numOfHosts=4,
        gpus=1,
        image="other:2.60.0",
        env={"A": 1},
        rayStartParams={"num-cpus": "1"},
        labels={"zone": "z"},
        idleTimeout="90s",
    )
    container = made["template"]["spec"]["containers"][0]
    assert [made[key] for key in ("replicas", "minReplicas", "maxReplicas", "numOfHosts")] == [2, 1, 3, 4]
    assert (made["rayStartParams"], made["labels"], made["idleTimeoutSeconds"]) == (
        {"num-cpus": "1"},
        {"zone": "z"},
        90,
    )
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
    assert (container["image"], container["env"][-1]) == ("other:2.60.0", {"name": "A", "value": "1"})


def test_a_group_on_a_pool_selects_its_nodes_and_gets_a_share_of_one() -> None:
    [made] = spec(workerGroups=[{"groupName": "half", "pool": "a100", "gpus": 4}])["workerGroupSpecs"]
    pod = made["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "30", "memory": "468Gi", "nvidia.com/gpu": "4"}
    assert "nodeAffinity" in pod["affinity"]


def test_configured_groups_are_added_to_those_of_a_pool_and_there_may_be_none() -> None:
    made = spec(workers={"pool": "cpu"}, workerGroups=[SMALL])["workerGroupSpecs"]
    assert [each["groupName"] for each in made] == ["cpu-cpu", "small"]
    assert spec()["workerGroupSpecs"] == []


def test_a_pod_template_is_merged_over_the_derived_one() -> None:
    reference = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    mine = {"name": "ray-worker", "env": [reference], "resources": {"limits": {"ephemeral-storage": "1Gi"}}}
    template = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"priorityClassName": "high", "containers": [mine, {"name": "sidecar", "image": "side:1"}]},
    }
    made = group(podTemplate=template)["template"]
    ray, sidecar = made["spec"]["containers"]
    assert (made["metadata"]["annotations"], made["spec"]["priorityClassName"]) == ({"a": "b"}, "high")
    assert ray["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "1Gi"}
    assert ray["env"][-1] == reference
    assert (sidecar["name"], sidecar["image"]) == ("sidecar", "side:1")


def test_pod_templates_of_a_pool_are_for_all_sizes_and_those_of_a_size_for_it_alone() -> None:
    workers = {
        "pool": "a100",
        "variants": [{"gpus": 1}, {"gpus": 8, "podTemplate": {"spec": {"priorityClassName": "whole"}}}],
        "podTemplate": {"spec": {"priorityClassName": "any", "hostIPC": True}},
    }
    pods = [each["template"]["spec"] for each in spec(workers=workers)["workerGroupSpecs"]]
    assert [pod["priorityClassName"] for pod in pods] == ["any", "whole"]
    assert all(pod["hostIPC"] for pod in pods)


def test_the_head_has_its_own_image_labels_and_template() -> None:
    template = {"spec": {"containers": [{"name": "ray-head", "ports": [{"containerPort": 9090, "name": "mine"}]}]}}
    head = spec(head={"image": "head:2.60.0", "labels": {"zone": "z"}, "podTemplate": template})["headGroupSpec"]
    container = head["template"]["spec"]["containers"][0]
    assert (head["labels"], container["image"]) == ({"zone": "z"}, "head:2.60.0")
    assert [port["containerPort"] for port in container["ports"]] == [6379, 8265, 10001, 8080, 8000, 9090]


def test_overrides_can_remove_any_field() -> None:
    without_ports = {"name": "ray-head", "ports": [{"$patch": "replace"}]}
    made = spec(
        workers={"pool": "a100"},
        overrides={
            "autoscalerOptions": None,
            "headGroupSpec": {"template": {"spec": {"restartPolicy": None, "containers": [without_ports]}}},
            "workerGroupSpecs": [{"groupName": "a100-1gpu", "$patch": "delete"}],
        },
    )
    pod = made["headGroupSpec"]["template"]["spec"]
    assert "autoscalerOptions" not in made
    assert "restartPolicy" not in pod
    assert pod["containers"][0]["ports"] == []
    assert [each["groupName"] for each in made["workerGroupSpecs"]] == ["a100-2gpu", "a100-4gpu", "a100-8gpu"]


def test_settings_of_the_cluster_apply_to_the_only_worker_group() -> None:
    made = of_one_group(minWorkers=1, maxWorkers=2, initialWorkers=1, autoScalingMode="default", idleTimeoutMinutes=60)
    [group] = made["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"], group["replicas"]) == (1, 2, 1)
    assert made["autoscalerOptions"].items() >= {"idleTimeoutSeconds": 3600, "upscalingMode": "Default"}.items()


@pytest.mark.parametrize(
    ("setting", "upscaling"),
    [
        *(({"autoScalingMode": mode.lower()}, mode) for mode in ("Default", "Aggressive", "Conservative")),
        *(({"targetUtilization": percent}, "Default") for percent in (1, 49)),
        *(({"targetUtilization": percent}, "Conservative") for percent in (50, 80, 100)),
    ],
)
def test_a_scaling_mode_or_a_target_utilization_sets_kuberays_mode(setting: dict[str, Any], upscaling: str) -> None:
    """Ray converted a utilization into an upscaling speed, 1 / fraction - 1. KubeRay has the speed 1, and no limit."""
    assert of_one_group(**setting)["autoscalerOptions"]["upscalingMode"] == upscaling


@pytest.mark.parametrize("off", [{"autoscaling": False}, {"autoScalingMode": "disabled"}])
def test_without_the_autoscaler_a_group_keeps_its_replicas_and_needs_no_bounds(off: dict[str, Any]) -> None:
    made = of_one_group(workerGroups=[{**SMALL, "replicas": 3, "maxReplicas": 3}], **off)
    assert not made.keys() & {"enableInTreeAutoscaling", "autoscalerOptions"}
    assert made["workerGroupSpecs"][0]["replicas"] == 3
    assert of_one_group(initialWorkers=2, **off)["workerGroupSpecs"][0]["replicas"] == 2


RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pods(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The pod spec of the head, and of each worker group."""
    return [group["template"]["spec"] for group in (made["headGroupSpec"], *made["workerGroupSpecs"])]


def test_pods_meet_pod_security_restricted() -> None:
    made = with_a_group()
    for pod in pods(made):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    for container in (*(pod["containers"][0] for pod in pods(made)), made["autoscalerOptions"]):
        assert container["securityContext"] == {**RESTRICTED, "runAsUser": 1000}


def test_pod_defaults_none_adds_nothing() -> None:
    made = with_a_group(podDefaults="none", priorities=PriorityNames("ray-head", "ray-worker"))
    for pod in pods(made):
        assert pod.keys() <= {"restartPolicy", "containers"}
        assert "securityContext" not in pod["containers"][0]
    assert made["autoscalerOptions"].keys() == {"version", "idleTimeoutSeconds", "imagePullPolicy"}


def ends(group: dict[str, Any] | None = None, **settings: Any) -> list[tuple[str | None, int | None]]:
    """Ray's seconds for a drain, and the grace period, of the head and of one worker of each kind."""
    of_pool = {"pool": "a100", "variants": [{"gpus": 8}]}
    made = pods(spec(workers=of_pool, workerGroups=[{**SMALL, **(group or {})}], **settings))
    env = [{each["name"]: each["value"] for each in pod["containers"][0].get("env", [])} for pod in made]
    graces = [pod.get("terminationGracePeriodSeconds") for pod in made]
    return [(each.get(DRAIN_VARIABLE), grace) for each, grace in zip(env, graces, strict=True)]


def test_a_worker_finishes_its_work_before_it_is_killed_and_a_head_ends_at_once() -> None:
    assert ends() == [("0", 10), ("40", 60), ("40", 60)]
    assert ends(drainTimeout="2m", group={"drainTimeout": "0s"}) == [("0", 10), ("120", 140), ("0", 20)]
    assert ends(podDefaults="none") == [(None, None)] * 3
    assert ends(podDefaults="none", drainTimeout="5s") == [(None, None), ("5", 25), ("5", 25)]
    # A head does not wait long for its autoscaler to end.
    assert ends(autoscaling=False)[0] == ("0", None)
    assert ends(head={"podTemplate": {"spec": {"terminationGracePeriodSeconds": 60}}})[0] == ("0", 60)
    old: dict[str, Any] = {"rayVersion": "2.56.0", "image": "rayproject/ray:2.56.0"}
    assert ends(**old) == [(None, 10), (None, None), (None, None)]
    with pytest.raises(ValidationError, match=r"Ray drains from 2\.57\.0 on, and rayVersion is '2\.56\.0'"):
        ends(**old, drainTimeout="2m")


def test_another_user_or_that_of_the_image_can_be_set() -> None:
    assert pods(with_a_group(runAsUser=2000))[0]["containers"][0]["securityContext"]["runAsUser"] == 2000
    made = with_a_group(runAsUser="image")
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
    head = pods(with_a_group(head={"podTemplate": template}))[0]
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
    head = pods(with_a_group(head={"podTemplate": template}, priorities=PriorityNames("ray-head")))[0]
    assert (head["priorityClassName"], head["automountServiceAccountToken"]) == ("mine", True)
    assert head["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": 100,
    }
    assert head["containers"][0]["securityContext"] == {**RESTRICTED, "runAsUser": 7, "readOnlyRootFilesystem": True}


def test_heads_and_workers_have_the_stacks_priority_classes() -> None:
    head, *workers = pods(with_a_group(priorities=PriorityNames("ray-head", "ray-worker")))
    assert head["priorityClassName"] == "ray-head"
    assert {pod["priorityClassName"] for pod in workers} == {"ray-worker"}
    assert not any("priorityClassName" in pod for pod in pods(with_a_group()))


def test_pods_have_no_token_and_the_autoscaler_has_its_own() -> None:
    """Otherwise user code in the head could use the autoscaler's rights."""
    made = with_a_group(volumes=[{"name": "data", "emptyDir": {}}])
    assert {pod["automountServiceAccountToken"] for pod in pods(made)} == {False}
    assert "volumeMounts" not in pods(made)[0]["containers"][0]
    [data, volume] = pods(made)[0]["volumes"]
    [mount] = made["autoscalerOptions"]["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/var/run/secrets/kubernetes.io/serviceaccount")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == ["serviceAccountToken", "configMap"]
    assert all(pod["volumes"] == [data] for pod in pods(made)[1:])
    head = pods(with_a_group(autoscaling=False))[0]
    assert (head["automountServiceAccountToken"], "volumes" in head) == (False, False)


def test_pods_of_a_named_account_have_its_token_also_if_a_pod_template_names_it() -> None:
    for made in (with_a_group(account="the-tenants"), with_a_group(serviceAccount="its-own")):
        assert not any("automountServiceAccountToken" in pod or "volumes" in pod for pod in pods(made))
        assert "volumeMounts" not in made["autoscalerOptions"]
    head, *workers = pods(with_a_group(head={"podTemplate": {"spec": {"serviceAccountName": "runner"}}}))
    assert "automountServiceAccountToken" not in head
    assert {pod["automountServiceAccountToken"] for pod in workers} == {False}


PAGE = (Path(__file__).parents[3] / "docs" / "stack-file.md").read_text()
KEYS = {str(field.alias) for field in RayClusterSettings.model_fields.values()}


def examples() -> list[dict[str, Any]]:
    """The indented blocks whose keys are a cluster's."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)
    documents = [yaml.safe_load(textwrap.dedent(block)) for block in blocks if re.match(r"\s*[a-zA-Z]+:", block)]
    return [each for each in documents if isinstance(each, dict) and set(each) <= KEYS]


@pytest.mark.parametrize("example", examples(), ids=lambda example: ",".join(example))
def test_an_example_is_valid(example: dict[str, Any]) -> None:
    spec(**{"workers": {"pool": "a100"}, **example})


def test_the_page_has_examples_with_flags_in_json_that_are_quoted_as_documented() -> None:
    assert {"workers", "workerGroups", "head", "overrides"} <= {key for each in examples() for key in each}
    [flag] = re.findall(r'`resources: (".*?")`', PAGE)
    spec(head={"rayStartParams": {"resources": yaml.safe_load(flag)}})
