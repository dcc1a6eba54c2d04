"""Runs a program with no engine behind it and remembers what it registered, in the order in which it did."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockMonitor


@dataclass(frozen=True)
class Registered:
    """A resource as the engine would have been asked for it."""

    name: str
    type: str
    inputs: dict[str, Any]
    parent: str
    """Name of the parent; that of the stack is empty."""
    dependencies: frozenset[str]
    """Names of all resources that are made before it, by `depends_on` and by outputs in its inputs."""
    provider: str
    """Name of the provider; empty for the default one."""
    protect: bool
    import_id: str
    """Id of an object that is there and is taken in; empty where it is made."""


class Recorder(MockMonitor):
    """Stands for the engine. Every resource is there at once, with its inputs for outputs and what `live` adds."""

    def __init__(self, live: dict[str, dict[str, Any]] | None = None) -> None:
        """`live`: further outputs by a resource's name."""
        super().__init__(_Mocks(live or {}))
        self.registered: dict[str, Registered] = {}
        self.outputs: dict[str, dict[str, Any]] = {}
        """What components and the stack registered as outputs, by name."""

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (the protocol's name)
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # the SDK's mocks are untyped
        if request.type != "pulumi:pulumi:Stack":
            self.registered[request.name] = Registered(
                name=request.name,
                type=request.type,
                inputs=rpc.deserialize_properties(request.object),
                parent=_name(request.parent),
                dependencies=frozenset(map(_name, request.dependencies)),
                provider=_name(request.provider.rpartition("::")[0]),
                protect=request.protect,
                import_id=request.importId,
            )
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 (the protocol's name)
        self.outputs[_name(request.urn)] = rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]  # as above

    def kinds(self) -> dict[str, list[str]]:
        """Names of what was registered, sorted, by type. Who does not depend on another comes in no certain order."""
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
    def __init__(self, live: dict[str, dict[str, Any]]) -> None:
        self._live = live

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        return f"{args.name}-id", {**args.inputs, **self._live.get(args.name, {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], None]:
        raise AssertionError(f"the program called {args.token}")


def _name(urn: str) -> str:
    return urn.rpartition("::")[2] if "pulumi:pulumi:Stack" not in urn.rpartition("::")[0].rpartition("$")[2] else ""


def record(program: Callable[[], Any], live: dict[str, dict[str, Any]] | None = None, preview: bool = True) -> Recorder:
    """What a program registers; in a preview, unless it is said that the update is meant."""
    recorder = Recorder(live)
    pulumi.runtime.set_mocks(recorder.mocks, project="ray-platform", stack="test", preview=preview, monitor=recorder)
    run = pulumi.runtime.test(program)  # type: ignore[no-untyped-call]  # the SDK's decorator is untyped
    run()
    return recorder
