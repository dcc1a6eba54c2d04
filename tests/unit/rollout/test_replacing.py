"""Which pods of a RayCluster are old, which an edit replaces, by which requests, and how a worker group is retired."""

import copy
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, ConflictError, ForbiddenError
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from components.rollout.pods import Pods, UnknownRayError
from components.rollout.replacing import Desired, cannot_join, has_pods_to_replace, replace_old
from components.rollout.retirement import Groups, NotRetiredError, retire
from components.rollout.templates import ANNOTATION, is_old, parts, stamped
from testbed.fake_cluster import FakeCluster
from tests.unit.rollout.simulated import PARTS, Simulated


def desired(strategy: Any, limit: float = 60, workers_outlive_head: bool = False) -> Desired:
    return Desired(strategy, limit, PARTS, "2.60.0", workers_outlive_head)


@pytest.mark.parametrize("strategy", ["onIdle", "drain", "immediate", "none"])
def test_current_pods_stay_and_ray_is_not_asked(pods: Simulated, strategy: str) -> None:
    pods.add("present", stamp="new", busy=100)
    pods.silent = "asked"
    assert not has_pods_to_replace(pods, desired(strategy))
    assert replace_old(pods, desired(strategy)) == []
    assert (pods.deleted, pods.now) == ([], 0)


def test_on_idle_replaces_idle_workers_and_names_the_busy_ones(pods: Simulated) -> None:
    pods.add("idle")
    pods.add("busy", busy=1000)
    assert has_pods_to_replace(pods, desired("onIdle"))
    [message] = replace_old(pods, desired("onIdle"))
    assert message.startswith("busy workers keep their former settings: busy. ")
    assert pods.deleted == ["idle"]
    assert "busy" not in pods.drained
    assert not has_pods_to_replace(pods, desired("onIdle"))
    pods.now = 1000
    assert has_pods_to_replace(pods, desired("onIdle"))
    assert replace_old(pods, desired("onIdle")) == []
    assert pods.deleted == ["idle", "busy"]


def test_drain_waits_for_tasks_and_accepts_no_new_ones(pods: Simulated) -> None:
    pods.add("idle")
    pods.add("busy", busy=30)
    shown: list[str] = []
    assert replace_old(pods, desired("drain"), shown.append) == []
    assert pods.deleted == ["idle", "busy"]
    assert 30 <= pods.now < 40
    assert pods.drained == {"idle": 60.0, "busy": 60.0}
    assert shown[-1] == "1 old workers are busy: busy"


def test_drain_ends_busy_workers_at_its_limit(pods: Simulated) -> None:
    pods.add("busy", busy=1000)
    assert replace_old(pods, desired("drain")) == []
    assert pods.deleted == ["busy"]
    assert 60 <= pods.now < 70


