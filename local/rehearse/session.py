"""Brings a stack up on a rehearsal cluster of its own, looks at it, lets its tenants ask for all, and takes it down."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import paths
from local.install import install_missing
from local.plugins import Selection
from local.progress import Report, step
from local.pulumi import POLICY_PACK, RehearsalStack
from local.rehearsal import Rehearsal
from local.rehearse import comparison
from local.rehearse.cluster import Cluster
from local.rehearse.players import play
from local.rehearse.rehearsed import Rehearsed
from stacks.images import images_of
from stacks.load import load
from stacks.planning.plan import Plan, plan_of

_LOOK_SECONDS = 2.0


def folder(stack: str) -> Path:
    """Where the rehearsal of a stack has its cluster: beside that of `make up`, which it leaves alone."""
    return paths.RUN.with_name(f"{paths.RUN.name}-{stack}")


_VIOLATION = re.compile(r"- \[mandatory\].*?  (?P<rule>[\w-]+).*\n.*\n +(?P<said>.+)")
"""A mandatory rule that is broken, as Pulumi shows it: the rule, what it wants, and what is wrong where."""


def violations(text: str) -> tuple[str, ...]:
    """The mandatory rules of the policy pack that a `pulumi up` has broken."""
    return tuple(f"{each['rule']}: {each['said']}" for each in _VIOLATION.finditer(text))


def diagnostics(text: str) -> tuple[str, ...]:
    """What went wrong, of what a failed `pulumi up` said: the lines of its last section, without names of resources."""
    section = (
        text.rpartition("\nDiagnostics:\n")[2].partition("\nResources:\n")[0] if "\nDiagnostics:\n" in text else ""
    )
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    return tuple(
        dict.fromkeys(line.removeprefix("error: ") for line in lines if line and line != "error: update failed")
    )


class Session:
    """A rehearsal of a stack. The cluster is made anew, so that nothing of an earlier one counts."""

    def __init__(self, stack: str, file: Path, plugins: Selection, run: Path, policies: bool = True) -> None:
        """`policies`: hold the stack to the policy pack's rules."""
        self._policies = POLICY_PACK if policies else ()
        self._stack, self._settings = stack, load(file)
        self.rehearsal = Rehearsal(run, "simulated")
        self._pulumi = RehearsalStack(self.rehearsal, plugins, stack, file)
        self._seconds: dict[str, float] = {}

    def run(self, ask: bool = True, keep: bool = False) -> Rehearsed:
        """All of it. `ask`: let tenants ask for all that they may have. `keep`: leave the cluster there afterwards.

        Raises:
            RehearsalError: a part of the cluster ended or did not answer.
        """
        plan, wanted = plan_of(self._settings), images_of(self._settings)
        install_missing()
        self.rehearsal.placement.build(wanted)
        self.end()
        with self.rehearsal.exclusively():
            try:
                return self._run(plan, ask)
            finally:
                if not keep:
                    self.rehearsal.stop(clean=True)

    def end(self) -> None:
        """Take down what an earlier one has kept, with its folder."""
        with self.rehearsal.exclusively():
            self.rehearsal.stop(clean=True)

    def _run(self, plan: Plan, ask: bool) -> Rehearsed:
        with self._timed("cluster and nodes") as show:
            self.rehearsal.start(self._settings.nodes, show)
        cluster = Cluster(self.rehearsal.client())
        with self._timed("pulumi up, until all is ready") as show:
            errors = self._up(cluster, sum(len(tenant.clusters) for tenant in plan.tenants), show)
        found = cluster.observed()
        asked = None
        if ask and not errors:
            with self._timed("all ask for their greatest, in turn") as show:
                unsettled = play(cluster, plan, show)
            asked = comparison.demand(plan, cluster.observed(), tuple(unsettled))
        self.rehearsal.check()
        start = comparison.start(self._settings, plan, found)
        return Rehearsed(self._stack, plan, self._seconds, found, errors, start, asked)

    def _up(self, cluster: Cluster, number: int, show: Report) -> tuple[str, ...]:
        """Returns what went wrong."""
        log = self.rehearsal.run / "logs" / "pulumi-up.log"
        arguments = ("up", "--yes", "--skip-preview", "--suppress-outputs", *self._policies)
        with self._pulumi.running(log, *arguments) as update:
            while update.poll() is None:
                ready = sum(each.ready for each in cluster.states())
                show(ready / (number + 1), f"{ready} of {number} RayClusters are ready")
                time.sleep(_LOOK_SECONDS)
            self.rehearsal.check()
        if update.returncode == 0:
            return ()
        said = log.read_text()
        return (*violations(said), *diagnostics(said)) or (f"exit status {update.returncode}",)

    @contextmanager
    def _timed(self, name: str) -> Iterator[Report]:
        begun = time.monotonic()
        with step(name.capitalize()) as show:
            yield show
        self._seconds[name] = time.monotonic() - begun
