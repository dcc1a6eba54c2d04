"""Flags of `ray start`. KubeRay puts them into a command for bash, as they are."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from core.problems import Problem, Problems

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

_FLAG = r"[a-z][a-z0-9-]*"

_SHOWN = 60


def faults(params: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the flags of a group, whoever said them."""
    return [problem for flag, value in params.items() for problem in _faults_of(str(flag), value)]


def _faults_of(flag: str, value: Any) -> list[Problem]:
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


def _checked(params: dict[str, str]) -> dict[str, str]:
    if problems := faults(params):
        raise Problems(problems)
    return params


RayStartParams = Annotated[
    dict[Annotated[str, Field(pattern=f"^{_FLAG}$", max_length=63)], str], AfterValidator(_checked)
]
"""Flags of `ray start` without the leading hyphens. All values are text: `num-cpus: "4"`."""
