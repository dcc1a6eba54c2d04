"""Fragments in the syntax of Kubernetes and KubeRay: pod templates, overrides and flags of `ray start`.

The CRD's schema validates them. Refused here is what no CRD refuses: secrets in plain text, and flags that a shell
would interpret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from core.problems import Path, Problem, Problems, raise_problems
from core.secrets import is_secret, plain_secret

_CREDENTIALS = {"redisPassword"}
"""KubeRay's fields that take a secret as `value` or as `valueFrom` (GcsFaultToleranceOptions)."""


def _checked(fragment: dict[str, Any]) -> dict[str, Any]:
    raise_problems(_faults((), fragment))
    return fragment


def _faults(path: Path, value: Any) -> Iterator[Problem]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults((*path, index), item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            below = (*path, str(key))
            if key == "rayStartParams" and isinstance(item, Mapping):
                yield from (problem.below(below) for problem in flag_faults(item))
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


_ONE_WORD = re.compile(
    r"""(?:
      [^\s"'`$\\;&|<>(){}*?\[\]~\x00-\x1f\x7f]       # plain
    | \\[^\s\x00-\x1f\x7f]                           # escaped
    | \$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})            # a variable
    | '[^'\x00-\x1f\x7f]*'                           # in single quotes all is plain
    | "(?:[^"`$\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f]|\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}))*"
    )*""",
    re.VERBOSE,
)
"""One word of bash that runs nothing (KubeRay: ray-operator/controllers/ray/common/pod.go, convertParamMap)."""

_FLAG = "[A-Za-z][A-Za-z0-9_-]*"

_SHOWN = 60


def flag_faults(params: Mapping[str, Any]) -> list[Problem]:
    """The problems of the flags of a group, wherever they are set."""
    return [problem for flag, value in params.items() for problem in _faults_of_flag(str(flag), value)]


def _faults_of_flag(flag: str, value: Any) -> list[Problem]:
    if flag == "redis-password":
        advice = "give it as gcsFaultToleranceOptions.redisPassword.valueFrom in overrides"
        return [Problem((flag,), None, f"a command line keeps no secret: {advice}", "redis-password")]
    if not re.fullmatch(_FLAG, flag):
        message = f"{flag!r} is no flag of ray start: write one without its leading hyphens, as num-cpus"
        return [Problem((flag,), value, message, "ray-start-flag")]
    if not isinstance(value, str) or _ONE_WORD.fullmatch(value):
        return []
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    message = (
        f"{shown!r} is not one word to the shell that starts Ray, or would run a command there: put single quotes "
        """inside the text, as in "'{\\"spot\\": 1}'"; outside of them, variables stand as $NAME"""
    )
    return [Problem((flag,), value, message, "shell-word")]


def _checked_flags(params: dict[str, str]) -> dict[str, str]:
    if problems := flag_faults(params):
        raise Problems(problems)
    return params


RayStartParams = Annotated[
    dict[Annotated[str, Field(pattern=f"^{_FLAG}$", max_length=63)], str], AfterValidator(_checked_flags)
]
"""Flags of `ray start` without the leading hyphens. All values are text: `num-cpus: "4"`."""
