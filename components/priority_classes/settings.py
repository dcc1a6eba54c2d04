"""Settings of the priorities of Ray's pods, and the PriorityClasses that they are rendered into."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

from core.body import Body
from core.problems import Path, Problem
from core.types import CheckedSettings, DnsSubdomain

HEAD = 1000
"""Above pods without a class, which have 0 unless the cluster has a default. The loss of a head ends the work on all
its workers, and the head must start again on nodes that are full of workers or other pods."""

WORKER = 0
"""The same as pods without a class: workers wait with all other pods, do not evict pods of equal priority, and may be
evicted for more important pods. With their own class they stay below the heads even if the cluster has a default."""


@dataclass(frozen=True)
class PriorityNames:
    """The PriorityClasses of head and workers. None: no PriorityClass."""

    head: str | None = None
    worker: str | None = None


NO_PRIORITIES = PriorityNames()


def of_kubernetes(path: Path, name: str) -> Iterator[Problem]:
    """The problem of a class at `path` that only Kubernetes' own pods may have."""
    if name.startswith("system-"):
        message = "classes that begin with system- are above all others, and reserved for Kubernetes: choose another"
        yield Problem(path, name, message, "priority-name")


class PriorityClassesSettings(CheckedSettings):
    """The PriorityClasses that heads and workers get, unless podDefaults is none or a pod template names another."""

    install: Literal["manifests", "existing", "none"] | None = None
    """`manifests`: the stack creates them. `existing`: they exist already. `none`: pods get none. Default: `manifests`;
    with an existing operator `existing` if a name is set, else `none`."""

    head: DnsSubdomain = "ray-head"
    """Name of the heads' PriorityClass."""

    worker: DnsSubdomain = "ray-worker"
    """Name of the workers' PriorityClass."""

    allowed: tuple[DnsSubdomain, ...] = ()
    """Further PriorityClasses that RayClusters outside this stack file may have, such as those of tenants' own stacks;
    with Kueue also WorkloadPriorityClasses. Default: none; a class may evict other tenants' pods."""

    @property
    def of_tenants(self) -> tuple[str, ...]:
        """The PriorityClasses that tenants' RayClusters may have."""
        own = (self.names.head, self.names.worker)
        return tuple(dict.fromkeys([*(each for each in own if each), *self.allowed]))

    @property
    def names(self) -> PriorityNames:
        """The PriorityClasses that pods get."""
        return NO_PRIORITIES if self.install == "none" else PriorityNames(self.head, self.worker)

    def beside(self, operator: Literal["manifests", "existing"]) -> Self:
        """The settings with `install` decided. `operator`: how the operator is installed.

        With an existing operator, existing classes may have the same names, so none are created by default.
        """
        if self.install is not None:
            return self
        install = "manifests" if operator == "manifests" else "existing" if self._named else "none"
        return self.model_copy(update={"install": install})

    @property
    def _named(self) -> set[str]:
        """The classes whose name is set."""
        return self.model_fields_set & {"head", "worker"}

    def problems(self) -> list[Problem]:
        return [*self._set_with_none(), *self._invalid_names()]

    def _set_with_none(self) -> list[Problem]:
        if self.install != "none":
            return []
        keys = sorted(self._named)
        message = "install none gives pods no PriorityClass: remove this key, or set install to manifests or existing"
        return [Problem((key,), getattr(self, key), message, "no-priorities") for key in keys]

    def _invalid_names(self) -> list[Problem]:
        named: list[tuple[Path, str]] = [(("head",), self.head), (("worker",), self.worker)]
        named += [(("allowed", at), name) for at, name in enumerate(self.allowed)]
        problems = [found for path, name in named for found in of_kubernetes(path, name)]
        if self.head == self.worker and self.install not in ("existing", "none"):
            message = f"{self.head!r} is the heads' PriorityClass, which must be above the workers': set another name"
            problems.append(Problem(("worker",), self.worker, message, "priority-name"))
        return problems


def priority_classes(settings: PriorityClassesSettings) -> list[Body]:
    if settings.install != "manifests":
        return []
    return [
        _priority_class(settings.head, HEAD, "Heads of RayClusters: a lost one takes the work of its workers with it."),
        _priority_class(settings.worker, WORKER, "Workers of RayClusters: after their heads, as pods of no class."),
    ]


def _priority_class(name: str, value: int, description: str) -> Body:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
    }
