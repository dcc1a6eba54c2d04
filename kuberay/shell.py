"""What the shell of the pod that submits a RayJob does with its entrypoint (ray-operator/controllers/ray/common/job.go:
BuildJobSubmitCommand). Pure functions."""

import re

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
