"""The last tests: the stack is destroyed, then its node, and both leave nothing."""

import json

import pytest

from testbed.platform_stack import existing
from testbed.pods.platform import NAMESPACE, Platform
from testbed.pods.steps import Steps, until
from tests.pods.machine import traces

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(240, func_only=True)]


def test_destroy_leaves_nothing_in_the_cluster(platform: Platform, steps: Steps) -> None:
    with steps.step("`pulumi destroy`"):
        platform.stack.destroy()
    left = existing(platform.rehearsal)
    assert not [name for name in left if "ray" in name or NAMESPACE in name]
    until(lambda: not json.loads(platform.kubectl("get", "pods", "-A", "-o", "json"))["items"], "no pod is left")


def test_the_node_leaves_nothing_on_the_machine(platform: Platform, before: set[str], steps: Steps) -> None:
    with steps.step("remove the node"):
        platform.rehearsal.stop(clean=True)
    assert traces(platform.rehearsal.run) - before == set()
    assert list(platform.rehearsal.supervisor.strays()) == []
    assert not platform.rehearsal.run.exists()
