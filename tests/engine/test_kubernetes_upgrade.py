"""Kubernetes is upgraded while a stack runs: a control plane that emulates an older release, then the pinned one.

Both are the same programs. With `--emulated-version` they have the APIs, feature gates and functions of CEL of the
older release, and store objects as that release does.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kubernetes import client

from local import control_plane
from local.rehearsal import Rehearsal
from local.supervision import Program
from local.tools import KUBERNETES
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack, training
from testbed.pods.steps import until
from testbed.policies.bodies import pod
from tests.engine.conftest import POOL, MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]

NAMESPACE = "team-a"
NEW = tuple(map(int, re.findall(r"\d+", KUBERNETES.version)[:2]))
OLD = (NEW[0], NEW[1] - 3)
"""The oldest release that an API server emulates (k8s.io/apiserver: pkg/util/compatibility/version.go)."""

SETTLES = 180.0
"""Seconds within which controllers act."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A control plane of the older release. Its next start is of the newer one."""
    rehearsal = Rehearsal(tmp_path_factory.mktemp("cluster") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_plane, "programs", _emulating(control_plane.programs))
        rehearsal.start([POOL])
    try:
        yield rehearsal
    finally:
        rehearsal.stop(clean=True)


def _emulating(programs: Callable[..., list[Program]]) -> Callable[..., list[Program]]:
    """The programs, of which those of Kubernetes emulate the older release. A scheduler of the newer one would wait for
    APIs that the API server does not have."""
    flag = f"--emulated-version={OLD[0]}.{OLD[1]}"

    def emulating(*arguments: Any) -> list[Program]:
        return [
            replace(each, command=[*each.command, flag]) if each.name.startswith("kube-") else each
            for each in programs(*arguments)
        ]

    return emulating


def workers(number: int) -> Callable[[dict[str, Any]], None]:
    variant = {"gpus": 1, "minReplicas": number, "maxReplicas": 4}
    return lambda settings: training(settings).update(workers={"pool": "a100", "variants": [variant]})


@pytest.fixture
def kubectl(cluster: Rehearsal) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture
def old(stack: MakeStack) -> Stack:
    """A stack with admission policies on the older release, after `pulumi up`. Its cluster ends with it."""
    made = stack("upgraded")
    made.edit(lambda settings: settings.update(admissionPolicies={"rules": {"ray-head-zero-cpu": "Warn"}}))
    made.edit(workers(1))
    made.up()
    return made


def release(kubectl: Kubectl) -> tuple[int, int]:
    """The release whose behavior the API server has."""
    shown = json.loads(kubectl.does("get", "--raw=/version"))
    return int(shown["emulationMajor"]), int(shown["emulationMinor"])


def uids(core: client.CoreV1Api) -> set[str]:
    """The pods of the stack's RayCluster."""
    listed: Any = core.list_namespaced_pod(NAMESPACE, label_selector="ray.io/cluster=training")
    return {each.metadata.uid for each in listed.items if not each.metadata.deletion_timestamp}


def enforces_policies(kubectl: Kubectl) -> bool:
    latest = pod()
    latest["spec"]["containers"][0]["image"] = "rayproject/ray:latest"
    return "ValidatingAdmissionPolicy 'ray-platform-img-no-latest'" in kubectl.creates(NAMESPACE, latest)


def stored_versions(kubectl: Kubectl) -> set[str]:
    """Those of all CRDs."""
    found = json.loads(kubectl.does("get", "crd", "--output=json"))["items"]
    assert found
    return {version for each in found for version in each["status"]["storedVersions"]}


def test_kubernetes_is_upgraded_while_a_stack_runs(
    old: Stack, cluster: Rehearsal, kubectl: Kubectl, core: client.CoreV1Api, rays: Rays
) -> None:
    assert release(kubectl) == OLD
    assert enforces_policies(kubectl)
    before = uids(core)
    assert before
    old.changes_nothing(refreshed=True)

    cluster.stop()
    cluster.start([POOL])

    assert release(kubectl) == NEW
    assert uids(core) == before
    assert rays.read(NAMESPACE, "training")["status"]["state"] == "ready"
    assert stored_versions(kubectl) == {"v1"}
    assert enforces_policies(kubectl)
    old.changes_nothing(refreshed=True)
    # The operator works on the newer release, and keeps what it created on the older one.
    old.edit(workers(2))
    old.up()
    until(lambda: len(uids(core)) > len(before), "the operator has created a worker", SETTLES)
    assert before < uids(core)
