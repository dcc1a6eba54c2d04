"""A driver that makes the GCS write all the time, and reports delays and losses."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local import paths
from testbed.pods.platform import Platform

SCRIPT = (paths.ROOT / "tests" / "gateway" / "ray_load.py").read_text()

PAUSE = "8"
"""Seconds between two actors: an outage lasts longer than this and an actor's start together."""

END_SECONDS = 600.0
"""It reads every key that it wrote: a hundred for each second."""


@contextmanager
def working(platform: Platform, on_worker: bool = False) -> Iterator[dict[str, Any]]:
    """Runs the driver during the context. Afterwards the mapping contains its report.

    `on_worker`: in the pod of the cluster's one worker, where it survives a restart of the head.
    """
    noticed: dict[str, Any] = {}
    if on_worker:
        (worker,) = platform.workers()
        driver = platform.start_in(worker, "ray-worker", SCRIPT, "auto", PAUSE)
    else:
        driver = platform.start_in_head(SCRIPT, "auto", PAUSE)
    try:
        assert driver.stdout is not None
        output = ""
        while not output.endswith("begun\n"):
            line = driver.stdout.readline()
            assert line, f"the driver has ended:\n{output}"
            output += line
        yield noticed
        output, _ = driver.communicate(timeout=END_SECONDS)
        assert driver.returncode == 0, output
        # Ray may print what its other processes have logged after the report.
        noticed.update(json.loads([line for line in output.splitlines() if line.startswith("{")][-1]))
    finally:
        driver.kill()
