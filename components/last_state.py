"""The state of the running stack before this command, as the engine reports it."""

from collections.abc import Mapping
from typing import Any

import pulumi

Outputs = Mapping[str, Any]


def last_outputs() -> Outputs:
    """The stack's outputs; empty before the end of the first update."""
    return _asked("readStackOutputs", {"name": _stack()})


def last_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource and of the stack itself, by URN. Reads the whole state."""
    found = _asked("readStackResourceOutputs", {"stackName": _stack()})
    # The engine also returns the type of each resource (pulumi 3.259, pkg/backend/backend.go, GetStackResourceOutputs).
    return {urn: each["outputs"] for urn, each in found.items()}


def _stack() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _asked(function: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    value = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", dict(arguments)).value or {}
    return value.get("outputs") or {}
