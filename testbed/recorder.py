"""Runs a program without an engine and records the resources that it registers, in their order."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockMonitor


@dataclass(frozen=True)
class Registered:
    """A resource in a request to the engine."""

    name: str
    type: str
    inputs: dict[str, Any]
    parent: str
    """Name of the parent; that of the stack is empty."""
    dependencies: frozenset[str]
    """Names of all resources that are created before it, by `depends_on` and by outputs in its inputs; for a component
    those of all its children, as in the engine."""
    provider: str
    """Name of the provider; empty for the default one."""
    protect: bool
    import_id: str
    """Id of an existing object that is imported; empty if the object is created."""
    retained: bool
    """Whether its object stays when the resource is removed."""
    replaced_on: tuple[str, ...]
    """Properties whose change replaces it."""
    ignored: tuple[str, ...]
    """Properties whose change is ignored."""


class Recorder(MockMonitor):
    """Replaces the engine. Every resource exists at once; its outputs are its inputs and the additions of `live`."""

    def __init__(
        self,
        live: dict[str, dict[str, Any]] | None = None,
        last: dict[str, Any] | None = None,
        rows: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """`live`: additional outputs by a resource's name. `last`: outputs of the stack after the last update; `rows`:
        of its resources, by URN."""
        resources = {
            urn: {"type": urn.split("::")[2].rpartition("$")[2], "outputs": row} for urn, row in (rows or {}).items()
        }
        super().__init__(_Mocks(live or {}, {"readStackOutputs": last or {}, "readStackResourceOutputs": resources}))
        self.registered: dict[str, Registered] = {}
        self.outputs: dict[str, dict[str, Any]] = {}
        """The registered outputs of components and the stack, by name."""
        self.sizes: list[int] = []
        """Bytes of the request for each resource."""
        self.stack_traces: list[str] = []
        """Names of the resources whose request has a stack trace."""
        self._lock = threading.Lock()
        """For the records: the SDK registers resources from its own threads."""
        self._below: dict[str, set[str]] = {}
        """URNs of each component's children, by the component's URN."""

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (the protocol's name)
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # the SDK's mocks are untyped
        with self._lock:
            self._note(request, response.urn)
        return response

    def _note(self, request: Any, urn: str) -> None:
        if not request.custom:
            self._below[urn] = set()
        for component, below in self._below.items():
            if request.parent == component or request.parent in below:
                below.add(urn)
        if request.type != "pulumi:pulumi:Stack":
            self.sizes.append(request.ByteSize())
            if request.stackTrace.frames:
                self.stack_traces.append(request.name)
            self.registered[request.name] = Registered(
                name=request.name,
                type=request.type,
                inputs=rpc.deserialize_properties(request.object),
                parent=_name(request.parent),
                dependencies=frozenset(map(_name, self._whole(request.dependencies))),
                provider=_name(request.provider.rpartition("::")[0]),
                protect=request.protect,
                import_id=request.importId,
                retained=request.retainOnDelete,
                replaced_on=tuple(request.replaceOnChanges),
                ignored=tuple(request.ignoreChanges),
            )

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 (the protocol's name)
        self.outputs[_name(request.urn)] = rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]  # as above

    def _whole(self, urns: Iterable[str]) -> Iterator[str]:
        """The resources themselves, if a component stands for all its children."""
        for urn in urns:
            yield from (each for each in self._below.get(urn, {urn}) if each not in self._below)

    def kinds(self) -> dict[str, list[str]]:
        """Names of the registered resources, sorted, by type. Independent resources have no fixed order."""
        kinds: dict[str, list[str]] = {}
        for each in self.registered.values():
            kinds.setdefault(each.type, []).append(each.name)
        return {kind: sorted(names) for kind, names in kinds.items()}

    def made_before(self, first: str, second: str) -> bool:
        """Whether `second` waits for `first`, directly or through others."""
        waiting, seen = [second], set[str]()
        while waiting:
            each = waiting.pop()
            if each in self.registered and each not in seen:
                seen.add(each)
                waiting += self.registered[each].dependencies
        return first in seen - {second}


class _Mocks(pulumi.runtime.Mocks):
    def __init__(self, live: dict[str, dict[str, Any]], state: dict[str, dict[str, Any]]) -> None:
        self._live = live
        self._state = state

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        return f"{args.name}-id", {**args.inputs, **self._live.get(args.name, {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        function = args.token.removeprefix("pulumi:pulumi:")
        assert function in self._state, f"the program called {args.token}"
        return {"outputs": self._state[function]}, []


def _name(urn: str) -> str:
    return urn.rpartition("::")[2] if "pulumi:pulumi:Stack" not in urn.rpartition("::")[0].rpartition("$")[2] else ""


def with_event_loop() -> None:
    """The SDK takes the thread's event loop, and `asyncio.run` of an earlier test leaves none."""
    try:
        asyncio.get_event_loop()
    except RuntimeError:
        asyncio.set_event_loop(asyncio.new_event_loop())


def record(
    program: Callable[[], Any],
    live: dict[str, dict[str, Any]] | None = None,
    preview: bool = True,
    last: dict[str, Any] | None = None,
    rows: dict[str, dict[str, Any]] | None = None,
    stack: str = "test",
) -> Recorder:
    """The resources that a program registers; in a preview, unless an update is requested."""
    # As the language host: a program that fails leaves futures that nobody awaits, and raises the error itself.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    recorder = Recorder(live, last, rows)
    pulumi.runtime.set_mocks(recorder.mocks, project="ray-platform", stack=stack, preview=preview, monitor=recorder)
    run = pulumi.runtime.test(program)  # type: ignore[no-untyped-call]  # the SDK's decorator is untyped
    run()
    return recorder
