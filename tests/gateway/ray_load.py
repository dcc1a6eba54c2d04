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

AGAIN = 0.5
"""Seconds after a failure, so that a control plane that comes back has the machine."""

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
        """When each began, in seconds since 1970, and how many seconds it took until one was done again."""
        self.failed: dict[int, str] = {}
        """Why, by number. Whether such a one was done nobody knows."""
        self._ending = ending

    def run(self) -> None:
        """Works until told to end."""
        at, begin = time.time(), time.monotonic()
        while not self._ending.is_set():
            number, self.done = self.done, self.done + 1
            try:
                self.step(number)
            except Exception as error:  # what it is, is what the test asks for
                self.failed[number] = repr(error)[:500]
                time.sleep(AGAIN)
                continue
            if (seconds := time.monotonic() - begin) > LATE:
                self.stalls.append((at, round(seconds, 2)))
            self.pause()
            at, begin = time.time(), time.monotonic()

    def step(self, number: int) -> None:
        """The one thing."""
        raise NotImplementedError

    def pause(self) -> None:
        """Until the next one."""
        time.sleep(PAUSE)


class Keys(Work):
    """Writes new keys. Ray says whether a key was there before: that is HSETNX' answer."""

    def step(self, number: int) -> None:
        """Writes one."""
        if _internal_kv_put(f"key-{RUN}-{number}", b"value", overwrite=False):
            raise ValueError(f"key-{number} is said to have been there before")

    def pause(self) -> None:
        """A hundredth of a second."""
        time.sleep(0.01)


class Actors(Work):
    """Makes actors, each asked once and ended."""

    def step(self, number: int) -> None:
        """Makes one."""
        actor: Any = Keeper.options(name=f"actor-{number}").remote()  # type: ignore[attr-defined] # of ray.remote
        if ray.get(actor.add.remote(), timeout=60) != 1:
            raise ValueError(f"actor-{number} is another one")
        ray.kill(actor)


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

    def lost(self) -> list[str]:
        """Those that are not there, or know nothing of what they did, and those that ought not to be there."""
        found = {each["name"] for each in ray.util.list_named_actors(all_namespaces=True)}
        unsure = {f"detached-{number}" for number in self.failed}
        others = {name for name in found if name.startswith("detached-")} - unsure ^ set(self.there)
        return sorted(others | {name for name, actor in self.there.items() if not kept(actor)})


def kept(keeper: Any) -> bool:
    """Whether an actor that was asked once has its state still."""
    try:
        return bool(ray.get(keeper.add.remote()) == 2)
    except ray.exceptions.RayError:
        return False


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
    told = {name: {"done": it.done, "stalls": it.stalls, "failed": [*it.failed.values()]} for name, it in works.items()}
    written = [number for number in range(works["keys"].done) if number not in works["keys"].failed]
    missing = [number for number in written if _internal_kv_get(f"key-{RUN}-{number}") != b"value"]
    keeps = kept(keeper) and bool(ray.get_actor("keeper"))
    seen = {"missing_keys": missing, "lost_actors": detached.lost(), "keeper_kept": keeps}
    sys.stdout.write(json.dumps({**told, **seen}) + "\n")
    for actor in (keeper, *detached.there.values()):
        ray.kill(actor)


if __name__ == "__main__":
    main()
