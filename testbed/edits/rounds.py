"""Rounds of edits: several RayClusters of one stack, each with its own sequence of edits."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kubernetes import client

from components.operator.settings import OperatorSettings
from core.engine import STATE_AT_END
from core.problems import StackFileError
from core.versions import release_of
from stacks.commands.impact.comparison import impact_on
from stacks.commands.impact.live import in_namespace
from stacks.commands.impact.ray_pods import Known
from stacks.load import load
from testbed.client_session import ClientSession
from testbed.edits.autoscalers import SCALES, Autoscalers
from testbed.edits.drawn import Cluster, Edit, edited, first, groups, seeded, strategy, wrong
from testbed.edits.outcome import Outcome, gone, set_back, switched_off, unpredicted
from testbed.platform_stack import Stack

NAMESPACES = ("edits-a", "edits-b")

TRIES = 8
"""The number of `pulumi up`. Autoscalers scale during the first, and pause during the others, so that it ends."""

SCALED = re.compile(r"RayCluster (\S+): its autoscaler has just scaled")
KEPT = re.compile(r"RayCluster (\S+): worker group \S.* is removed from the stack file, and has workers")
"""Why an update of a RayCluster is refused, as in the error messages."""


@dataclass
class Tally:
    """The results of all edits."""

    sequences: int = 0
    edits: Counter[str] = field(default_factory=Counter)
    """By strategy, like busy and ended."""
    busy: Counter[str] = field(default_factory=Counter)
    """Workers that were busy when an edit of their RayCluster began."""
    ended: Counter[str] = field(default_factory=Counter)
    """Busy workers that it ended, as `impact` had predicted."""
    unpredicted: list[str] = field(default_factory=list)
    """Busy workers that it ended though `impact` had not predicted it."""
    set_back: list[str] = field(default_factory=list)
    ups: int = 0
    scaled: int = 0
    """RayClusters whose update was refused because their autoscaler scaled at that moment."""
    kept: int = 0
    """Edits that were refused because a removed worker group has workers."""
    wrong: int = 0
    """Edits that were refused before anything was sent."""
    patches: int = 0
    """Number of patches by autoscalers."""


class Rounds:
    """One stack, with other RayClusters in each round."""

    def __init__(self, stack: Stack, api: client.ApiClient, seed: int) -> None:
        self._stack, self._api, self._seed = stack, api, seed
        self._autoscalers = Autoscalers(api, seeded(seed))
        self._clusters: dict[str, Cluster] = {}
        """The entries of the stack file, by `<namespace>/<name>`."""
        self.tally = Tally()

    def run(self, number: int, sequences: int, edits: int) -> Iterator[str]:
        """Runs a round. Yields a line for each step.

        Fails, with the whole output, if an `up` ends in a way that is not allowed.
        """
        names = [f"r{number}-{each}" for each in range(sequences)]
        draws = {
            f"{NAMESPACES[at % len(NAMESPACES)]}/{name}": seeded(self._seed, name) for at, name in enumerate(names)
        }
        before = dict.fromkeys(self._clusters, "RayClusters removed")
        self._clusters = {full: first(draw, full.partition("/")[2]) for full, draw in draws.items()}
        with self._autoscalers.playing():
            yield from self._applied("made", before)
            self._autoscalers.take_over(list(draws))
            for step in range(edits):
                if step == edits // 2:
                    yield self._refused(seeded(self._seed, number))
                yield from self._step({full: edited(draw, self._clusters[full]) for full, draw in draws.items()})
            with self._autoscalers.still():
                self.tally.patches += self._autoscalers.patches
        self.tally.sequences += sequences

    def _step(self, drawn: Mapping[str, Edit]) -> Iterator[str]:
        """Edits each RayCluster, all in one `up`, or as many as it takes."""
        former = dict(self._clusters)
        self._clusters = {full: edit.cluster for full, edit in drawn.items()}
        self._autoscalers.scales = SCALES
        yield from self._applied("edited", {full: edit.what for full, edit in drawn.items()}, former)
        self._autoscalers.scales = SCALES
        self._stack.changes_nothing()

    def _applied(
        self, verb: str, what: Mapping[str, str], former: Mapping[str, Cluster] | None = None
    ) -> Iterator[str]:
        """Repeats `pulumi up` until it succeeds. `what`: the edit of each existing RayCluster."""
        self._write()
        for _ in range(TRIES):
            outcome = self._up(what)
            line = f"{verb}: exit code {outcome.code}, {len(outcome.busy)} busy, {len(outcome.lost)} of them ended"
            if outcome.code == 0:
                yield line
                break
            scaled, kept = set(SCALED.findall(outcome.output)), set(KEPT.findall(outcome.output))
            yield f"{line}; refused: {len(scaled)} whose autoscaler just scaled, {len(kept)} whose group has workers"
            lost = [worker for worker in outcome.lost if worker.cluster in kept]
            if not (scaled or kept) or lost:
                raise AssertionError(f"seed {self._seed}: lost {lost} in an `up` that was refused:\n{outcome.output}")
            self.tally.scaled += len(scaled)
            self.tally.kept += len(kept)
            for full in kept:
                self._clusters[full] = (former or {})[full]
            self._write()
            self._autoscalers.scales = 0.0
        else:
            raise AssertionError(f"seed {self._seed}: `up` does not succeed:\n{outcome.output}")
        self.tally.edits.update(strategy(self._clusters[full]) for full in what if full in self._clusters)

    def _refused(self, draw: Random) -> str:
        """Makes an invalid edit: nothing may be lost by it. It is reverted."""
        full = draw.choice(list(self._clusters))
        former = self._clusters[full]
        edit = wrong(draw, former)
        self._clusters[full] = edit.cluster
        self._write()
        outcome = self._up({full: edit.what})
        if outcome.code == 0 or outcome.lost:
            raise AssertionError(f"seed {self._seed}: {full}, {edit.what}, lost {sorted(map(str, outcome.lost))}")
        self._clusters[full] = former
        self._write()
        self.tally.wrong += 1
        return f"refused: {edit.what}"

    def _up(self, what: Mapping[str, str]) -> Outcome:
        """Runs `pulumi up`, and reads the running pods before and after it."""
        with self._autoscalers.still():
            before, busy = self._running(), frozenset(self._autoscalers.busy)
            patched = self._autoscalers.patched
        live = {pod["metadata"]["name"] for known in before.values() for pod in known.pods}
        busy = frozenset(worker for worker in busy if worker.pod in live)
        try:
            impact = impact_on(before, load(self._stack.file), self._stack.name)
        except StackFileError:
            impact = None
        process = self._stack.start("up", "--yes", "--skip-preview", environment=STATE_AT_END)
        output, _ = process.communicate(timeout=self._stack.seconds)
        with self._autoscalers.still():
            after = self._running()
            lost = gone(busy, self._autoscalers.ended, after)
            scaled = {full for full, number in self._autoscalers.patched.items() if number > patched[full]}
            moved = set_back(self._autoscalers.set_replicas, after)
            for full, group, _ in moved:
                self._autoscalers.forget(full, group)
        moved = [each for each in moved if each[1] in {group["name"] for group in self._groups(each[0])}]
        late = switched_off(before, after, scaled)
        known = frozenset(worker for worker in lost if worker.cluster not in late)
        not_predicted = unpredicted(known, impact) if impact else known
        outcome = Outcome(
            process.returncode, output, busy, lost, not_predicted, tuple(sentence for *_, sentence in moved)
        )
        self._count(outcome, what)
        return outcome

    def _count(self, outcome: Outcome, what: Mapping[str, str]) -> None:
        tally = self.tally
        tally.ups += 1
        tally.busy.update(self._strategy(worker.cluster) for worker in outcome.busy)
        tally.ended.update(self._strategy(worker.cluster) for worker in outcome.lost - outcome.unpredicted)
        tally.set_back += outcome.set_back
        tally.unpredicted += [
            f"seed {self._seed}: {worker.cluster} {worker.group} {worker.pod}: {what.get(worker.cluster, 'no edit')}, "
            f"updates {self._strategy(worker.cluster)}"
            for worker in outcome.unpredicted
        ]

    def _strategy(self, full: str) -> str:
        return strategy(self._clusters[full]) if full in self._clusters else "removed"

    def _groups(self, full: str) -> list[Cluster]:
        return groups(self._clusters[full]) if full in self._clusters else []

    def _running(self) -> dict[str, Known]:
        release, session = release_of(OperatorSettings().version), ClientSession(self._api)
        return {full: known for namespace in NAMESPACES for full, known in in_namespace(session, namespace, release)}

    def _write(self) -> None:
        def change(settings: dict[str, Any]) -> None:
            settings["tenants"] = [
                {
                    "name": namespace,
                    "allowDelete": True,
                    "clusters": [
                        cluster for full, cluster in self._clusters.items() if full.startswith(f"{namespace}/")
                    ],
                }
                for namespace in NAMESPACES
            ]

        self._stack.edit(change)
