"""Fields of later releases of KubeRay. With the CRDs of an older one the API server drops such fields silently.

The schema here is that of 1.6; tests/differential/test_releases.py compares this table with the CRDs of both.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from core.problems import Path

from .context import OperatorContext
from .rules import Body, Found, problem

Steps: TypeAlias = tuple[str, ...]

EACH = "*"
"""Stands for any index."""

_OF_PODS: tuple[Steps, ...] = (
    ("spec", "workloadRef"),
    ("spec", "volumes", EACH, "projected", "sources", EACH, "podCertificate", "userAnnotations"),
)

_OF_CLUSTERS: tuple[Steps, ...] = (
    ("upgradeStrategy",),
    ("authOptions", "enableK8sTokenAuth"),
    ("authOptions", "secretName"),
    *(("headGroupSpec", "template", *steps) for steps in _OF_PODS),
    *(("workerGroupSpecs", EACH, "template", *steps) for steps in _OF_PODS),
)

SINCE: Mapping[str, Mapping[str, tuple[Steps, ...]]] = {
    "1.6": {
        "RayCluster": tuple(("spec", *steps) for steps in _OF_CLUSTERS),
        "RayJob": (
            *(("spec", "rayClusterSpec", *steps) for steps in _OF_CLUSTERS),
            ("spec", "preRunningDeadlineSeconds"),
            ("spec", "deletionStrategy", "deletionRules", EACH, "condition", "jobDeploymentStatus"),
            *(("spec", "submitterPodTemplate", *steps) for steps in _OF_PODS),
        ),
        "RayService": (
            *(("spec", "rayClusterConfig", *steps) for steps in _OF_CLUSTERS),
            ("spec", "managedBy"),
        ),
        "RayCronJob": ((),),
    }
}
"""New fields by release and kind (ray-operator/config/crd/bases at its tag and at the one before). An empty path is the
kind itself."""


def check(body: Body, operator: OperatorContext) -> Found:
    """Finds fields of a manifest that the CRDs of the operator do not have."""
    for release, kinds in SINCE.items():
        if operator.since(release):
            continue
        for steps in kinds.get(body["kind"], ()):
            for path, value in _at(body, steps):
                name, value = (path[-1], value) if path else (body["kind"], body["kind"])
                message = (
                    f"{name} came with KubeRay {release}, and operator.version is {operator.version}: remove it, or "
                    f"upgrade the operator to {release}"
                )
                yield problem("newer-field", path or ("kind",), value, message)


def _at(value: Any, steps: Steps, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The existing values at a path with wildcards, each with its path."""
    if not steps:
        yield path, value
    elif steps[0] == EACH:
        for index, item in enumerate(value):
            yield from _at(item, steps[1:], (*path, index))
    elif steps[0] in value:
        yield from _at(value[steps[0]], steps[1:], (*path, steps[0]))
