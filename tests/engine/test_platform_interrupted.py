"""The program itself, killed while it brings the platform up."""

import time
from collections.abc import Callable

import pytest

from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeStack
from tests.engine.harness import ADOPT
from tests.engine.platform_stack import Rays, existing, training

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


def test_an_update_killed_again_and_again_is_recovered(stack: MakeStack, rays: Rays, cluster: Rehearsal) -> None:
    """SIGKILL when the first definition, the operator's binding and the RayCluster come to be; each time the commands
    of docs/operations.md, the last of which is killed in its turn."""
    dev = stack("dev")
    moments: list[Callable[[], bool]] = [
        lambda: "definition rayclusters.ray.io" in existing(cluster),
        lambda: "binding kuberay-operator" in existing(cluster),
        lambda: rays.there("team-a", "training"),
    ]
    environment: dict[str, str] = {}
    for come in moments:
        update = dev.start("up", "--yes", "--skip-preview", environment=environment)
        while not come():
            assert update.poll() is None, update.communicate()[0]
            time.sleep(0.05)
        update.kill()
        update.communicate()
        dev.release()
        environment = ADOPT
    dev.up(environment=ADOPT)
    dev.up()
    dev.changes_nothing()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    dev.edit(lambda settings: training(settings).update(idleTimeout="7m"))
    dev.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 420
    dev.destroy()