def test_an_interrupted_drain_is_continued(pods: Simulated) -> None:
    pods.add("busy", busy=30)

    def killed(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_old(pods, desired("drain"), killed)
    assert has_pods_to_replace(pods, desired("drain"))
    assert replace_old(pods, desired("drain")) == []
    assert pods.deleted == ["busy"]


@pytest.mark.parametrize("strategy", ["onIdle", "drain"])
@pytest.mark.parametrize("kind", ["worker", "head"])
def test_a_pod_that_has_not_started_is_deleted_at_once(pods: Simulated, strategy: str, kind: str) -> None:
    """For example because its image does not exist, which this edit corrects."""
    pods.add("pending", group="headgroup" if kind == "head" else "one", kind=kind, phase="Pending")
    pods.silent = "asked"
    assert has_pods_to_replace(pods, desired(strategy))
    assert replace_old(pods, desired(strategy)) == []
    assert pods.deleted == ["pending"]
    assert not has_pods_to_replace(pods, desired(strategy))


@pytest.mark.parametrize("state", ["running", "waiting"])
def test_a_head_whose_autoscaler_has_not_started_stays_if_ray_runs(pods: Simulated, state: str) -> None:
    pods.add("head", group="headgroup", kind="head", phase="Pending")
    pods.bodies["head"]["status"]["containerStatuses"] = [{"state": {state: {}}}, {"state": {"waiting": {}}}]
    assert has_pods_to_replace(pods, desired("onIdle")) == (state == "waiting")
    assert len(replace_old(pods, desired("onIdle"))) == (state == "running")


@pytest.mark.parametrize("strategy", ["onIdle", "drain"])
def test_no_pod_is_deleted_if_ray_does_not_answer(pods: Simulated, strategy: str) -> None:
    pods.add("unknown")
    pods.silent = "no process"
    [message] = replace_old(pods, desired(strategy))
    assert message == (
        "unknown keep their former settings, because it cannot be determined whether they are busy: no process"
    )
    assert pods.deleted == []
    assert not has_pods_to_replace(pods, desired(strategy))


def test_no_pod_is_deleted_if_new_workers_could_not_join_the_head(pods: Simulated) -> None:
    pods.add("idle")
    pods.ray = "2.59.0"
    [message] = replace_old(pods, desired("onIdle"))
    assert "its head runs Ray 2.59.0, and workers with Ray 2.60.0 could not join it" in message
    assert pods.deleted == []


def test_the_head_stays_and_is_named(pods: Simulated) -> None:
    pods.add("head", group="headgroup", kind="head")
    [message] = replace_old(pods, desired("onIdle"))
    assert message.startswith("the head, pod head, keeps its former settings")


def test_hosts_of_one_worker_are_deleted_together_or_not_at_all(pods: Simulated) -> None:
    pods.add("first", group="hosts")
    pods.add("second", group="hosts", busy=30)
    assert not has_pods_to_replace(pods, desired("onIdle"))
    [message] = replace_old(pods, desired("onIdle"))
    assert "first, second" in message
    assert pods.deleted == []
    assert replace_old(pods, desired("drain")) == []
    assert pods.deleted == ["first", "second"]
    assert pods.now >= 30


@pytest.mark.parametrize(("keeps", "gone"), [(True, ["old", "head"]), (False, ["old", "head", "present"])])
def test_without_fault_tolerance_workers_are_deleted_with_their_head(
    pods: Simulated, keeps: bool, gone: list[str]
) -> None:
    pods.add("head", group="headgroup", kind="head")
    pods.add("old", busy=1000)
    pods.add("present", stamp="new", busy=1000)
    assert replace_old(pods, desired("immediate", workers_outlive_head=keeps)) == []
    assert sorted(pods.deleted) == sorted(gone)
    assert pods.deleted[-1] == "head"


def spec(version: str = "2.60.0", env: dict[str, str] | None = None, **settings: Any) -> dict[str, Any]:
    """The part of a RayCluster's spec that head and workers must share."""
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    head = {"template": {"spec": {"containers": [{"name": "ray-head", "env": variables}]}}}
    return {"rayVersion": version, "headGroupSpec": head, **settings}


TOKEN: dict[str, Any] = {"authOptions": {"mode": "token"}}
RECREATE: dict[str, Any] = {"upgradeStrategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    ("strategy", "live", "settings", "why"),
    [
        ("onIdle", spec("2.59.0"), spec(), "it runs Ray 2.59.0"),
        ("drain", spec("2.59.0"), spec(), "it runs Ray 2.59.0"),
        ("immediate", spec("2.59.0"), spec(), None),
        ("none", spec("2.59.0"), spec(), None),
        ("onIdle", spec(), spec(), None),
        ("onIdle", spec("2.59.0"), spec(**RECREATE), None),
        ("onIdle", spec(), spec(**TOKEN), "its head keeps the authOptions"),
        ("onIdle", spec(**TOKEN), spec(**TOKEN), None),
        ("drain", spec(), spec(env={"RAY_USE_TLS": "1"}), "its head keeps the RAY_USE_TLS"),
        ("onIdle", spec(), spec(env={"OTHER": "1"}), None),
        ("onIdle", {}, spec(), None),
    ],
)
def test_workers_must_be_able_to_join_the_head(
    strategy: Any, live: dict[str, Any], settings: dict[str, Any], why: str | None
) -> None:
    found = cannot_join(strategy, live, settings)
    assert (found is None) if why is None else (found is not None and why in found and "immediate" in found)


class SimulatedGroups(Groups):
    """The RayCluster's worker groups, and an operator that deletes the `workersToDelete`."""

    def __init__(self, pods: Simulated, **replicas: int) -> None:
        self._pods = pods
        self.groups: list[dict[str, Any]] = [
            {"groupName": name, "replicas": number, "minReplicas": 1, "maxReplicas": 9}
            for name, number in replicas.items()
        ]

    def all(self) -> list[Mapping[str, Any]]:
        return [dict(group) for group in self.groups]

    def shrink(self, place: int, group: Mapping[str, Any], staying: int, going: Sequence[str]) -> None:
        self.groups[place] |= {"replicas": staying, "maxReplicas": staying, "minReplicas": 0}
        for name in going:
            self._pods.remove(name)


def test_a_group_without_workers_is_removed_at_once_and_none_is_created(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=0, two=1)
    pods.silent = "asked"
    retire(groups, pods, ["two"], "onIdle", 0)
    assert groups.groups[0]["maxReplicas"] == 9
    groups = SimulatedGroups(pods, one=2)
    retire(groups, pods, [], "onIdle", 0)
    assert groups.groups[0]["replicas"] == 0


def test_idle_workers_are_deleted_before_it_and_others_stay(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2, two=1)
    pods.add("first")
    pods.add("second", phase="Pending")
    pods.add("other", group="two", busy=1000)
    retire(groups, pods, ["two"], "onIdle", 0)
    assert sorted(pods.deleted) == ["first", "second"]
    assert [group["replicas"] for group in groups.groups] == [0, 1]


def test_busy_workers_keep_it_and_nothing_is_changed(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2)
    pods.add("idle")
    pods.add("busy", busy=1000)
    with pytest.raises(
        NotRetiredError, match=r"worker group one is removed from the stack file, and has workers \(busy\)"
    ):
        retire(groups, pods, [], "onIdle", 0)
    assert (pods.deleted, pods.drained, groups.groups[0]["maxReplicas"]) == ([], {}, 9)


def test_drain_closes_the_group_and_waits(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2)
    pods.add("idle")
    pods.add("busy", busy=30)
    shown: list[str] = []

    def show(line: str) -> None:
        shown.append(line)
        assert groups.groups[0]["maxReplicas"] != 0

    retire(groups, pods, [], "drain", 60, show)
    assert pods.deleted == ["idle", "busy"]
    assert 30 <= pods.now < 40
    assert shown[-1] == "1 workers of groups to remove are still busy: busy"


def test_drain_ends_at_its_limit(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("busy", busy=1000)
    retire(groups, pods, [], "drain", 60)
    assert 60 <= pods.now < 70


def test_immediate_does_not_ask_ray(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("busy", busy=1000)
    pods.silent = "asked"
    retire(groups, pods, [], "immediate", 0)
    assert (pods.deleted, groups.groups[0]["replicas"]) == (["busy"], 0)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("none", "Set another strategy"),
        ("onIdle", "cannot be determined whether they are busy: no process"),
        ("drain", "cannot be determined"),
    ],
)
def test_a_group_with_workers_in_an_unknown_state_is_kept(pods: Simulated, strategy: Any, message: str) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("unknown")
    pods.silent = "no process"
    with pytest.raises(NotRetiredError, match=message):
        retire(groups, pods, [], strategy, 60)
    assert pods.deleted == []


def pod(name: str, kind: str, cluster: str = "training") -> dict[str, Any]:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": kind}
    metadata = {"namespace": "team-a", "name": name, "uid": f"of {name}", "resourceVersion": "7", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "ray"}]}}


