"""Each part of Pulumi's SDK that is not documented, as the program uses it: a release that moves one fails here."""

import pickle
from collections.abc import Callable
from typing import Any, cast

import pulumi
import pulumi.dynamic
import pytest
from pulumi import automation

from components import pulumi_internals
from components.pulumi_internals import NotKnownError, resolved
from testbed.recorder import record


class _Thing(pulumi.ComponentResource):
    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("test:index:Thing", name, None, opts)


class _Dynamic(pulumi.dynamic.Resource, module="test", name="Dynamic"):
    """A dynamic resource as the SDK has it."""


def found(program: Callable[[], Any], preview: bool = True) -> Any:
    """What a program returns while it runs."""
    results = []
    record(lambda: results.append(program()), preview=preview)
    return results[0]


@pytest.mark.parametrize("value", ["text", None])
def test_the_program_waits_for_the_output_of_a_resource_and_has_a_value_that_is_known(value: str | None) -> None:
    assert found(lambda: resolved(_Thing("one").urn)).endswith("test:index:Thing::one")
    assert found(lambda: (resolved(value), resolved(pulumi.Output.secret(value)))) == (value, value)


def test_an_output_that_is_not_known() -> None:
    for made in (pulumi_internals.unknown, lambda: pulumi_internals.unknown().apply(str)):
        with pytest.raises(NotKnownError):
            record(lambda made=made: resolved(made()))  # type: ignore[misc]


def test_the_error_of_an_output_is_that_of_the_program() -> None:
    def fail(_: Any) -> str:
        raise pulumi.RunError("no such cluster")

    with pytest.raises(pulumi.RunError, match="no such cluster"):
        record(lambda: resolved(pulumi.Output.from_input("").apply(fail)))


def test_children_are_those_with_the_parent() -> None:
    def program() -> list[str]:
        parent = _Thing("parent")
        below = [_Thing(name, pulumi.ResourceOptions(parent=parent)) for name in ("one", "two")]
        assert set(pulumi_internals.children(parent)) == set(below)
        return [str(resolved(each.urn)) for each in below]

    assert len(found(program)) == 2


def test_a_dependency_is_the_resource_of_its_urn() -> None:
    def program() -> None:
        first = pulumi.CustomResource("test:index:One", "first", {})
        depends = pulumi.ResourceOptions(depends_on=[pulumi_internals.as_dependency(str(resolved(first.urn)))])
        _Thing("after", depends)

    assert record(program).registered["after"].dependencies == {"first"}


def test_the_pickler_is_as_before_a_dynamic_resource() -> None:
    pickler = cast("Any", pickle._Pickler)
    before = pickler._batch_setitems

    def program() -> None:
        with pulumi_internals.restored_pickler():
            _Dynamic(pulumi.dynamic.ResourceProvider(), "one", {})
            assert pickler._batch_setitems is not before, "the SDK leaves nothing: restored_pickler is not needed"

    record(program)
    assert pickler._batch_setitems is before


def test_resources_have_no_stack_trace() -> None:
    def program() -> None:
        _Thing("with")
        with pulumi_internals.without_stack_traces():
            _Thing("without")

    assert record(program).stack_traces == ["with"]


def test_the_configuration_has_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", '{"ray-platform:tenants": "[]", "other:key": "hidden"}')
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", '["other:key"]')
    assert pulumi_internals.running_config() == (
        {"ray-platform:tenants": "[]", "other:key": "hidden"},
        frozenset({"other:key"}),
    )


class _Workspace(automation.LocalWorkspace):
    def __init__(self) -> None:
        """Without Pulumi, which the SDK would ask for its version."""
        self.selected: list[str] = []

    def select_stack(self, stack_name: str) -> None:
        self.selected.append(stack_name)


def test_the_mode_selects_an_existing_stack() -> None:
    workspace = _Workspace()
    automation.Stack("dev", workspace, pulumi_internals.select_mode())
    assert workspace.selected == ["dev"]
