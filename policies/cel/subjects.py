"""What a rule is about, in CEL: the kinds of objects that it is asked of, and what it finds in them.

The same as the walk finds (policies/walk.py): a rule that is said twice, in Python and in CEL, sees the same pods and
containers both times. Debugging containers, which only running pods have, are seen here alone.
"""

import re
from collections.abc import Iterable, Iterator

from core.pod_templates import POD_TEMPLATES, RAY, RAY_CLUSTERS, RAY_JOBS, SUBMITTERS, VOLCANO_JOB

from .expressions import before, text, under

Kind = tuple[str, str]
"""API group and kind."""

WITH_RAY_CLUSTERS: tuple[Kind, ...] = tuple((RAY, kind) for kind in RAY_CLUSTERS)
WITH_RAY_JOBS: tuple[Kind, ...] = tuple((RAY, kind) for kind in RAY_JOBS)
WITH_PODS: tuple[Kind, ...] = (*POD_TEMPLATES, VOLCANO_JOB, *WITH_RAY_CLUSTERS)

_PLURALS = {"Ingress": "ingresses"}
"""Of kinds whose plural is more than an s."""

_SUBRESOURCES = {"Pod": ("pods/ephemeralcontainers",)}
"""Of a kind, through which parts of it come that a rule looks at: `kubectl debug` adds its container so."""


def resource_rules(kinds: Iterable[Kind]) -> list[dict[str, list[str]]]:
    """`resourceRules` of a policy. A kind that the cluster does not have is no error there.

    Any version: the API server checks the types of an expression against each kind of a version that is named, and
    would warn of every field that only some of them have.
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


def _by_kind(found: dict[Kind, str]) -> str:
    """A list that is another for each kind, and empty for kinds without one."""
    entries = ", ".join(f"{text('/'.join(kind))}: {value}" for kind, value in found.items())
    return f"{{{entries}}}[?{_KIND}].orValue([])"


def _pod(spec: str, further: str = "[]") -> str:
    """A pod: its spec, and all its containers with some further ones."""
    fields = (f"{spec}.?{each}.orValue([])" for each in ("initContainers", "containers", "ephemeralContainers"))
    # The values of a literal have to be of one type.
    return f"{{'spec': {spec}, 'containers': dyn({' + '.join([*fields, further])})}}"


_RAY = _by_kind({(RAY, kind): f"[?{under('object', path)}]" for kind, path in RAY_CLUSTERS.items()})
_JOBS = _by_kind({(RAY, kind): f"[?{under('object', path)}]" for kind, path in RAY_JOBS.items()})

_TEMPLATES = _by_kind(
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
"""Of a `pod`, without the autoscaler's, for which KubeRay says what is missing, and debugging ones, which may ask for
nothing."""

_HEAD = f"{HEAD}.?template.?spec.orValue({{}})"
_WORKERS = f"{GROUPS}.map(group, group.?template.?spec.orValue({{}}))"
_AUTOSCALER = f"({SCALES} ? [ray.?autoscalerOptions.orValue({{}})] : [])"

_RAY_PODS = f"[{_HEAD}].map(head, {_pod('head', _AUTOSCALER)}) + {_WORKERS}.map(worker, {_pod('worker')})"

_VARIABLES = {
    "ray": _RAY,
    "jobs": _JOBS,
    "templates": _TEMPLATES,
    # At most one spec of a RayCluster is in an object: the first of its lists of pods, or of none.
    "rayPods": f"(variables.ray.map(ray, {_RAY_PODS}) + [[]])[0]",
    "pods": f"variables.templates.map(spec, {_pod('spec')}) + variables.rayPods",
}
"""What expressions find in an object, in the order in which one needs another:

ray: the spec of the RayCluster, a list of one or none.
jobs: the spec of the RayJob, a list of one or none.
templates: the specs of pods that are not Ray's own.
rayPods: head and workers, each with `spec` and `containers`. The autoscaler's container is what `autoscalerOptions`
    says, and the only one without a name.
pods: all pods, in the same form.
"""


def variables(expressions: Iterable[str]) -> list[dict[str, str]]:
    """Those that expressions need, in the order in which a policy has to say them."""
    needed = set(_needed(expressions))
    both = {**_VARIABLES, **{f"{name}Before": before(expression) for name, expression in _VARIABLES.items()}}
    return [{"name": name, "expression": expression} for name, expression in both.items() if name in needed]


def _needed(expressions: Iterable[str]) -> Iterator[str]:
    for expression in expressions:
        for name in re.findall(r"\bvariables\.(\w+)", expression):
            yield name
            of = _VARIABLES[name.removesuffix("Before")]
            yield from _needed([before(of) if name.endswith("Before") else of])
