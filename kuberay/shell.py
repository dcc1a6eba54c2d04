"""What the shell of the pod that submits a RayJob does with its entrypoint (ray-operator/controllers/ray/common/job.go:
BuildJobSubmitCommand). Pure functions."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.problems import Path, Problem

BY_SHELL = ("K8sJobMode", "SidecarMode")
"""Modes in which a shell runs `ray job submit` with the job's settings as text."""

EXPANDED = "$`"
"""Characters that a shell also expands within double quotes."""

_PIECE = re.compile(r"""'[^']*'|"(?P<double>(?:[^"\\]|\\.)*)"|\\.|(?<!\S)(?P<comment>\#)|(?P<plain>.)""", re.DOTALL)

_OPERATORS = "\n;&|<>()'\"\\" + EXPANDED
"""Characters outside of quotes that end or change a command. A quote here has no end, and a backslash is the last
character."""


_IN_BRACES = r"[^{},\s]|\{[^{}\s]*\}"

_BRACES = re.compile(
    rf"\{{({_IN_BRACES})*,(,|{_IN_BRACES})*\}}|\{{([+-]?\d+\.\.[+-]?\d+|[A-Za-z]\.\.[A-Za-z])(\.\.[+-]?\d+)?\}}"
)
"""Braces that bash expands to several words: `{a,b}`, `{1..3}` (bash(1), Brace Expansion)."""


def interpreted(command: str) -> str | None:
    """The first character of a command that a shell interprets, other than quotes of words; None if there is none.

    Patterns of files are not interpreted: the shell leaves those without a file as they are.
    """
    command = command.strip()  # as KubeRay does
    for piece in _PIECE.finditer(command):
        text = piece["plain"] or ""
        if piece["double"]:
            text = re.sub(r"\\.", "", piece["double"], flags=re.DOTALL)
            found = next((each for each in text if each in EXPANDED), None)
        else:
            found = piece["comment"] or (text if text and text in _OPERATORS else None)
        if found:
            return found
    unquoted = _PIECE.sub(lambda piece: piece["plain"] or "_", command)
    return "{" if _BRACES.search(unquoted) else None


def problems_of_shell(mode: str, entrypoint: str, parts: Mapping[str, Any]) -> Iterator[Problem]:
    """What the shell would interpret of a job, or expand, so that Ray would not get it. `parts`: others that it gets
    within double quotes, by their keys. Paths begin with `entrypoint` and these keys."""
    if mode not in BY_SHELL:
        return
    if found := interpreted(entrypoint):
        message = (
            f"the shell that submits the job would interpret {found!r}, and the cluster would not get it: put it into "
            "single quotes, as in bash -c 'a && b', or set submissionMode to HTTPMode"
        )
        yield Problem(("entrypoint",), entrypoint, message, "job-entrypoint-shell")
    for key, value in parts.items():
        for at, text in _texts((key,), value):
            if found := next((each for each in text if each in EXPANDED), None):
                message = (
                    f"the shell that submits the job would expand {found!r} in {text!r}: remove it, or set "
                    "submissionMode to HTTPMode"
                )
                yield Problem(at, text, message, "job-entrypoint-shell")


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts((*path, str(key)), str(key))
            yield from _texts((*path, str(key)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
