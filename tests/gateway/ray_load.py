"""A driver that makes the GCS write all the time, as a program: ADDRESS PAUSE. It ends when its standard input ends.

PAUSE: seconds between two actors of a kind. Each starts a process, which takes two seconds of a core, and the load of
the machine must not be measured.

It prints `begun`, and at its end a report as JSON.
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

RUN = time.time_ns()
"""Part of the names of this run's keys, which remain after it."""

AGAIN = 0.5
"""Pause in seconds after a failure, so that a restarting control plane gets the CPU."""

LATE = 1.0
"""An operation that takes more seconds counts as stalled."""


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
    """Repeats one operation, and measures it."""

    def __init__(self, ending: threading.Event) -> None:
        super().__init__()
        self.done = 0
        self.stalls: list[tuple[float, float]] = []
        """For each stall its begin in seconds since 1970, and the seconds until an operation succeeded again."""
        self.failed: dict[int, str] = {}
        """The errors by number. It is unknown whether a failed operation was done."""
        self._ending = ending

    def run(self) -> None:
        """Works until `ending` is set."""
        at, begin = time.time(), time.monotonic()
        while not self._ending.is_set():
            number = self.done
            try:
                self.step(number)
            except Exception as error:  # the report contains any error
                self.failed[number] = repr(error)[:500]
                time.sleep(AGAIN)
                continue
            finally:
                self.done += 1
            if (seconds := time.monotonic() - begin) > LATE:
                self.stalls.append((at, round(seconds, 2)))
            self.pause()
            at, begin = time.time(), time.monotonic()

    def step(self, number: int) -> None:
        """Does the operation."""
        raise NotImplementedError

    def pause(self) -> None:
        """Waits until the next operation."""
        time.sleep(float(sys.argv[2]))


class Keys(Work):
    """Writes new keys. Ray returns whether a key existed before, which is the answer of HSETNX."""

    def step(self, number: int) -> None:
        """Writes a key."""
        if _internal_kv_put(f"key-{RUN}-{number}", b"value", overwrite=False):
            raise ValueError(f"key-{number} is reported to have existed before")

    def pause(self) -> None:
        """Waits a hundredth of a second."""
        time.sleep(0.01)


class Actors(Work):
    """Creates actors, calls each once, and ends it."""

    def step(self, number: int) -> None:
        """Creates an actor."""
        actor: Any = Keeper.options(name=f"actor-{number}").remote()  # type: ignore[attr-defined] # of ray.remote
        if ray.get(actor.add.remote(), timeout=60) != 1:
            raise ValueError(f"actor-{number} is an existing actor")
        ray.kill(actor)


class Detached(Work):
    """Creates actors that outlive their driver. The last of them stay."""

    def __init__(self, ending: threading.Event) -> None:
        super().__init__(ending)
        self.living: dict[str, Any] = {}

    def step(self, number: int) -> None:
        """Creates an actor, and ends the oldest one beyond MOST_DETACHED."""
        name = f"detached-{number}"
        actor: Any = Keeper.options(name=name, lifetime="detached").remote()  # type: ignore[attr-defined] # of ray.remote
        if ray.get(actor.add.remote(), timeout=60) != 1:
            raise ValueError(f"{name} is an existing actor")
        self.living[name] = actor
        if len(self.living) > MOST_DETACHED:
            ray.kill(self.living.pop(next(iter(self.living))))

    def lost(self) -> list[str]:
        """Actors that are missing or have lost their state, and actors that should have ended."""
        found = {each["name"] for each in ray.util.list_named_actors(all_namespaces=True)}
        unsure = {f"detached-{number}" for number in self.failed}
        others = {name for name in found if name.startswith("detached-")} - unsure ^ set(self.living)
        return sorted(others | {name for name, actor in self.living.items() if not kept(actor)})


def kept(keeper: Any) -> bool:
    """Whether an actor that was called once still has its state."""
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
    while not all(work.done for work in works.values()):
        time.sleep(0.1)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    sys.stdin.read()
    ending.set()
    for work in works.values():
        work.join()
    report = {
        name: {"done": it.done, "stalls": it.stalls, "failed": [*it.failed.values()]} for name, it in works.items()
    }
    written = [number for number in range(works["keys"].done) if number not in works["keys"].failed]
    missing = [number for number in written if _internal_kv_get(f"key-{RUN}-{number}") != b"value"]
    keeps = kept(keeper) and bool(ray.get_actor("keeper"))
    seen = {"missing_keys": missing, "lost_actors": detached.lost(), "keeper_kept": keeps}
    sys.stdout.write(json.dumps({**report, **seen}) + "\n")
    for actor in (keeper, *detached.living.values()):
        ray.kill(actor)


if __name__ == "__main__":
    main()
