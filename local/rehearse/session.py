"""Runs a stack on its own rehearsal cluster: starts it, observes it, requests the tenants' maximum, and stops it."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import paths
from local.errors import RehearsalError
from local.install import install_missing
from local.plugins import Selection
from local.progress import Report, step
from local.pulumi import POLICY_PACK, RehearsalStack
from local.rehearsal import Rehearsal
from local.rehearse import comparison
from local.rehearse.cluster import Cluster
from local.rehearse.players import play
from local.rehearse.report import Rehearsed
from stacks.load import load
from stacks.objects.stack import images_of
from stacks.planning.plan import Plan, plan_of

_LOOK_SECONDS = 2.0

_STARTS_WITHIN_SECONDS = 30.0
"""Simulated pods are ready within a few seconds."""


def folder(stack: str) -> Path:
    """The run folder of a stack's rehearsal: separate from that of `make up`."""
    return paths.RUN.with_name(f"{paths.RUN.name}-{stack}")


_VIOLATION = re.compile(r"- \[mandatory\].*?  (?P<rule>[\w-]+).*\n.*\n +(?P<problem>.+)")
"""A violation of a mandatory rule in Pulumi's output: the rule, its description, and the object and its problem."""


def violations(text: str) -> tuple[str, ...]:
    """The violations of mandatory rules of the policy pack in the output of `pulumi up`."""
    return tuple(f"{each['rule']}: {each['problem']}" for each in _VIOLATION.finditer(text))


def diagnostics(text: str) -> tuple[str, ...]:
    """The errors in the output of a failed `pulumi up`: the lines of its last section, without names of resources."""
    section = (
        text.rpartition("\nDiagnostics:\n")[2].partition("\nResources:\n")[0] if "\nDiagnostics:\n" in text else ""
    )
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    return tuple(
        dict.fromkeys(line.removeprefix("error: ") for line in lines if line and line != "error: update failed")
    )


def _until_started(cluster: Cluster, number: int, show: Report) -> None:
    """Waits for the RayClusters of RayJobs and RayServices, for which no `up` waits; those without room stay."""
    ready, since = -1, time.monotonic()
    while ready < number and time.monotonic() < since + _STARTS_WITHIN_SECONDS:
        if (now := sum(each.ready for each in cluster.states())) != ready:
            ready, since = now, time.monotonic()
        show(ready / (number + 1), f"{ready} of {number} RayClusters are ready")
        time.sleep(_LOOK_SECONDS)


class Session:
    """A rehearsal of a stack. The cluster is always recreated, so that no earlier one affects it."""

    def __init__(self, stack: str, file: Path, plugins: Selection, run: Path, policies: bool = True) -> None:
        """`policies`: validate the stack against the policy pack's rules."""
        self._policies = POLICY_PACK if policies else ()
        self._stack, self._settings = stack, load(file)
        self.rehearsal = Rehearsal(run, "simulated")
        self._pulumi = RehearsalStack(self.rehearsal, plugins, stack, file)
        self._tools = plugins.tools
        self._seconds: dict[str, float] = {}

    def run(self, ask: bool = True, keep: bool = False) -> Rehearsed:
        """Runs all steps. `ask`: request the maximum of all tenants. `keep`: keep the cluster afterwards.

        Raises:
            RehearsalError: a part of the cluster ended or did not answer; its log stays until the next rehearsal.
        """
        plan, images = plan_of(self._settings), images_of(self._settings)
        install_missing(self._tools)
        self.rehearsal.placement.build(images)
        self.end()
        with self.rehearsal.exclusively():
            failed = False
            try:
                with self.rehearsal.checked():
                    return self._run(plan, ask)
            except RehearsalError:
                failed = True
                raise
            finally:
                if not keep:
                    self.rehearsal.stop(clean=not failed)

    def end(self) -> None:
        """Removes a cluster that an earlier rehearsal has kept, with its folder."""
        with self.rehearsal.exclusively():
            self.rehearsal.stop(clean=True)

    def _run(self, plan: Plan, ask: bool) -> Rehearsed:
        with self._timed("cluster and nodes") as show:
            self.rehearsal.start(self._settings.nodes, show)
        cluster = Cluster(self.rehearsal.client())
        with self._timed("pulumi up, until all is ready") as show:
            number = sum(len(tenant.clusters) for tenant in plan.tenants)
            errors = self._up(cluster, number, show)
            if any(tenant.jobs or tenant.services for tenant in self._settings.tenants) and not errors:
                _until_started(cluster, number, show)
        found = cluster.observed()
        asked = None
        if ask and not errors:
            with self._timed("all ask for their maximum, in file order") as show:
                unsettled = play(cluster, plan, show)
            asked = comparison.demand(plan, cluster.observed(), tuple(unsettled))
        self.rehearsal.check()
        start = comparison.start(self._settings, plan, found)
        return Rehearsed(self._stack, plan, self._seconds, found, errors, start, asked)

    def _up(self, cluster: Cluster, number: int, show: Report) -> tuple[str, ...]:
        """Returns the errors."""
        log = self.rehearsal.run / "logs" / "pulumi-up.log"
        arguments = ("up", "--yes", "--skip-preview", "--suppress-outputs", *self._policies)
        with self._pulumi.running(log, *arguments) as update:
            while update.poll() is None:
                ready = sum(each.ready for each in cluster.states())
                show(ready / (number + 1), f"{ready} of {number} RayClusters are ready")
                self.rehearsal.check()
                time.sleep(_LOOK_SECONDS)
            self.rehearsal.check()
        if update.returncode == 0:
            return ()
        output = log.read_text()
        return (*violations(output), *diagnostics(output)) or (f"exit status {update.returncode}",)

    @contextmanager
    def _timed(self, name: str) -> Iterator[Report]:
        begun = time.monotonic()
        with step(name.capitalize()) as show:
            yield show
        self._seconds[name] = time.monotonic() - begun
