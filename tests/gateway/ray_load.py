"""A driver that has the GCS write all the time, as a program: ADDRESS. It ends when its standard input does.

On standard output it says `begun`, and in the end what it noticed, as JSON.
"""

import json
import logging
import sys
import threading
import time
from typing import Any

import ray
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

MOST_DETACHED = 5

PAUSE = 3.0
"""Seconds between two actors of a kind: each is a process to start, two seconds of a core, and how long a full machine
takes is not what is measured."""

RUN = time.time_ns()
"""In the names of this run's keys: they outlast it."""

LATE = 1.0
"""Seconds from which on an operation counts as stalled."""


@ray.remote(num_cpus=0)
class Keeper:
    """Has a state that only a living process keeps."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        """Counts."""
        self.count += 1
        return self.count


class Work(threading.Thread):
    """Does one thing again and again, and measures it."""

    def __init__(self, ending: threading.Event) -> None:
        super().__init__()
        self.done = 0
        self.stalls: list[tuple[float, float]] = []
        """When each began, in seconds since 1970, and how many seconds it took."""
        self.failed: list[str] = []
        self._ending = ending

    def run(self) -> None:
        """Works until told to end."""
        while not self._ending.is_set():
            at, begin = time.time(), time.monotonic()
            try:
                self.step(self.done)
            except Exception as error:  # what it is, is what the test asks for
                self.failed.append(repr(error)[:500])
            self.done += 1
            if (seconds := time.monotonic() - begin) > LATE:
                self.stalls.append((at, round(seconds, 2)))

    def step(self, number: int) -> None:
        """The one thing."""
        raise NotImplementedError


class Keys(Work):
    """Writes new keys. Ray says whether a key was there before: that is HSETNX' answer."""

    def step(self, number: int) -> None:
        """Writes one."""
        if _internal_kv_put(f"key-{RUN}-{number}", b"value", overwrite=False):
            raise ValueError(f"key-{number} is said to have been there before")
        time.sleep(0.01)


class Actors(Work):
    """Makes actors, each asked once and ended."""

    def step(self, number: int) -> None:
        """Makes one."""
        actor: Any = Keeper.options(name=f"actor-{number}").remote()  # type: ignore[attr-defined] # of ray.remote
        if ray.get(actor.add.remote(), timeout=60) != 1:
            raise ValueError(f"actor-{number} is another one")
        ray.kill(actor)
        time.sleep(PAUSE)


class Detached(Work):
    """Makes actors that outlive their driver. The last of them stay."""

    def __init__(self, ending: threading.Event) -> None:
        super().__init__(ending)
        self.there: dict[str, Any] = {}

    def step(self, number: int) -> None:
        """Makes one, and ends the one that is one too many."""
        name = f"detached-{number}"
        actor: Any = Keeper.options(name=name, lifetime="detached").remote()  # type: ignore[attr-defined] # of ray.remote
        if ray.get(actor.add.remote(), timeout=60) != 1:
            raise ValueError(f"{name} is another one")
        self.there[name] = actor
        if len(self.there) > MOST_DETACHED:
            ray.kill(self.there.pop(next(iter(self.there))))
        time.sleep(PAUSE)

    def lost(self) -> list[str]:
        """Those that are not there, or know nothing of what they did, and those that ought not to be there."""
        found = {each["name"] for each in ray.util.list_named_actors(all_namespaces=True)}
        others = {name for name in found if name.startswith("detached-")} ^ set(self.there)
        return sorted(others | {name for name, actor in self.there.items() if ray.get(actor.add.remote()) != 2})


def main() -> None:
    """Works until standard input ends."""
    ray.init(address=sys.argv[1], namespace="load", log_to_driver=False, logging_level=logging.ERROR)
    keeper: Any = Keeper.options(name="keeper", lifetime="detached").remote()  # type: ignore[attr-defined] # the same
    ray.get(keeper.add.remote())
    ending = threading.Event()
    detached = Detached(ending)
    works = {"keys": Keys(ending), "actors": Actors(ending), "detached": detached}
    for work in works.values():
        work.start()
    while any(work.done < 3 for work in works.values()):
        time.sleep(0.1)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    sys.stdin.read()
    ending.set()
    for work in works.values():
        work.join()
    told = {name: {"done": it.done, "stalls": it.stalls, "failed": it.failed} for name, it in works.items()}
    missing = [number for number in range(works["keys"].done) if _internal_kv_get(f"key-{RUN}-{number}") != b"value"]
    kept = bool(ray.get(keeper.add.remote()) == 2 and ray.get_actor("keeper"))
    seen = {"missing_keys": missing, "lost_actors": detached.lost(), "keeper_kept": kept}
    sys.stdout.write(json.dumps({**told, **seen}) + "\n")
    for actor in (keeper, *detached.there.values()):
        ray.kill(actor)


if __name__ == "__main__":
    main()