HEAD, WORKER = pod("head", "head"), pod("worker", "worker")


def test_the_pods_are_those_of_ray() -> None:
    cluster = FakeCluster(HEAD, WORKER, pod("clean-up", "redis-cleanup"), pod("other", "worker", "serving"))
    assert Pods(cluster, "team-a", "training").all() == [HEAD, WORKER]


def test_only_this_pod_is_deleted_and_only_if_it_has_not_changed() -> None:
    cluster = FakeCluster(HEAD, WORKER)
    Pods(cluster, "team-a", "training").delete(WORKER)
    Pods(cluster, "team-a", "training").delete(HEAD, unchanged=True)
    assert [each.body for each in cluster.changes] == [
        {"preconditions": {"uid": "of worker"}},
        {"preconditions": {"uid": "of head", "resourceVersion": "7"}},
    ]
    Pods(cluster, "team-a", "training").delete(HEAD)  # It is gone.
    cluster.fail(ConflictError("the UID in the precondition does not match"))
    Pods(cluster, "team-a", "training").delete(HEAD)
    cluster.fail(ForbiddenError("pods is forbidden"))
    with pytest.raises(ForbiddenError):
        Pods(cluster, "team-a", "training").delete(HEAD)


def test_a_group_is_closed_unless_the_list_has_changed() -> None:
    metadata = {"namespace": "team-a", "name": "training"}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata}
    groups = [{"groupName": "gpu", "replicas": 3, "maxReplicas": 5}]
    cluster = FakeCluster({**body, "spec": {"workerGroupSpecs": groups}})
    live = Groups(cluster, "team-a", "training")
    live.shrink(0, {"groupName": "another"}, 0, [])
    assert live.all() == groups
    live.shrink(0, groups[0], 1, ["worker"])
    numbers = {"minReplicas": 0, "maxReplicas": 1, "replicas": 1}
    assert live.all() == [{"groupName": "gpu", **numbers, "scaleStrategy": {"workersToDelete": ["worker"]}}]


