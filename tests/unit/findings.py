"""What is wrong with the values of a stack file."""

from collections.abc import Mapping
from typing import Any

from core.problems import Finding, StackFileError
from stacks.load import parse


def findings(values: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Nothing, if they are accepted."""
    try:
        parse(values)
    except StackFileError as error:
        return error.findings
    return ()
