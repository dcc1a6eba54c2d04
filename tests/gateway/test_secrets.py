"""Authentication and encryption of connections, and messages about wrong certificates and passwords."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.conftest import MakeGateway
from tests.gateway.load import Load
from tests.gateway.nodes import PASSWORD, Certificates, Nodes
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

CLIENT_PASSWORD = "a-password-of-the-clients"  # noqa: S105 - of this test


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Certificates of an authority that all parts trust."""
    return Certificates(tmp_path)


@pytest.fixture
def encrypted(tmp_path: Path, certificates: Certificates) -> Iterator[Nodes]:
    """Nodes and Sentinels that accept only TLS."""
    made = Nodes(tmp_path / "nodes", certificates)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_connections_to_nodes_and_sentinels_are_encrypted_over_a_failover(
    encrypted: Nodes, make_gateway: MakeGateway
) -> None:
    with Load(make_gateway(encrypted).wait_ready(), clients=2) as load:
        encrypted.master.kill()
        load.advance()


def test_a_node_whose_certificate_is_not_trusted_is_not_used(
    encrypted: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    gateway = make_gateway(encrypted, tls_ca_file=Certificates(tmp_path / "other").ca)
    eventually("it reports why", lambda: "certificate verify failed" in gateway.get("readyz")[1])


@pytest.mark.parametrize("who", ["redis", "sentinel"])
def test_with_a_wrong_password_the_gateway_is_not_ready_and_reports_it(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path, who: str
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-password")
    gateway = make_gateway(nodes, hold_seconds=0.5, **{f"{who}_password_file": wrong})
    eventually("it reports why", lambda: "WRONGPASS" in gateway.get("readyz")[1])
    assert gateway.get("readyz")[0] == 503
    assert gateway.get("livez")[0] == 200
    with gateway.wire() as wire:
        assert "WRONGPASS" in str(wire.ask("HGET", "RAYa@KV", "f"))
    assert "not-the-password" not in gateway.log_text()


def test_a_missing_right_on_the_nodes_is_reported_before_a_client_connects(
    nodes: Nodes, make_gateway: MakeGateway
) -> None:
    for node in nodes.redis:
        node.ask("ACL", "SETUSER", "gateway", "-eval")
    gateway = make_gateway(nodes)
    eventually("it reports why", lambda: "no permissions to run the 'eval' command" in gateway.get("readyz")[1])


def test_passwords_change_while_the_gateway_runs(nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    gateway = make_gateway(nodes, redis_password_file=file).wait_ready()
    with Load(gateway) as load:
        for node in nodes.redis:
            node.ask("ACL", "SETUSER", "gateway", ">the-next-password", f"<{PASSWORD}")
        file.write_text("the-next-password")
        nodes.master.ask("CLIENT", "KILL", "USER", "gateway")
        load.advance()


def test_a_rotation_in_two_steps_loses_no_connection_and_needs_no_restart(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    """The gateway gets both passwords before any node accepts the new one. Then nodes accept both, at last only one."""
    file = tmp_path / "passwords"
    file.write_text(PASSWORD)
    gateway = make_gateway(nodes, redis_password_file=file, sentinel_password_file=file).wait_ready()
    with Load(gateway) as load:
        file.write_text(f"the-next-password\n{PASSWORD}\n")
        nodes.master.ask("CLIENT", "KILL", "USER", "gateway")
        load.advance()
        for node in (*nodes.redis, *nodes.sentinels):
            node.ask("ACL", "SETUSER", "gateway", ">the-next-password")
        nodes.master.ask("CLIENT", "KILL", "USER", "gateway")
        load.advance()
        for node in (*nodes.redis, *nodes.sentinels):
            node.ask("ACL", "SETUSER", "gateway", f"<{PASSWORD}")
        file.write_text("the-next-password\n")
        nodes.master.kill()
        load.advance()


def test_files_that_cannot_be_read_end_nothing(nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path) -> None:
    """Like a volume whose node has lost its disk. The passwords that were read last stay in use."""
    ours, of_clients = tmp_path / "ours", tmp_path / "of-clients"
    ours.write_text(PASSWORD)
    of_clients.write_text(CLIENT_PASSWORD)
    files = {"redis_password_file": ours, "sentinel_password_file": ours, "client_password_file": of_clients}
    gateway = make_gateway(nodes, **files).wait_ready()
    with gateway.wire(CLIENT_PASSWORD) as open_before:
        ours.unlink()
        of_clients.unlink()
        nodes.master.kill()
        assert open_before.must("INCRBY", "RAYa@n", 1) == 1
        with gateway.wire(CLIENT_PASSWORD) as opened_since:
            assert opened_since.must("INCRBY", "RAYa@n", 1) == 2
    assert f"{ours} cannot be read (No such file or directory)" in gateway.log_text()
    of_clients.write_text("the-next")
    with gateway.wire("the-next") as wire:
        assert str(wire.ask("AUTH", CLIENT_PASSWORD)).startswith("WRONGPASS")


def test_without_a_valid_password_the_gateway_is_not_ready(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "passwords"
    file.write_text("wrong\nwrong-too\n")
    gateway = make_gateway(nodes, redis_password_file=file)
    eventually("it reports why", lambda: "WRONGPASS" in gateway.get("readyz")[1])


def test_the_user_of_one_tenant_has_enough_rights(nodes: Nodes, make_gateway: MakeGateway) -> None:
    for node in nodes.redis:
        node.ask("ACL", "SETUSER", "gateway", "resetkeys", "~RAYteam-a.*", "~DUMMY", "~redis-gateway:team-a.*")
    gateway = make_gateway(nodes, journal_prefix="redis-gateway:team-a.").wait_ready()
    with gateway.wire() as wire:
        assert wire.must("HSET", "RAYteam-a.training.1@KV", "field", "value") == 1
        assert str(wire.ask("HSET", "RAYteam-b.training.1@KV", "field", "value")).startswith("NOPERM")
        [journal] = nodes.master.ask("KEYS", "redis-gateway:*")
        assert journal.startswith(b"redis-gateway:team-a.")


def test_clients_authenticate_with_any_password_in_the_file(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"{CLIENT_PASSWORD}\n")
    gateway = make_gateway(nodes, client_password_file=file).wait_ready()
    with gateway.wire() as wire:
        assert str(wire.ask("HGET", "RAYa@KV", "f")).startswith("NOAUTH")
        assert str(wire.ask("AUTH", "wrong")).startswith("WRONGPASS")
        assert str(wire.ask("AUTH", "another", CLIENT_PASSWORD)).startswith("WRONGPASS")
        assert str(wire.ask("HGET", "RAYa@KV", "f")).startswith("NOAUTH")
        assert wire.must("AUTH", CLIENT_PASSWORD) == b"OK"
        assert wire.must("HGET", "RAYa@KV", "f") is None
    with gateway.wire() as wire:
        assert wire.must("AUTH", "default", CLIENT_PASSWORD) == b"OK"
    with gateway.wire() as wire:
        assert (
            dict(zip(*[iter(wire.must("HELLO", 2, "AUTH", "default", CLIENT_PASSWORD))] * 2, strict=True))[b"proto"]
            == 2
        )
        assert str(wire.ask("HELLO", 3)).startswith("NOPROTO")
    file.write_text(f"{CLIENT_PASSWORD}\nthe-next\n")
    with gateway.wire() as wire:
        assert wire.must("AUTH", "the-next") == b"OK"
    assert gateway.metric("denied_clients_total") == 2


def test_a_client_without_authentication_uses_no_memory(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "passwords"
    file.write_text(CLIENT_PASSWORD)
    gateway = make_gateway(nodes, client_password_file=file).wait_ready()
    with gateway.wire() as wire:
        wire.raw(b"*2\r\n$4\r\nAUTH\r\n$100000\r\n")
        assert "an argument has 100000 bytes; a command may have 16384" in str(wire.answer())
    with gateway.wire() as wire:
        wire.raw(b"*11\r\n")
        assert "at most 10" in str(wire.answer())


def test_logs_contain_no_password_and_no_value(nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(CLIENT_PASSWORD)
    gateway = make_gateway(nodes, client_password_file=file, log_level="debug").wait_ready()
    value = hashlib.sha256(b"value").hexdigest()
    with gateway.wire(CLIENT_PASSWORD) as wire:
        wire.must("HSET", "RAYa@KV", "field-of-a-user", value)
        wire.ask("SET", "key-of-a-user", value)
        wire.ask("AUTH", "wrong-password")
        nodes.master.kill()
        wire.must("HSET", "RAYa@KV", "field-of-a-user", value)
    gateway.stop()
    assert [line["level"] for line in gateway.lines()]
    for secret in (PASSWORD, CLIENT_PASSWORD, "wrong-password", value, "of-a-user"):
        assert secret not in gateway.log_text()
