"""The state of the running stack as the command has found it, which the engine tells the program that asks."""

from collections.abc import Mapping
from typing import Any

import pulumi

Outputs = Mapping[str, Any]


def last_outputs() -> Outputs:
    """The stack's outputs; empty where no update has ended yet."""
    return _asked("readStackOutputs", {"name": _stack()})


def last_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource, by URN, those of the stack itself among them. All of the state is read for it."""
    found = _asked("readStackResourceOutputs", {"stackName": _stack()})
    # The engine gives each one's type as well (pulumi 3.259, pkg/backend/backend.go, GetStackResourceOutputs).
    return {urn: each["outputs"] for urn, each in found.items()}


def _stack() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _asked(function: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    value = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", dict(arguments)).value or {}
    return value.get("outputs") or {}
