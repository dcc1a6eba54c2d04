"""Compares the predictions of `impact` with KubeRay's operator, for edits of all fields of a RayCluster."""

import copy
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from kubernetes import client

from components.priority_classes.settings import priority_classes
from kuberay.pods import PodChange, change_of_pods
from local.paths import ROOT
from local.rehearsal import Rehearsal
from stacks.commands.impact.ray_pods import sent
from stacks.commands.impact.sources import ray_clusters
from stacks.load import load
from testbed.client_session import ClientSession
from testbed.kubectl import Kubectl
from testbed.platform_stack import DEV
from tests.engine.ray_edits import ANY_CLUSTER, WITH_AUTOSCALER, WITH_SEVERAL_HOSTS, WITHOUT_AUTOSCALER, Edit, spec

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(1800)]

NAMESPACE, LIVE = "impact", "impact-live"

KINDS: Mapping[str, tuple[dict[str, Any], Mapping[str, Edit]]] = {
    "plain": (spec(), {**ANY_CLUSTER, **WITHOUT_AUTOSCALER}),
    "scaling": (spec(scales=True), {**ANY_CLUSTER, **WITH_AUTOSCALER}),
    "recreate": (spec(recreate=True), {**ANY_CLUSTER, **WITHOUT_AUTOSCALER}),
    "recreate-scaling": (spec(scales=True, recreate=True), {**ANY_CLUSTER, **WITH_AUTOSCALER}),
    "hosts": (spec(hosts=2), WITH_SEVERAL_HOSTS),
    "hosts-scaling": (spec(scales=True, hosts=2), WITH_SEVERAL_HOSTS),
}
"""RayClusters, and the edits to try on each."""

Case = tuple[str, str]
"""A kind of RayCluster and an edit."""

DRAWN = 12
"""The number of edits of other kinds than the plain one in a run, drawn with the seed of generated cases."""

FIRST, SETTLES, QUIET = 600.0, 600.0, 20.0
"""Seconds: until all pods exist, until the operator has done its work, and then without a change."""

UNBOUND = ("--type=merge", '--patch={"metadata": {"finalizers": null}}')

Pods = Mapping[str, str]
"""Names of groups by the UIDs of their pods."""


@dataclass
class Day:
    """The RayClusters before and after the edits, by their names."""

    predicted: dict[str, PodChange] = field(default_factory=dict)
    before: Mapping[str, Pods] = field(default_factory=dict)
    after: Mapping[str, Pods] = field(default_factory=dict)
    services_before: Mapping[str, Any] = field(default_factory=dict)
    services_after: Mapping[str, Any] = field(default_factory=dict)


def name(kind: str, edit: str) -> str:
    """The name of the RayCluster for an edit, within the 50 characters that KubeRay allows."""
    return f"{'-'.join(part[:3] for part in kind.split('-'))}-{edit.lower()}"


def body(kind: str, edit: str, edited: bool) -> dict[str, Any]:
    spec_ = copy.deepcopy(KINDS[kind][0])
    if edited:
        KINDS[kind][1][edit](spec_)
    metadata = {"name": name(kind, edit), "namespace": NAMESPACE, "annotations": {}}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec_}


