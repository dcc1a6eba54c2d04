"""TLS between clients, nodes and Sentinels."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from components.redis.connection import SENTINEL_PORT
from components.redis.settings import RedisSettings, RedisTlsSettings
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire
from tests.redis.pods import Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


@pytest.fixture
def with_tls(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path / "redis", RedisSettings(tls=RedisTlsSettings()))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_nodes_and_sentinels_accept_only_tls_and_fail_over(with_tls: Pods) -> None:
    first = with_tls.master
    for port in (6379, SENTINEL_PORT):
        with pytest.raises(ConnectionError), Wire(port, host=first.address) as plain:
            plain.ask("PING")
    assert first.probe("redis")
    assert first.probe("sentinel")
    first.delete()
    assert with_tls.wait_for_master_other_than(first).ask("PING") == b"PONG"


def issued(authority: trustme.CA) -> tuple[str, str, str]:
    made = authority.issue_cert("ray-redis-0")
    texts = (authority.cert_pem, made.cert_chain_pems[0], made.private_key_pem)
    authority_pem, certificate, key = (text.bytes().decode() for text in texts)
    return authority_pem, certificate, key


def test_a_renewed_certificate_is_shown_without_a_failover(tmp_path: Path) -> None:
    """As cert-manager renews a certificate."""
    authority = trustme.CA()
    with_tls = Pods(tmp_path / "redis", RedisSettings(tls=RedisTlsSettings()))
    with_tls.certify(*issued(authority))
    try:
        with_tls.start()
        renews(with_tls, authority)
    finally:
        with_tls.stop()


def renews(with_tls: Pods, authority: trustme.CA) -> None:
    master = with_tls.master
    with master.wire("a", "a-1") as before:
        renewed = issued(authority)
        with_tls.certify(*renewed)

        def shown() -> bool:
            return {
                ssl.get_server_certificate((pod.address, port))
                for pod in with_tls.pods
                for port in (6379, SENTINEL_PORT)
            } == {renewed[1]}

        # A Sentinel ends to read it, and is restarted as by a kubelet.
        eventually("Sentinels end", lambda: all(pod.start_ended("sentinel") for pod in with_tls.pods))
        eventually("the new one is shown", shown)
        assert before.must("PING") == b"PONG"
    with_tls.wait_ready()
    assert with_tls.master is master
