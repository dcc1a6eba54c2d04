"""The table of a release's new fields has the fields of its CRDs that those of the release before lack."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kuberay.releases import EACH, SINCE, Steps
from kuberay.schema import KINDS
from local.crd_schemas import VERSION
from local.install import install_missing
from local.tools import KUBERAY, KUBERAY_1_5, Tool

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


def fields(schema: dict[str, Any], at: Steps) -> Iterator[Steps]:
    """The fields of a schema, at any depth."""
    if "items" in schema:
        yield from fields(schema["items"], (*at, EACH))
    for name, each in schema.get("properties", {}).items():
        yield (*at, name)
        yield from fields(each, (*at, name))


def known(tool: Tool, kind: str) -> set[Steps]:
    """The fields of a kind's spec in a release, and () for the kind itself; empty if the release lacks the kind."""
    file = tool.share("config") / "crd" / "bases" / f"ray.io_{kind.lower()}s.yaml"
    if not file.exists():
        return set()
    versions = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    schema = next(each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == VERSION)
    return {(), *fields(schema["properties"]["spec"], ("spec",))}


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_fields_that_came_with_1_6_is_complete(kind: str) -> None:
    install_missing((KUBERAY, KUBERAY_1_5))
    new = known(KUBERAY, kind) - known(KUBERAY_1_5, kind)
    first = {steps for steps in new if not any(steps[:length] in new for length in range(len(steps)))}
    assert first == set(SINCE["1.6"][kind])
    assert not known(KUBERAY_1_5, kind) - known(KUBERAY, kind)
