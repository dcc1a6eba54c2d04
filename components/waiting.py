"""Looks at an object again and again, until it is as desired or the time is over."""

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from components.cluster import Cluster, ClusterUnreachableError, UnauthorizedError

Result = TypeVar("Result")

_PAUSE_SECONDS = 1.0

_LOOKS = ThreadPoolExecutor(8, "look")
"""Threads of their own. In those of the event loop the SDK's registrations wait for the engine (pulumi 3.272,
runtime/resource.py, do_rpc_call). The engine may be waiting for this hook, and then neither would ever continue."""

GONE = "it does not exist: it was deleted after its creation"
"""State of an object that is not there."""


def report(line: str) -> None:
    """Shows a line to whoever runs `up`: Pulumi shows what a provider writes."""
    sys.stderr.write(f"{line}\n")


async def until(
    look: Callable[[], tuple[Result | None, str]],
    limit: int,
    show: Callable[[str], None],
    late: Callable[[str], Exception],
) -> Result:
    """The first result of `look`, which reads: a result or None, and the state for people. Both functions may block.

    `limit`: seconds. `show`: called with the state whenever it changes. `late`: the error after that time, from the
    last state.
    Raises what `late` returns, and what `look` raises.
    """
    deadline = time.monotonic() + limit
    shown = ""
    loop = asyncio.get_running_loop()
    while True:
        result, state = await loop.run_in_executor(_LOOKS, look)
        if result is not None:
            return result
        if time.monotonic() > deadline:
            raise await loop.run_in_executor(_LOOKS, late, state)
        if state != shown:
            show(state)
            shown = state
        await asyncio.sleep(_PAUSE_SECONDS)


def look_at(
    cluster: Cluster,
    plural: str,
    namespace: str,
    name: str,
    state_of: Callable[[dict[str, Any]], str],
    ends: bool = False,
) -> tuple[dict[str, Any] | None, str]:
    """An object of KubeRay that an update has created, and its state for people. An API server that does not answer is
    asked again later.

    `ends`: raises UnauthorizedError if it does not accept the credentials any more.
    """
    try:
        found = cluster.get("ray.io/v1", plural, namespace, name)
    except ClusterUnreachableError as error:
        if ends and isinstance(error, UnauthorizedError):
            raise
        return None, str(error)
    return found, state_of(found) if found else GONE
