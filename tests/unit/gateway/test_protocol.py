"""What the gateway reads and sends: settings, passwords, commands, cursors, the journal, connections and probes."""

import asyncio
import errno
import os
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import hiredis
import pytest
from hiredis import ReplyError
from prometheus_client import CollectorRegistry

from gateway.cursors import OPEN_SCANS, Cursors
from gateway.health import Health, serve
from gateway.journal import done, new_key
from gateway.link import Link, LostError, SilentError
from gateway.passwords import passwords
from gateway.protocol import CHUNK, Status, answer_parts, chunks, command_parts
from gateway.settings import Address, Settings, SettingsError
from testbed.machine import lacks

LARGE = bytes(range(256)) * (CHUNK // 100)


def sent(parts: Any) -> bytes:
    return b"".join(chunks(parts))


@pytest.mark.parametrize("value", [b"", b"small", b"x" * CHUNK, LARGE])
def test_a_command_is_that_of_the_protocol_whatever_its_size(value: bytes) -> None:
    command = (b"HSET", b"RAYa@KV", b"field", value, b"next", b"value")
    assert sent(command_parts(*command)) == hiredis.pack_command(cast(Any, command))


@pytest.mark.parametrize("answer", [None, 2**63 - 1, b"", LARGE, [b"0", [b"field", LARGE, None]]])
def test_an_answer_is_read_as_it_was(answer: Any) -> None:
    reader = hiredis.Reader()
    reader.feed(sent(answer_parts(answer)))
    assert reader.gets() == answer


def test_a_status_is_no_bulk_string() -> None:
    assert sent(answer_parts(Status("PONG"))) == b"+PONG\r\n"


def test_a_large_value_is_sent_in_views_of_it() -> None:
    made = list(chunks([b"before", LARGE, b"after", b"more"]))
    assert all(len(chunk) <= CHUNK for chunk in made)
    assert (made[0], made[-1]) == (b"before", b"aftermore")
    assert all(isinstance(chunk, memoryview) and chunk.obj is LARGE for chunk in made[1:-1])


def test_a_scan_continues_on_the_node_that_returned_its_cursor_and_restarts_on_another() -> None:
    cursors = Cursors()
    first, second = cursors.given("process-a", b"17"), cursors.given("process-b", b"17")
    assert first != second
    assert cursors.followed("process-a", first) == cursors.followed("process-b", second) == (b"17", False)
    assert cursors.followed("process-b", first) == (b"0", True)


def test_zero_begins_and_ends_a_scan_and_cursors_fit_the_integers_of_clients() -> None:
    cursors = Cursors()
    assert cursors.given("process-a", b"0") == b"0"
    assert cursors.followed("process-a", b"0") == (b"0", False)
    assert all(0 < int(cursors.given("process-a", b"1")) < 2**63 for _ in range(100))


def test_a_scan_with_a_forgotten_cursor_restarts() -> None:
    cursors = Cursors()
    first = cursors.given("process-a", b"17")
    for _ in range(OPEN_SCANS):
        cursors.given("process-a", b"18")
    assert cursors.followed("process-a", first) == (b"0", True)


def test_numbers_and_errors_are_remembered_as_they_were_answered() -> None:
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    found = done([b"epoch", b"3", b"1", b"1 -5", b"2", f"2 {wrong}".encode()])
    assert found[1] == -5
    assert isinstance(found[2], ReplyError)
    assert str(found[2]) == wrong


def test_each_clients_journal_has_a_key_of_its_own_under_the_prefix() -> None:
    keys = {new_key("redis-gateway:team-a.") for _ in range(10)}
    assert len(keys) == 10
    assert all(key.startswith(b"redis-gateway:team-a.") for key in keys)


SENTINELS = {"REDIS_GATEWAY_SENTINELS": "redis-0.redis:26379, [fd00::1]:26379"}


def test_addresses_are_names_or_numbers_with_a_port() -> None:
    first, second = Settings.of(SENTINELS).sentinels
    assert (first, second) == (Address("redis-0.redis", 26379), Address("fd00::1", 26379))
    assert str(second) == "[fd00::1]:26379"


def test_empty_variables_others_and_those_of_a_service_of_the_same_name_are_ignored() -> None:
    links = {"SERVICE_HOST": "10.0.0.1", "SERVICE_PORT": "6399", "PORT": "tcp://10.0.0.1:6399", "PORT_6399_TCP": "x"}
    ignored = {f"REDIS_GATEWAY_{name}": text for name, text in {**links, "REDIS": ""}.items()}
    assert Settings.of({**SENTINELS, **ignored, "REDIS_PASSWORD": "secret"}) == Settings.of(SENTINELS)


@pytest.mark.parametrize(
    ("environment", "wrong"),
    [
        ({"REDIS_GATEWAY_REDIS": "redis:6379"}, "both of REDIS_GATEWAY_SENTINELS and REDIS_GATEWAY_REDIS"),
        ({"REDIS_GATEWAY_LISTEN": "6399"}, "REDIS_GATEWAY_LISTEN: '6399' is not HOST:PORT"),
        ({"REDIS_GATEWAY_LISTEN": "redis:70000"}, "a port from 1 to 65535"),
        ({"REDIS_GATEWAY_UNREPLICATED": "drop"}, "REDIS_GATEWAY_UNREPLICATED: Input should be 'hold' or 'answer'"),
        ({"REDIS_GATEWAY_WAIT_SECONDS": "5"}, "REDIS_GATEWAY_WAIT_SECONDS is 5: it has to be less than"),
        ({"REDIS_GATEWAY_TLS_KEY_FILE": "/dev/null"}, "TLS_CERT_FILE and REDIS_GATEWAY_TLS_KEY_FILE belong together"),
        ({"REDIS_GATEWAY_LISTEN_TLS_CA_FILE": "/dev/null"}, "needs REDIS_GATEWAY_LISTEN_TLS_CERT_FILE"),
        ({"REDIS_GATEWAY_REDIS_PASSWORD_FILE": "/dev/null"}, "/dev/null is empty; write the password into it"),
        ({"REDIS_GATEWAY_JOURNAL_PREFIX": "two words:"}, "REDIS_GATEWAY_JOURNAL_PREFIX: String should match pattern"),
        ({"REDIS_GATEWAY_MAX_CLIENTS": "many"}, "REDIS_GATEWAY_MAX_CLIENTS: Input should be a valid integer"),
    ],
)
def test_each_error_names_its_variable(environment: dict[str, str], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong.replace("[", r"\[")):
        Settings.of(SENTINELS | environment)


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(SettingsError, match=r"UNREPLICATED: .*; REDIS_GATEWAY_MAX_CLIENTS: "):
        Settings.of({**SENTINELS, "REDIS_GATEWAY_MAX_CLIENTS": "0", "REDIS_GATEWAY_UNREPLICATED": "drop"})


def test_each_line_of_a_file_is_a_password_and_one_that_was_never_read_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\nsecond\n")
    assert passwords(file) == (b"first", b"second")
    assert passwords(None) == passwords(tmp_path / "none") == ()
    assert "there is no password" in caplog.text


def test_a_file_that_cannot_be_read_keeps_its_passwords_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\n")
    assert passwords(file) == (b"first",)
    file.unlink()
    assert passwords(file) == passwords(file) == (b"first",)
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} cannot be read (No such file or directory): the passwords that were in it stay in use"
    ]
    file.write_text("second\n")
    assert passwords(file) == (b"second",)


