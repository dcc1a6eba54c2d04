"""The rehearsal works behind a proxy that cannot reach this machine's own addresses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from core.nodes import NodePool
from local.nodes import live
from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(120)]


@pytest.fixture
def rehearsal(behind_a_proxy: None, tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal(tmp_path / "run")
    yield made
    made.stop(clean=True)


def test_a_stack_is_created_although_the_proxy_is_dead(rehearsal: Rehearsal, project: MakeProject) -> None:
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
