"""Commands and answers as they are sent."""

from typing import Any, cast

import hiredis
import pytest

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
