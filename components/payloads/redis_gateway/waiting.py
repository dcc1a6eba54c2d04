"""Limits of waiting."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

_asyncio: Any = importlib.import_module("asyncio")

_limit: Any = getattr(_asyncio, "timeout", None) or importlib.import_module("async_timeout").timeout
"""`asyncio.timeout`, which Python has from 3.11 on. Before, aiohttp, which Ray needs, brings async_timeout."""


@asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[None]:
    """Raises TimeoutError if its body takes longer. None: no limit."""
    try:
        async with _limit(seconds):
            yield
    except _asyncio.TimeoutError:
        # Before Python 3.11 this is another class.
        raise TimeoutError from None
