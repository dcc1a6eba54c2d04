"""The last test: the keys of a RayCluster are removed with it, and no others."""

import pytest

from testbed.failover.redis import Redis
from testbed.failover.stack import OTHER
from testbed.pods.platform import NAMESPACE, Platform

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]


def test_a_removed_cluster_leaves_no_key(platform: Platform, redis: Redis) -> None:
    platform.stack.edit(lambda settings: settings["tenants"][0].update(clusters=[]))
    platform.stack.up()
    left = redis.keys()
    assert not [key for key in left if NAMESPACE in key]
    assert [key for key in left if key.startswith(f"RAY{OTHER}.")]
