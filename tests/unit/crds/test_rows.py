"""Two updates remove definitions from an old state without deleting them."""

from pathlib import Path
from typing import Any

import pytest

from components.crds.provider import OUTPUTS, Rows, rows_of_this_stack
from components.operator.component import KubeRayOperator, KubeRayOperatorArgs
from components.operator.settings import OperatorSettings
from testbed.recorder import record

pytestmark = pytest.mark.unit

URN = (
    "urn:pulumi:test::ray-platform::ray-platform:index:Platform$ray-platform:index:KubeRayOperator"
    "$kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition::platform-kuberay-customresourcedefinition-"
)
PLAIN: dict[str, Any] = {"metadata": {"annotations": {}}}
RETAINED = {"metadata": {"annotations": {"ray-platform/retained": "true"}}}
OTHER = {URN.replace("CustomResourceDefinition", "CustomResourceDefinitionPatch"): PLAIN}


def decided(last: dict[str, Any], rows: dict[str, dict[str, Any]]) -> Rows:
    found: list[Rows] = []
    record(lambda: found.append(rows_of_this_stack()), last=last, rows=rows)
    return found[0]


@pytest.mark.parametrize(
    ("last", "rows", "decision"),
    [
        pytest.param({}, {}, "none", id="a new stack"),
        pytest.param({}, OTHER, "none", id="resources of other types"),
        pytest.param({"operator": {}}, {f"{URN}a": PLAIN}, "keep", id="a state of the release before"),
        pytest.param({}, {f"{URN}a": PLAIN}, "keep", id="a first update of the release before that was interrupted"),
        pytest.param({}, {f"{URN}a": RETAINED}, "keep", id="rows are marked, and the update did not end"),
        pytest.param({"crds": "retained"}, {f"{URN}a": RETAINED}, "drop", id="the second update"),
        pytest.param(
            {"crds": "retained"}, {f"{URN}a": RETAINED, f"{URN}b": PLAIN}, "keep", id="an update with targets"
        ),
        pytest.param({"crds": "retained"}, {}, "none", id="somebody has removed the rows"),
        pytest.param({"crds": "separate"}, {}, "none", id="every update from then on"),
    ],
)
def test_rows_are_dropped_once_all_of_them_are_retained(
    last: dict[str, Any], rows: dict[str, dict[str, Any]], decision: str
) -> None:
    assert decided(last, rows) == decision


def test_the_output_decides_the_next_update() -> None:
    rows = {f"{URN}a": PLAIN}
    first = decided({}, rows)
    second = decided({"crds": OUTPUTS[first]}, {f"{URN}a": RETAINED})
    third = decided({"crds": OUTPUTS[second]}, {})
    assert [first, second, third] == ["keep", "drop", "none"]


def test_rows_that_are_kept_are_registered_as_before_and_marked(kubectl_that_renders: Path) -> None:
    args = KubeRayOperatorArgs(OperatorSettings(location="config/default"), rows="keep")
    recorder = record(lambda: KubeRayOperator("kuberay", args))
    names = recorder.kinds()["kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"]
    assert len(names) == 4
    assert "kuberay-crds" not in recorder.registered
    for name in names:
        row = recorder.registered[name]
        assert row.retained
        assert row.inputs["metadata"]["annotations"]["ray-platform/retained"] == "true"
        assert recorder.made_before(name, "kuberay-deployment-kuberay-operator")