def test_ray_in_the_head_is_asked_by_a_script() -> None:
    cluster = FakeCluster()
    cluster.commands = lambda *asked: (f"a warning of Ray\n{json.dumps({'asked': asked[:3]})}", "")
    found = Pods(cluster, "team-a", "training").run_in_head([WORKER, HEAD], "script")
    assert found == {"asked": ["team-a", "head", "ray"]}
    cluster.commands = lambda *_: ("", "Traceback\nConnectionError: no GCS\n\n")
    with pytest.raises(UnknownRayError, match="Ray in its pod head does not answer: ConnectionError: no GCS"):
        Pods(cluster, "team-a", "training").run_in_head([HEAD], "script")
    cluster.fail(ClusterUnreachableError("a command cannot be run in its pod head: Forbidden"))
    with pytest.raises(UnknownRayError, match="in its pod head: Forbidden"):
        Pods(cluster, "team-a", "training").run_in_head([HEAD], "script")


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


def made_pod(body: dict[str, Any], place: int = 0) -> dict[str, Any]:
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
    made = made_pod(stamped(cluster(), None))
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
    assert old(made_pod(stamped(cluster(), None)), edited(change))


def test_an_edit_of_one_group_makes_no_other_old_and_a_removed_one_does() -> None:
    body = edited(lambda spec: spec["workerGroupSpecs"][1]["rayStartParams"].update({"num-cpus": "1"}))
    made = stamped(cluster(), None)
    assert not old(made_pod(made), body)
    assert is_old(made_pod(made, 1), parts(body["spec"])["groups"]["two"])
    assert is_old(made_pod(made), None)
    assert parts(made["spec"])["head"] == parts(body["spec"])["head"]


def test_a_running_cluster_that_equals_its_settings_is_not_edited() -> None:
    """A RayCluster that is adopted, or that an older version of this program has created."""
    live = cluster()["spec"]
    assert stamped(cluster(), live) == cluster()
    changed_by_a_webhook = made_pod(cluster())
    changed_by_a_webhook["spec"]["containers"][0]["image"] = "mirror/ray:2.60.0"
    assert not old(changed_by_a_webhook, cluster())
    edit = cluster()
    edit["spec"]["workerGroupSpecs"][0]["rayStartParams"] = {"num-cpus": "1"}
    one, two = stamped(edit, live)["spec"]["workerGroupSpecs"]
    assert ANNOTATION in one["template"]["metadata"]["annotations"]
    assert "metadata" not in two["template"]


def test_a_template_keeps_its_annotation_and_has_none_if_kuberay_would_delete_all_pods() -> None:
    once = stamped(cluster(), None)
    assert stamped(cluster(), once["spec"]) == once
    body = cluster(upgradeStrategy={"type": "Recreate"})
    assert stamped(body, None) == body


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
    assert old(made_pod(cluster()), body)


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
