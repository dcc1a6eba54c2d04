"""The program itself, killed while it brings the platform up."""

import pytest

from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeStack
from tests.engine.harness import ADOPT
from tests.engine.platform_stack import Rays, existing

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


def test_an_update_killed_again_and_again_is_recovered(stack: MakeStack, rays: Rays, cluster: Rehearsal) -> None:
    """SIGKILL when the first definition and the operator's binding come to be; each time the commands of
    docs/operations.md, the last of which is killed in its turn. Of the RayCluster see test_interruption.py."""
    dev = stack("dev")
    dev.killed(lambda: "definition rayclusters.ray.io" in existing(cluster))
    dev.release()
    dev.killed(lambda: "binding kuberay-operator" in existing(cluster), environment=ADOPT)
    dev.release()
    dev.up(environment=ADOPT)
    dev.up()
    dev.changes_nothing()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