@cache
def cases_of(seed: int) -> tuple[Case, ...]:
    """All edits of a plain RayCluster, and some of the other kinds; all of these with `--hypothesis-profile many`."""
    found = [(kind, edit) for kind, (_, edits) in KINDS.items() for edit in edits]
    plain, others = ([case for case in found if (case[0] == "plain") is same] for same in (True, False))
    many = hypothesis.settings().max_examples > 1000
    return (*plain, *(others if many else random.Random(seed).sample(others, DRAWN)))  # noqa: S311 -- is to be repeated


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case."""
    if "edit" in metafunc.fixturenames:
        metafunc.parametrize(("kind", "edit"), cases_of(int(metafunc.config.getoption("hypothesis_seed"))))


@pytest.fixture(scope="module")
def cases(pytestconfig: pytest.Config) -> tuple[Case, ...]:
    """The cases of this run."""
    return cases_of(int(pytestconfig.getoption("hypothesis_seed")))


@pytest.fixture(scope="module")
def day(shared_cluster: Rehearsal, operator: None, cases: tuple[Case, ...]) -> Iterator[Day]:
    """All edits at once, each on a separate RayCluster, so that the test does not wait for each of them."""
    api = shared_cluster.client()
    session, objects, kubectl = ClientSession(api), client.CustomObjectsApi(api), Kubectl(shared_cluster)
    kubectl.does("create", "namespace", NAMESPACE)

    def apply(bodies: list[dict[str, Any]]) -> None:
        kubectl.does("apply", "--server-side", "--force-conflicts", "--filename=-", bodies=bodies)

    def pods() -> Mapping[str, Pods]:
        found: dict[str, dict[str, str]] = {}
        for pod in session.list("v1", "pods", NAMESPACE) or ():
            labels = pod["metadata"]["labels"]
            if "deletionTimestamp" not in pod["metadata"] and labels.get("ray.io/node-type") != "redis-cleanup":
                found.setdefault(labels["ray.io/cluster"], {})[pod["metadata"]["uid"]] = labels["ray.io/group"]
        return found

    def services() -> dict[str, Any]:
        live = session.list("v1", "services", NAMESPACE) or ()
        parts = ("labels", "annotations")
        return {
            each["metadata"]["name"]: [each["spec"], *(each["metadata"].get(part) for part in parts)] for each in live
        }

    def clusters() -> dict[str, dict[str, Any]]:
        live = session.list("ray.io/v1", "rayclusters", NAMESPACE) or ()
        return {item["metadata"]["name"]: item for item in live}

    def settled(done: Callable[[], bool], seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not done():
            time.sleep(2)

    def has(numbers: Mapping[str, int]) -> bool:
        return {cluster: len(each) for cluster, each in pods().items()} == numbers

    def as_predicted() -> bool:
        now = pods()
        return all(
            len(was.keys() - now.get(cluster, {}).keys()) == sum(made.predicted[cluster].deleted.values())
            and len(now.get(cluster, {}).keys() - was.keys()) == sum(made.predicted[cluster].created.values())
            for cluster, was in made.before.items()
        )

    made = Day()
    try:
        apply([body(*case, edited=False) for case in cases])
        first = {name(*case): 1 + 3 * (2 if "hosts" in case[0] else 1) for case in cases}
        settled(lambda: has(first), FIRST)
        scaling = [name(*case) for case in cases if "scaling" in case[0]]
        for cluster in scaling:
            # Like Ray's autoscaler.
            patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]
            objects.patch_namespaced_custom_object(
                *("ray.io", "v1", NAMESPACE, "rayclusters", cluster, patch),
                field_manager="python-requests",
                _content_type="application/json-patch+json",
            )
        grown = {each: number + (each in scaling) * (number // 3) for each, number in first.items()}
        settled(lambda: has(grown), FIRST)
        assert has(grown)
        made.before, bodies, live = pods(), [], clusters()
        made.services_before = services()
        for case in cases:
            was, will = live[name(*case)], sent(live[name(*case)], body(*case, edited=True))
            running = Counter(made.before[name(*case)].values())
            made.predicted[name(*case)] = change_of_pods(was["spec"], will["spec"], running)
            bodies.append(dict(will))
        apply(bodies)
        settled(as_predicted, SETTLES)
        time.sleep(QUIET)
        made.after, made.services_after = pods(), services()
        yield made
    finally:
        kubectl.does("delete", "namespace", NAMESPACE, "--wait=false")
        ends = time.monotonic() + SETTLES
        while time.monotonic() < ends and session.get("v1", "namespaces", None, NAMESPACE):
            for cluster, remaining in clusters().items():
                if "deletionTimestamp" in remaining["metadata"] and remaining["metadata"].get("finalizers"):
                    # KubeRay must not wait for a Redis that does not exist.
                    kubectl.tries("patch", "raycluster", cluster, f"--namespace={NAMESPACE}", *UNBOUND)
            time.sleep(2)


def test_the_operator_does_what_was_predicted(day: Day, kind: str, edit: str) -> None:
    cluster = name(kind, edit)
    before, after = day.before[cluster], day.after.get(cluster, {})
    predicted = day.predicted[cluster]
    assert Counter(before[uid] for uid in before.keys() - after.keys()) == predicted.deleted
    assert Counter(after[uid] for uid in after.keys() - before.keys()) == predicted.created
    stayed = Counter(before[uid] for uid in before.keys() & after.keys())
    assert {group: stayed[group] for group in predicted.orphaned} == predicted.orphaned


def test_no_edit_changes_the_service_of_a_head(day: Day, cases: tuple[Case, ...]) -> None:
    assert {f"{name(*case)}-head-svc" for case in cases} <= day.services_before.keys()
    assert {each: day.services_after.get(each) for each in day.services_before} == day.services_before


def test_some_edits_delete_pods(day: Day) -> None:
    """The comparison would be useless if nothing happened."""
    assert sum(bool(change.deleted) for change in day.predicted.values()) > 5
    assert sum(bool(change.orphaned) for change in day.predicted.values()) > 0
    assert sum(change == PodChange() for change in day.predicted.values()) > 10


def test_a_stack_file_is_compared_with_the_live_objects(
    shared_cluster: Rehearsal, operator: None, tmp_path: Path
) -> None:
    kubectl, file = Kubectl(shared_cluster), tmp_path / "Pulumi.dev.yaml"
    text = DEV.read_text().replace("name: team-a", "name: impact-live")
    file.write_text(text)
    stack = load(file)
    [made] = ray_clusters(stack).values()
    body = {**made, "metadata": {**made["metadata"], "namespace": LIVE}}

    def impact(expected: int) -> str:
        command = [sys.executable, "-m", "stacks", "impact", "--from", "live", "--to", str(file)]
        environment = {**os.environ, "KUBECONFIG": str(shared_cluster.kubeconfig)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr
        return done.stdout

    kubectl.does("create", "namespace", LIVE)
    priorities = priority_classes(stack.priorities)
    kubectl.does("apply", "--server-side", "--filename=-", bodies=priorities)
    try:
        assert "is created, with 1 pod at first" in impact(0)
        manager = "--field-manager=pulumi-ray-platform-dev"
        kubectl.does("apply", "--server-side", manager, "--filename=-", bodies=[body])
        ready = "--for=condition=HeadPodReady"
        kubectl.does("wait", ready, f"--namespace={LIVE}", "raycluster/training", "--timeout=300s")
        assert (
            "The edit affects no RayCluster, RayService, RayJob or tenant that runs; other objects were not compared."
            in impact(0)
        )
        file.write_text(text.replace("name: training", "name: other"))
        removed = impact(1)
        assert "RayCluster impact-live/training: is deleted, with 1 pod;" in removed
        # Pods on simulated nodes have no process that could report whether they are busy.
        assert "RayCluster impact-live/training: busy: unknown" in removed
    finally:
        kubectl.does("delete", "--filename=-", bodies=priorities)
        kubectl.does("delete", "namespace", LIVE, "--timeout=300s")
