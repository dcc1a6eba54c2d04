"""Rules in CEL, for the API server (kubernetes.io, Common Expression Language in Kubernetes).

Each rule's expression is beside its Python check (policies/rules/). The subjects are those of policies/walk.py: a rule
in Python and in CEL sees the same pods and containers. Only CEL sees ephemeral containers, which only running pods
have.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from core.pods import POD_TEMPLATES, RAY, RAY_CLUSTERS, RAY_JOBS, SUBMITTERS, VOLCANO_JOB
from core.problems import Path
from core.types import Settings

ALWAYS = "true"
"""An expression that is always true."""


def text(value: str) -> str:
    """A string literal. CEL has the escapes of JSON."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[str]) -> str:
    """A list of string literals."""
    return f"[{', '.join(map(text, values))}]"


def under(of: str, path: Path) -> str:
    """The optional value at a path below."""
    return "".join([of, *(f".?{step}" for step in path)])


VARIABLE = re.compile(r"\bvariables\.(\w+)")


def about(expression: str, body: str, variable: str) -> str:
    """The same expression for another object. `variable`: the other one for a variable; `\\1` is its name."""
    return VARIABLE.sub(variable, re.sub(r"\bobject\b", body, expression))


def before(expression: str) -> str:
    """The same expression for the object before an update."""
    return about(expression, "oldObject", r"variables.\1Before")


def quantity(of: str) -> str:
    """A quantity of Kubernetes. Custom resources may have it as a number."""
    return f"quantity(string({of}))"


Kind = tuple[str, str]
"""API group and kind."""

WITH_RAY_CLUSTERS: tuple[Kind, ...] = tuple((RAY, kind) for kind in RAY_CLUSTERS)
WITH_RAY_JOBS: tuple[Kind, ...] = tuple((RAY, kind) for kind in RAY_JOBS)
WITH_PODS: tuple[Kind, ...] = (*POD_TEMPLATES, VOLCANO_JOB, *WITH_RAY_CLUSTERS)

_PLURALS = {"Ingress": "ingresses"}
"""Plurals of kinds that do not end in a simple s."""

_SUBRESOURCES = {"Pod": ("pods/ephemeralcontainers",)}
"""Subresources that change fields which rules read: `kubectl debug` adds its container with this one."""


def resource_rules(kinds: Iterable[Kind]) -> list[dict[str, list[str]]]:
    """`resourceRules` of a policy. They may name kinds that the cluster does not have.

    They match any version. With a named version the API server type-checks an expression against each kind of it, and
    warns of every field that only some kinds have.
    """
    groups: dict[str, list[str]] = {}
    for group, kind in kinds:
        resources = (_PLURALS.get(kind, f"{kind.lower()}s"), *_SUBRESOURCES.get(kind, ()))
        groups.setdefault(group, []).extend(resources)
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources}
        for group, resources in groups.items()
    ]


_KIND = "request.kind.group + '/' + request.kind.kind"


def by_kind(found: dict[Kind, str]) -> str:
    """A list that depends on the kind of the object; empty for other kinds."""
    entries = ", ".join(f"{text('/'.join(kind))}: {value}" for kind, value in found.items())
    return f"{{{entries}}}[?{_KIND}].orValue([])"


def _pod(spec: str, further: str = "[]") -> str:
    """A pod: its spec, and all its containers with additional ones."""
    fields = (f"{spec}.?{each}.orValue([])" for each in ("initContainers", "containers", "ephemeralContainers"))
    # The values of a map literal must have one type.
    return f"{{'spec': {spec}, 'containers': dyn({' + '.join([*fields, further])})}}"


_RAY = by_kind({(RAY, kind): f"[?{under('object', path)}]" for kind, path in RAY_CLUSTERS.items()})
_JOBS = by_kind({(RAY, kind): f"[?{under('object', path)}]" for kind, path in RAY_JOBS.items()})

_TEMPLATES = by_kind(
    {
        **{kind: f"[?{under('object', (*path, 'spec'))}]" for kind, path in POD_TEMPLATES.items()},
        **{(RAY, kind): f"[?{under('object', (*path, 'spec'))}]" for kind, path in SUBMITTERS.items()},
        VOLCANO_JOB: "object.?spec.?tasks.orValue([]).map(task, task.?template.?spec.orValue({}))",
    }
)

SCALES = "ray.?enableInTreeAutoscaling.orValue(false) == true"
"""Whether Ray's autoscaler runs beside the head."""

HEAD = "ray.?headGroupSpec"
HEAD_CONTAINER = f"{HEAD}.?template.?spec.?containers[?0]"
"""Ray's container in the head."""

GROUPS = "ray.?workerGroupSpecs.orValue([])"

OWN_CONTAINERS = "(pod.spec.?initContainers.orValue([]) + pod.spec.?containers.orValue([]))"
"""Containers of a `pod`, without that of the autoscaler, for which KubeRay sets missing fields, and without ephemeral
containers, which can have no resources."""

_HEAD = f"{HEAD}.?template.?spec.orValue({{}})"
_WORKERS = f"{GROUPS}.map(group, group.?template.?spec.orValue({{}}))"
_AUTOSCALER = f"({SCALES} ? [ray.?autoscalerOptions.orValue({{}})] : [])"

_RAY_PODS = f"[{_HEAD}].map(head, {_pod('head', _AUTOSCALER)}) + {_WORKERS}.map(worker, {_pod('worker')})"

_VARIABLES = {
    "ray": _RAY,
    "jobs": _JOBS,
    "templates": _TEMPLATES,
    # An object has at most one spec of a RayCluster: this is its list of pods, or an empty list.
    "rayPods": f"(variables.ray.map(ray, {_RAY_PODS}) + [[]])[0]",
    "pods": f"variables.templates.map(spec, {_pod('spec')}) + variables.rayPods",
}
"""Variables of expressions. A variable uses only those before it:

ray: the spec of the RayCluster, a list of one or none.
jobs: the spec of the RayJob, a list of one or none.
templates: the specs of pods that are not Ray's own.
rayPods: head and workers, each with `spec` and `containers`. The container of the autoscaler is `autoscalerOptions`,
    and the only one without a name.
pods: all pods, in the same form.
"""


def variables(expressions: Iterable[str]) -> list[dict[str, str]]:
    """The variables that expressions need, in the order in which a policy must define them."""
    needed = set(_needed(expressions))
    both = {**_VARIABLES, **{f"{name}Before": before(expression) for name, expression in _VARIABLES.items()}}
    return [{"name": name, "expression": expression} for name, expression in both.items() if name in needed]


def _needed(expressions: Iterable[str]) -> Iterator[str]:
    for expression in expressions:
        for name in VARIABLE.findall(expression):
            yield name
            of = _VARIABLES[name.removesuffix("Before")]
            yield from _needed([before(of) if name.endswith("Before") else of])


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
