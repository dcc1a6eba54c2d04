"""Which Kubernetes has what the gateway needs."""

from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.redis_gateway.supported import UnsupportedKubernetesError, check_kubernetes
from testbed.fake_cluster import FakeCluster

pytestmark = pytest.mark.unit


def serves(answer: dict[str, Any] | Exception) -> FakeCluster:
    """A cluster with that version."""
    cluster = FakeCluster()
    if isinstance(answer, Exception):
        cluster.fail(answer)
    else:
        cluster.objects["/version"] = answer
    return cluster


@pytest.mark.parametrize("minor", ["28", "28+", "9"])
def test_a_kubernetes_without_native_sidecars_is_refused_with_a_fix(minor: str) -> None:
    cluster = serves({"major": "1", "minor": minor})
    with pytest.raises(
        UnsupportedKubernetesError, match=r"needs Kubernetes 1\.29 .*set redis.gateway.enabled to false"
    ):
        check_kubernetes(cluster)


@pytest.mark.parametrize("minor", ["29", "29+", "36"])
def test_newer_versions_are_accepted(minor: str) -> None:
    cluster = serves({"major": "1", "minor": minor})
    check_kubernetes(cluster)


@pytest.mark.parametrize("answer", [ClusterUnreachableError("no answer"), {"major": "1", "minor": "?"}, {}])
def test_an_unknown_version_is_accepted(answer: Any) -> None:
    cluster = serves(answer)
    check_kubernetes(cluster)
