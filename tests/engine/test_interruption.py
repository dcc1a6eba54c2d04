"""The state after an interrupted update (Ctrl-C). For killed ones see test_recovery.py."""

import signal
import time

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from tests.engine.conftest import PROGRAMS, MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(240)]


def test_an_interrupted_update_leaves_a_state_that_the_next_one_continues(
    project: MakeProject, cluster: Rehearsal
) -> None:
    """Ctrl-C lets the engine finish what it has begun, so nothing has to be repaired."""
    core = client.CoreV1Api(cluster.client())
    store = project(PROGRAMS / "shelves.py", cluster=cluster)
    store.configure("namespace", "interrupted")
    store.configure("shelves", "30")
    update = store.start("up", "--yes", "--skip-preview")
    while len(core.list_namespaced_config_map("interrupted").to_dict()["items"]) < 5:
        assert update.poll() is None, update.communicate()[0]
        time.sleep(0.02)
    update.send_signal(signal.SIGINT)
    output, _ = update.communicate(timeout=300)
    assert update.returncode != 0, output
    # The provider may notice before the engine: then the step that it cancels has failed.
    assert "update canceled" in output or "context canceled" in output
    store.up()
    store.changes_nothing()
    store.pulumi("destroy", "--yes", "--skip-preview")
    assert store.resources() == []
