"""Commands and answers as they are sent, the cursors of scans, and the writes in the journal of a master."""

from typing import Any, cast

import hiredis
import pytest
from hiredis import ReplyError

from gateway.cursors import OPEN_SCANS, Cursors
from gateway.journal import done, new_key
from gateway.protocol import CHUNK, Status, answer_parts, chunks, command_parts

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


def test_a_scan_continues_on_the_node_that_returned_its_cursor() -> None:
    cursors = Cursors()
    number = cursors.given("process-a", b"17")
    assert cursors.followed("process-a", number) == (b"17", False)


def test_a_scan_restarts_on_another_node() -> None:
    cursors = Cursors()
    number = cursors.given("process-a", b"17")
    assert cursors.followed("process-b", number) == (b"0", True)


def test_two_scans_with_the_same_cursor_are_distinguished() -> None:
    cursors = Cursors()
    first, second = cursors.given("process-a", b"17"), cursors.given("process-b", b"17")
    assert first != second
    assert cursors.followed("process-b", first) == (b"0", True)
    assert cursors.followed("process-b", second) == (b"17", False)


def test_zero_begins_and_ends_a_scan() -> None:
    cursors = Cursors()
    assert cursors.given("process-a", b"0") == b"0"
    assert cursors.followed("process-a", b"0") == (b"0", False)


def test_cursors_fit_the_integers_of_clients() -> None:
    cursors = Cursors()
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