async def answered(within: float | None, error: OSError | None) -> None:
    reader = asyncio.StreamReader()
    if error:
        reader.set_exception(error)
    await Link(Address("sentinel", 26379), reader, cast(Any, None)).answer(within)


@pytest.mark.parametrize("within", [None, 1])
def test_a_connection_whose_keepalive_ends_is_lost(within: float | None) -> None:
    """Python makes a TimeoutError of ETIMEDOUT, as of a limit of its own."""
    error = OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    assert isinstance(error, TimeoutError)
    with pytest.raises(LostError, match=r"sentinel:26379: .*timed out") as lost:
        asyncio.run(answered(within, error))
    assert not isinstance(lost.value, SilentError)


def test_a_connection_without_an_answer_in_time_is_silent() -> None:
    with pytest.raises(SilentError, match=r"sentinel:26379 was silent for 0.01 s"):
        asyncio.run(answered(0.01, None))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_listens_on_addresses_of_both_families(host: str) -> None:
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        lacks(f"an address {host}: enable IPv6 for loopback")
    server = serve(Address(host, 0), Health(reason=None), CollectorRegistry())
    try:
        client = HTTPConnection(host, server.server_port, timeout=10)
        client.request("GET", "/readyz")
        assert client.getresponse().status == 200
        client.close()
    finally:
        server.shutdown()
        server.server_close()
