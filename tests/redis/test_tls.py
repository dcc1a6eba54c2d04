"""TLS between clients, nodes and Sentinels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.redis.names import SENTINEL_PORT
from components.redis.settings import RedisSettings, RedisTlsSettings
from tests.gateway.waiting import eventually
from tests.gateway.wire import ClosedError, Wire
from tests.redis.pods import Pods

pytestmark = pytest.mark.engine


@pytest.fixture
def with_tls(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path / "redis", RedisSettings(tls=RedisTlsSettings()))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_nodes_and_sentinels_speak_tls_alone_and_fail_over(with_tls: Pods) -> None:
    first = with_tls.master
    for port in (6379, SENTINEL_PORT):
        with pytest.raises((ClosedError, OSError)), Wire(port, host=first.address) as plain:
            plain.ask("PING")
    assert first.probe("redis")
    assert first.probe("sentinel")
    first.delete()
    assert with_tls.wait_for_master_other_than(first).ask("PING") == b"PONG"


def test_a_renewed_certificate_is_shown_without_a_failover(with_tls: Pods) -> None:
    master = with_tls.master
    with master.wire("a", "a-1") as before:
        with_tls.certify()

        def shown() -> bool:
            return all(pod.ask("PING", port=port) == b"PONG" for pod in with_tls.pods for port in (6379, SENTINEL_PORT))

        # A Sentinel ends to read it, and is started again as a kubelet does.
        eventually("Sentinels end", lambda: all(pod.start_ended("sentinel") for pod in with_tls.pods))
        eventually("the new one is shown", shown, OSError, ClosedError)
        assert before.must("PING") == b"PONG"
    with_tls.wait_ready()
    assert with_tls.master is master
