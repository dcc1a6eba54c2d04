"""CEL checks of rules: the kinds that they apply to, and the expression that is true without a violation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.types import Settings

from .expressions import ALWAYS
from .subjects import WITH_PODS, WITH_RAY_CLUSTERS, WITH_RAY_JOBS, Kind

Expression = str | Callable[[Any], str]
"""CEL, or a function from the options of the rule to CEL."""


def _in_cel(expression: Expression, options: Settings) -> str:
    return expression if isinstance(expression, str) else expression(options)


@dataclass(frozen=True)
class CelCheck:
    """A rule's check in CEL."""

    kinds: tuple[Kind, ...]
    """Kinds that it applies to."""

    expression: Expression
    """True if the object meets the rule."""

    places: Expression | None = None
    """A text with the places of violations, such as names of containers."""

    def holds(self, options: Settings) -> str:
        """CEL for whether an object meets the rule."""
        return _in_cel(self.expression, options)

    def where(self, options: Settings) -> str | None:
        """CEL for the places of violations in an object."""
        return None if self.places is None else _in_cel(self.places, options)


def _each(subjects: str, name: str, keeps: str) -> str:
    """CEL for whether each of the subjects meets the rule."""
    return ALWAYS if keeps == ALWAYS else f"{subjects}.all({name}, {keeps})"


def of_pods(keeps: Expression) -> CelCheck:
    """A rule about each `pod`."""
    return CelCheck(WITH_PODS, lambda options: _each("variables.pods", "pod", _in_cel(keeps, options)))


def of_containers(keeps: Expression) -> CelCheck:
    """A rule about each container `c` of each `pod`."""

    def holds(options: Settings) -> str:
        return _each("variables.pods", "pod", _each("pod.containers", "c", _in_cel(keeps, options)))

    def where(options: Settings) -> str:
        violating = f"pod.containers.filter(c, !({_in_cel(keeps, options)}))"
        names = f"{violating}.map(c, string(c.?name.orValue('autoscaler'))).join(', ')"
        return f"'container ' + variables.pods.map(pod, {names}).filter(names, names != '').join(', ')"

    return CelCheck(WITH_PODS, holds, where)


def of_ray(keeps: Expression, kinds: tuple[Kind, ...] = WITH_RAY_CLUSTERS) -> CelCheck:
    """A rule about the spec of a RayCluster, `ray`."""
    return CelCheck(kinds, lambda options: _each("variables.ray", "ray", _in_cel(keeps, options)))


def of_jobs(keeps: Expression) -> CelCheck:
    """A rule about the spec of a RayJob, `job`."""
    return CelCheck(WITH_RAY_JOBS, lambda options: _each("variables.jobs", "job", _in_cel(keeps, options)))
