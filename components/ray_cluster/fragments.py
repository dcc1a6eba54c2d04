"""Parts of a RayCluster in Kubernetes' and KubeRay's own words: pod templates and overrides.

What they may hold is the CRD's matter; here is refused what no CRD refuses: secrets in plain text, and flags of
`ray start` that a shell would take for something else.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from core.problems import Path, Problem, Problems
from core.secrets import is_secret, plain_secret

from . import ray_start_params

_CREDENTIALS = {"redisPassword"}
"""KubeRay's fields that take a secret as `value` or as `valueFrom` (GcsFaultToleranceOptions)."""


def _checked(fragment: dict[str, Any]) -> dict[str, Any]:
    if problems := list(_faults((), fragment)):
        raise Problems(problems)
    return fragment


def _faults(path: Path, value: Any) -> Iterator[Problem]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults((*path, index), item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            below = (*path, str(key))
            if key == "rayStartParams" and isinstance(item, Mapping):
                yield from (problem.below(below) for problem in ray_start_params.faults(item))
            elif key == "env" and isinstance(item, list):
                yield from _secrets(below, item)
            elif key in _CREDENTIALS and isinstance(item, Mapping) and item.get("value"):
                yield plain_secret(str(key)).below((*below, "value"))
            else:
                yield from _faults(below, item)


def _secrets(path: Path, env: list[Any]) -> Iterator[Problem]:
    for index, variable in enumerate(env):
        name, value = (variable.get("name"), variable.get("value")) if isinstance(variable, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(value, str) and is_secret(name, value):
            yield plain_secret(name).below((*path, index, "value"))


PodTemplate = Annotated[dict[str, Any], AfterValidator(_checked)]
"""A pod template, merged over the derived one as Kubernetes' strategic merge does. Ray's container is the first; it is
named `ray-head` or `ray-worker`."""

Overrides = Annotated[dict[str, Any], AfterValidator(_checked)]
"""Part of a RayCluster's spec, merged as Kubernetes' strategic merge does."""
