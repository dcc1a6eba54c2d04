"""Resources with providers of this program's own, and looking at an object until it is as desired."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from pulumi.dynamic import CreateResult, ResourceProvider

from components.dynamic import Resource
from components.waiting import until
from testbed.recorder import record

pytestmark = pytest.mark.thorough


class _Provider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("one")


def test_a_stack_may_have_more_of_them_than_python_may_recurse() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        made = record(lambda: [Resource(_Provider(), f"one-{number}", {}) for number in range(500)])
    finally:
        sys.setrecursionlimit(limit)
    [names] = [names for kind, names in made.kinds().items() if kind.startswith("pulumi-python:dynamic")]
    assert len(names) == 500


class TooLateError(Exception):
    """The time is over."""


def waited(*looks: tuple[str | None, str], limit: int = 60) -> tuple[str, list[str]]:
    """The result of waiting, and what was shown meanwhile."""
    shown: list[str] = []
    states = list(looks)
    result = asyncio.run(until(lambda: states.pop(0), limit, shown.append, TooLateError))
    return result, shown


def test_a_state_is_shown_once_until_the_result_or_the_limit_whose_error_has_it() -> None:
    assert waited(("done", "ready")) == ("done", [])
    assert waited((None, "starts"), (None, "starts"), ("done", "ready")) == ("done", ["starts"])
    with pytest.raises(TooLateError, match="starts"):
        waited((None, "starts"), limit=-1)


def test_it_needs_no_thread_in_which_registrations_wait_for_the_engine() -> None:
    """The engine answers them only after the wait, which is a hook."""
    answered = Event()

    async def update() -> str:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        registration = loop.run_in_executor(None, answered.wait)
        try:
            return await asyncio.wait_for(until(lambda: ("done", "ready"), 60, print, TooLateError), 10)
        finally:
            answered.set()
            await registration

    assert asyncio.run(update()) == "done"
