"""The rendered RayCluster of a cluster's settings."""

from typing import Any

import pytest

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.nodes import NodePool

POOLS = (
    NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),
    NodePool(pool="cpu", count=2, cpu="32", memory="128Gi", labels={"role": "heads"}),
    NodePool(pool="plain", count=2, cpu="32", memory="128Gi"),
)


def spec(account: str | None = "ray-deployer", **settings: Any) -> dict[str, Any]:
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workers": {"pool": "a100"}}
    rendered: dict[str, Any] = ray_cluster(valid({**entry, **settings}), POOLS, account)
    return {**rendered["spec"], "metadata": rendered["metadata"]}


def head(**settings: Any) -> dict[str, Any]:
    pod: dict[str, Any] = spec(**settings)["headGroupSpec"]["template"]["spec"]
    return pod


def workers(**settings: Any) -> list[dict[str, Any]]:
    return [group["template"]["spec"] for group in spec(**settings)["workerGroupSpecs"]]


def test_no_task_runs_on_the_head() -> None:
    assert spec()["headGroupSpec"]["rayStartParams"] == {
        "num-cpus": "0",
        "num-gpus": "0",
        "dashboard-host": "0.0.0.0",  # noqa: S104 (what Ray gets inside its pod)
    }


def test_the_head_opens_rays_ports_by_kuberays_names() -> None:
    assert {port["name"]: port["containerPort"] for port in head()["containers"][0]["ports"]} == {
        "gcs-server": 6379,
        "dashboard": 8265,
        "client": 10001,
        "metrics": 8080,
        "serve": 8000,
    }


def test_the_head_may_be_bound_to_a_pool() -> None:
    assert head(head={"pool": "cpu"})["nodeSelector"] == {"role": "heads"}
    assert "nodeSelector" not in head()


def test_head_and_workers_run_as_the_tenants_account_or_the_one_that_is_set() -> None:
    assert {pod["serviceAccountName"] for pod in [head(), *workers()]} == {"ray-deployer"}
    mine = {"serviceAccount": "mine"}
    assert {pod["serviceAccountName"] for pod in [head(**mine), *workers(**mine)]} == {"mine"}
    assert "serviceAccountName" not in head(account=None)


def test_requests_are_limits_for_every_container() -> None:
    for pod in [head(), *workers()]:
        resources = pod["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"]


def test_autoscaler_v2_removes_idle_workers() -> None:
    rendered = spec(idleTimeout="5m")
    assert rendered["enableInTreeAutoscaling"] is True
    assert rendered["autoscalerOptions"]["version"] == "v2"
    assert rendered["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    assert {pod["restartPolicy"] for pod in [head(), *workers()]} == {"Never"}


def test_every_worker_starts_single_threaded() -> None:
    for pod in workers():
        env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
        assert env.items() >= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}.items()


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


def test_image_policy_secrets_volumes_and_labels_reach_all_pods() -> None:
    settings: dict[str, Any] = {
        "image": "mirror.example/ray:2.60.0-gpu",
        "imagePullPolicy": "Always",
        "imagePullSecrets": ["mirror"],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "labels": {"owner": "team-a"},
    }
    for pod in [head(**settings), *workers(**settings)]:
        container = pod["containers"][0]
        assert (container["image"], container["imagePullPolicy"]) == ("mirror.example/ray:2.60.0-gpu", "Always")
        assert container["volumeMounts"] == settings["volumeMounts"]
        assert pod["volumes"] == settings["volumes"]
        assert pod["imagePullSecrets"] == [{"name": "mirror"}]
    rendered = spec(**settings)
    templates = [rendered["headGroupSpec"], *rendered["workerGroupSpecs"]]
    assert rendered["metadata"]["labels"] == {"owner": "team-a"}
    assert all(group["template"]["metadata"]["labels"] == {"owner": "team-a"} for group in templates)


def test_callers_need_a_token_from_the_first_ray_with_tokens() -> None:
    assert spec()["authOptions"] == {"mode": "token"}
    assert "authOptions" not in spec(rayVersion="2.51.1", image="rayproject/ray:2.51.1")
    assert spec(authOptions={"secretName": "mine"})["authOptions"] == {"mode": "token", "secretName": "mine"}
    assert spec(authOptions={"mode": "disabled"})["authOptions"] == {"mode": "disabled"}


def test_deletion_is_left_to_the_operator() -> None:
    annotations = spec(annotations={"contact": "team-a"})["metadata"]["annotations"]
    assert annotations["pulumi.com/deletionPropagationPolicy"] == "background"
    assert annotations["contact"] == "team-a"


def test_overrides_are_merged_last_by_the_names_in_lists() -> None:
    container = {"name": "ray-worker", "securityContext": {"$patch": "replace", "runAsNonRoot": True}}
    rendered = spec(
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
def test_tags_that_start_with_the_version_are_accepted(image: str) -> None:
    assert head(image=image)["containers"][0]["image"] == image


def test_without_verification_any_tag_is_accepted() -> None:
    assert spec(image="registry.example/ours:7f3c", verifyImageTag=False)["rayVersion"] == "2.60.0"
