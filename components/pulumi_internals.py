"""What this program uses of Pulumi's Python SDK beside its documented interface; written for release 3.272.

Each has a test in tests/unit/test_pulumi_internals.py, which fails if a release of the SDK moves or changes it. How a
program ends that the engine cancels is in stacks/program/cancelled.py, because commands without the SDK use it, too.
"""

import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pulumi
from pulumi.output import UNKNOWN
from pulumi.resource import DependencyResource
from pulumi.runtime.sync_await import _sync_await


class NotKnownError(Exception):
    """A resource has not been created yet, so that its output is not known."""


def resolved(value: pulumi.Input[Any]) -> Any:
    """The value of an output, for which the program waits here. Other resources are created meanwhile.

    The SDK waits in the same way for functions of providers (runtime/invoke.py, invoke). Raises NotKnownError, as in a
    preview that creates the output's resource, and the error of that resource.
    """
    output = pulumi.Output.from_input(value)

    async def both() -> tuple[bool, Any]:
        return await output.is_known(), await output.future()

    known, found = _sync_await(both())
    if not known:
        raise NotKnownError
    return found


def unknown() -> pulumi.Output[Any]:
    """An output that is not known in this preview."""
    return pulumi.Output.from_input(UNKNOWN)


def children(resource: pulumi.Resource) -> Sequence[pulumi.Resource]:
    """The resources whose parent it is."""
    return list(resource._childResources)


def as_dependency(urn: str) -> pulumi.Resource:
    """A registered resource for `depends_on`, which becomes this URN alone."""
    return DependencyResource(urn)


@contextmanager
def restored_pickler() -> Iterator[None]:
    """Removes what a dynamic resource that is constructed meanwhile leaves in the pickler.

    For each of them the SDK wraps a method of the pickler and does not remove the wrapper (dynamic/dynamic.py,
    serialize_provider). After some nine hundred resources Python's recursion limit is reached.
    """
    pickler: Any = pickle._Pickler
    original = pickler._batch_setitems
    try:
        yield
    finally:
        pickler._batch_setitems = original


def without_traceback() -> None:
    """From now on an error has its message alone. The plugin of dynamic resources reports an exception as Python prints
    it, and a traceback hides the message."""
    sys.tracebacklimit = 0


@contextmanager
def without_stack_traces() -> Iterator[None]:
    """Resources registered meanwhile have no stack trace in the state.

    The SDK sends the Python stack of each registration (runtime/resource.py, _get_stack_trace), and the engine stores
    it in the state: 1.4 kB per resource. Here it would be the same few lines of a component for all resources of a
    kind; the stack file has what distinguishes them. If the SDK can see only one frame, its own, it sends none.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


def running_config() -> tuple[Mapping[str, str], frozenset[str]]:
    """The configuration of the running stack with all its keys, and the keys of its secrets.

    `pulumi.Config` only returns keys that are asked for by name.
    """
    return pulumi.runtime.get_config_env(), frozenset(pulumi.runtime.get_config_secret_keys_env())


def select_mode() -> Any:
    """The mode in which the constructor of a class of `automation.Stack` selects an existing stack. `Stack.select`
    always makes a `Stack`."""
    # Only commands use it; its import takes time.
    from pulumi.automation._stack import StackInitMode

    return StackInitMode.SELECT
