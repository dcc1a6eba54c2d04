"""How a rule is said in CEL: what it is asked of, and what holds there where the rule is kept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.types import Settings

from .expressions import ALWAYS
from .subjects import WITH_PODS, WITH_RAY_CLUSTERS, WITH_RAY_JOBS, Kind

Expression = str | Callable[[Any], str]
"""CEL, or what makes it of a rule's options."""


def _in_cel(expression: Expression, options: Settings) -> str:
    return expression if isinstance(expression, str) else expression(options)


@dataclass(frozen=True)
class CelCheck:
    """A rule's check in CEL."""

    kinds: tuple[Kind, ...]
    """What it is asked of."""

    expression: Expression
    """True where the rule is kept."""

    places: Expression | None = None
    """A text that says where it is not, such as names of containers."""

    def holds(self, options: Settings) -> str:
        """In CEL, whether an object keeps the rule."""
        return _in_cel(self.expression, options)

    def where(self, options: Settings) -> str | None:
        """In CEL, where an object breaks it."""
        return None if self.places is None else _in_cel(self.places, options)


def _each(subjects: str, name: str, keeps: str) -> str:
    """That each of the subjects keeps the rule."""
    return ALWAYS if keeps == ALWAYS else f"{subjects}.all({name}, {keeps})"


def of_pods(keeps: Expression) -> CelCheck:
    """A rule about each `pod`."""
    return CelCheck(WITH_PODS, lambda options: _each("variables.pods", "pod", _in_cel(keeps, options)))


def of_containers(keeps: Expression) -> CelCheck:
    """A rule about each container `c` of each `pod`."""

    def holds(options: Settings) -> str:
        return _each("variables.pods", "pod", _each("pod.containers", "c", _in_cel(keeps, options)))

    def where(options: Settings) -> str:
        broken = f"pod.containers.filter(c, !({_in_cel(keeps, options)}))"
        names = f"{broken}.map(c, string(c.?name.orValue('autoscaler'))).join(', ')"
        return f"'container ' + variables.pods.map(pod, {names}).filter(names, names != '').join(', ')"

    return CelCheck(WITH_PODS, holds, where)


def of_ray(keeps: Expression, kinds: tuple[Kind, ...] = WITH_RAY_CLUSTERS) -> CelCheck:
    """A rule about the spec of a RayCluster, `ray`."""
    return CelCheck(kinds, lambda options: _each("variables.ray", "ray", _in_cel(keeps, options)))


def of_jobs(keeps: Expression) -> CelCheck:
    """A rule about the spec of a RayJob, `job`."""
    return CelCheck(WITH_RAY_JOBS, lambda options: _each("variables.jobs", "job", _in_cel(keeps, options)))
