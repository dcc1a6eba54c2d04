"""What a rule is that the API server enforces: a rule of `policies/`, said in CEL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .cel import ALWAYS
from .subjects import WITH_PODS, WITH_RAY_CLUSTERS, WITH_RAY_JOBS, Kind

Options = Mapping[str, Any]
"""What is set of a rule, by the names that its options have in `policies/`."""

Expression = str | Callable[[Options], str]
"""CEL, or what makes it of a rule's options."""


def _in_cel(expression: Expression, options: Options) -> str:
    return expression if isinstance(expression, str) else expression(options)


@dataclass(frozen=True)
class AdmissionRule:
    """A rule. Its texts and its options are those of the rule in `policies/` with the same id (texts.py)."""

    id: str

    kinds: tuple[Kind, ...]
    """What it is asked of."""

    expression: Expression
    """True where the rule is kept."""

    places: Expression | None = None
    """A text that says where it is not, such as names of containers."""

    def holds(self, options: Options) -> str:
        """In CEL, whether an object keeps the rule."""
        return _in_cel(self.expression, options)

    def where(self, options: Options) -> str | None:
        """In CEL, where an object breaks it."""
        return None if self.places is None else _in_cel(self.places, options)


def _each(subjects: str, name: str, keeps: str) -> str:
    """That each of the subjects keeps the rule."""
    return ALWAYS if keeps == ALWAYS else f"{subjects}.all({name}, {keeps})"


def of_pods(id_: str, keeps: Expression) -> AdmissionRule:
    """A rule about each `pod`."""
    return AdmissionRule(id_, WITH_PODS, lambda options: _each("variables.pods", "pod", _in_cel(keeps, options)))


def of_containers(id_: str, keeps: Expression) -> AdmissionRule:
    """A rule about each container `c` of each `pod`."""

    def holds(options: Options) -> str:
        return _each("variables.pods", "pod", _each("pod.containers", "c", _in_cel(keeps, options)))

    def where(options: Options) -> str:
        broken = f"pod.containers.filter(c, !({_in_cel(keeps, options)}))"
        names = f"{broken}.map(c, string(c.?name.orValue('autoscaler'))).join(', ')"
        return f"'container ' + variables.pods.map(pod, {names}).filter(names, names != '').join(', ')"

    return AdmissionRule(id_, WITH_PODS, holds, where)


def of_ray(id_: str, keeps: Expression, kinds: tuple[Kind, ...] = WITH_RAY_CLUSTERS) -> AdmissionRule:
    """A rule about the spec of a RayCluster, `ray`."""
    return AdmissionRule(id_, kinds, lambda options: _each("variables.ray", "ray", _in_cel(keeps, options)))


def of_jobs(id_: str, keeps: Expression) -> AdmissionRule:
    """A rule about the spec of a RayJob, `job`."""
    return AdmissionRule(id_, WITH_RAY_JOBS, lambda options: _each("variables.jobs", "job", _in_cel(keeps, options)))
