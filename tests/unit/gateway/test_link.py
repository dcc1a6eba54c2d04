"""A connection whose peer does not answer."""

import asyncio
import errno
import os
from typing import Any, cast

import pytest

from gateway.link import Link, LostError, SilentError
from gateway.settings import Address


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
