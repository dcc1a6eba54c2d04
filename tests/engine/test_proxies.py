"""Behind a proxy that knows nothing of this machine's own addresses, the rehearsal works as elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from core.nodes import NodePool
from local.nodes import live
from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]


@pytest.fixture
def rehearsal(behind_a_proxy: None, tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal(tmp_path / "run")
    yield made
    made.stop(clean=True)


def test_a_stack_comes_up_although_the_proxy_leads_nowhere(rehearsal: Rehearsal, project: MakeProject) -> None:
    rehearsal.start([NodePool(pool="a100", count=1, cpu="8", memory="16Gi")])
    shop = project(
        """
        from pulumi_kubernetes.core.v1 import ConfigMap
        ConfigMap("prices", metadata={"name": "prices", "namespace": "default"}, data={"apple": "1"})
        """,
        rehearsal,
    )
    shop.up()
    assert len(live(rehearsal.client())) == 1
    prices = client.CoreV1Api(rehearsal.client()).read_namespaced_config_map("prices", "default")
    assert prices.data == {"apple": "1"}
