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
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from components.payloads.redis_gateway.cursors import OPEN_SCANS, Cursors
from components.payloads.redis_gateway.health import Health, serve
from components.payloads.redis_gateway.journal import done, new_key
from components.payloads.redis_gateway.link import Link, LostError, SilentError
from components.payloads.redis_gateway.passwords import passwords
from components.payloads.redis_gateway.protocol import (
    CHUNK,
    Answers,
    ProtocolError,
    ReplyError,
    Status,
    answer_parts,
    chunks,
    command_parts,
)
from components.payloads.redis_gateway.settings import Address, Settings, SettingsError
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


ANSWERS = st.recursive(
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.binary(max_size=40)
    | st.sampled_from([ReplyError("ERR no"), LARGE])
    | st.sampled_from([Status("OK"), Status("")]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


def comparable(answer: Any) -> Any:
    """An answer of either reader: errors are equal by their text."""
    if isinstance(answer, list):
        return [comparable(each) for each in answer]
    return str(answer) if isinstance(answer, Exception) else answer


@given(st.lists(ANSWERS, min_size=1, max_size=5), st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_answers_are_read_as_hiredis_reads_them_in_whatever_pieces_they_arrive(
    answers: list[Any], sizes: list[int]
) -> None:
    data = b"".join(sent(answer_parts(each)) for each in answers)
    ours, theirs, read = Answers(), hiredis.Reader(), []
    theirs.feed(data)
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)] if at < 2000 else CHUNK
        read += ours.feed(data[at : at + size])
        assert ours.incomplete or len(read) > 0
        at += size
    assert comparable(read) == comparable([theirs.gets() for _ in answers])
    assert not ours.incomplete


@pytest.mark.parametrize(
    "data", [b"?1\r\n", b":one\r\n", b"$2\r\nabc\r\n", b"+" + b"x" * (64 << 10) + b"x", b"*1\r\n" * 12]
)
def test_what_is_no_answer_closes_the_connection(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Answers().feed(data)


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
        ({"REDIS_GATEWAY_UNREPLICATED": "drop"}, "REDIS_GATEWAY_UNREPLICATED: 'drop' is not one of hold, answer"),
        ({"REDIS_GATEWAY_WAIT_SECONDS": "5"}, "REDIS_GATEWAY_WAIT_SECONDS is 5: it has to be less than"),
        ({"REDIS_GATEWAY_REDIS_PASSWORD_FILE": "/dev/null"}, "/dev/null is empty; write the password into it"),
        ({"REDIS_GATEWAY_JOURNAL_PREFIX": "two words:"}, "REDIS_GATEWAY_JOURNAL_PREFIX: 'two words:' has characters"),
        (
            {"REDIS_GATEWAY_MAX_CLIENTS": "many"},
            "REDIS_GATEWAY_MAX_CLIENTS: 'many' is not a whole number from 1 to 10000",
        ),
    ],
)
def test_each_error_names_its_variable(environment: dict[str, str], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong.replace("[", r"\[")):
        Settings.of(SENTINELS | environment)


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
