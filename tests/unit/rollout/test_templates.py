"""The settings of updates, which pods are old, and which modules a preview loads."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from components.rollout.templates import ANNOTATION, is_old, parts, stamped


def cluster(**settings: Any) -> dict[str, Any]:
    def container(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "image": "ray:2.60.0",
            "env": [{"name": "LEVEL", "value": "1"}],
            "resources": {"limits": {"cpu": "0.5"}},
        }

    groups = [
        {"groupName": name, "rayStartParams": {}, "template": {"spec": {"containers": [container("ray-worker")]}}}
        for name in ("one", "two")
    ]
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [container("ray-head")]}}}
    return {"metadata": {"name": "x"}, "spec": {"headGroupSpec": head, "workerGroupSpecs": groups, **settings}}


def pod(body: dict[str, Any], place: int = 0) -> dict[str, Any]:
    """A pod as KubeRay creates it, with its variables, and with amounts as the API server writes them."""
    template = copy.deepcopy(body["spec"]["workerGroupSpecs"][place]["template"])
    ray = template["spec"]["containers"][0]
    ray["env"].insert(0, {"name": "RAY_ADDRESS", "value": "head:6379"})
    ray["resources"]["limits"]["cpu"] = "500m"
    return {"metadata": template.get("metadata", {}), "spec": template["spec"]}


def old(made: dict[str, Any], body: dict[str, Any]) -> bool:
    return is_old(made, parts(body["spec"])["groups"]["one"])


def edited(change: Any) -> dict[str, Any]:
    body = cluster()
    change(body["spec"])
    return stamped(body, None)


def test_numbers_and_idle_times_make_no_pod_old() -> None:
    made = pod(stamped(cluster(), None))
    same = cluster(autoscalerOptions={"idleTimeoutSeconds": 5})
    same["spec"]["workerGroupSpecs"][0].update(replicas=3, maxReplicas=9, idleTimeoutSeconds=5)
    assert not old(made, stamped(same, None))
    before, after = parts(stamped(cluster(), None)["spec"]), parts(stamped(same, None)["spec"])
    assert before["groups"] == after["groups"]


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0].update(image="ray:2.60.1"),
        lambda spec: spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0].update(env=[]),
        lambda spec: spec["workerGroupSpecs"][0]["rayStartParams"].update({"num-cpus": "1"}),
        lambda spec: spec.update(authOptions={"mode": "token"}),
    ],
    ids=["image", "a variable less", "flag of ray start", "authentication"],
)
def test_a_changed_field_of_a_pod_makes_it_old(change: Any) -> None:
    assert old(pod(stamped(cluster(), None)), edited(change))


def test_an_edit_of_one_group_makes_no_other_old() -> None:
    body = edited(lambda spec: spec["workerGroupSpecs"][1]["rayStartParams"].update({"num-cpus": "1"}))
    made = stamped(cluster(), None)
    assert not old(pod(made), body)
    assert is_old(pod(made, 1), parts(body["spec"])["groups"]["two"])
    assert parts(made["spec"])["head"] == parts(body["spec"])["head"]


def test_a_pod_whose_group_does_not_exist_is_old() -> None:
    assert is_old(pod(stamped(cluster(), None)), None)


def test_a_running_cluster_that_equals_its_settings_is_not_edited() -> None:
    """A RayCluster that is adopted, or that an older version of this program has created."""
    live = cluster()["spec"]
    assert stamped(cluster(), live) == cluster()
    changed_by_a_webhook = pod(cluster())
    changed_by_a_webhook["spec"]["containers"][0]["image"] = "mirror/ray:2.60.0"
    assert not old(changed_by_a_webhook, cluster())
    edit = cluster()
    edit["spec"]["workerGroupSpecs"][0]["rayStartParams"] = {"num-cpus": "1"}
    one, two = stamped(edit, live)["spec"]["workerGroupSpecs"]
    assert ANNOTATION in one["template"]["metadata"]["annotations"]
    assert "metadata" not in two["template"]


def test_a_template_keeps_its_annotation() -> None:
    once = stamped(cluster(), None)
    assert stamped(cluster(), once["spec"]) == once


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image", "ray:2.60.1"),
        ("env", [{"name": "LEVEL", "value": "2"}]),
        ("resources", {"limits": {"cpu": "1"}}),
    ],
)
def test_a_pod_without_the_annotation_is_compared_with_the_template(key: str, value: Any) -> None:
    body = edited(lambda spec: spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0].update({key: value}))
    assert old(pod(cluster()), body)


def test_no_annotation_is_added_if_kuberay_would_delete_all_pods() -> None:
    body = cluster(upgradeStrategy={"type": "Recreate"})
    assert stamped(body, None) == body


def test_the_state_contains_no_values_of_variables() -> None:
    body = edited(
        lambda spec: spec["headGroupSpec"]["template"]["spec"]["containers"][0]["env"][0].update(value="hush")
    )
    assert "hush" not in str(parts(body["spec"]))


def cluster_with(**more: Any) -> RayClusterSettings:
    return valid({"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **more})


def test_the_default_ends_no_busy_worker() -> None:
    assert cluster_with().updates.strategy == "onIdle"
    assert cluster_with(overrides={"upgradeStrategy": {"type": "Recreate"}}).updates.strategy == "onIdle"


READS = """
import sys
from components.cluster import ClusterUnreachableError
from components.kubernetes_cluster import KubernetesCluster
from components.operator.upgrade import look
from components.rollout.pods import Pods
for read in (Pods(KubernetesCluster(), "team-a", "training").all, lambda: look(KubernetesCluster(), "ray-system")):
    try:
        read()
    except ClusterUnreachableError:
        pass
    else:
        sys.exit("something answered")
print([name for name in sys.modules if name.startswith("kubernetes.client.api.")])
"""


def test_pods_and_the_operator_are_read_without_a_typed_api(tmp_path: Path) -> None:
    file = tmp_path / "config"
    server = {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}
    contexts = [{"name": "none", "context": {"cluster": "none", "user": "none"}}]
    users = [{"name": "none", "user": {}}]
    file.write_text(json.dumps({"current-context": "none", "contexts": contexts, "clusters": [server], "users": users}))
    done = subprocess.run([sys.executable, "-c", READS], env={"KUBECONFIG": str(file)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
