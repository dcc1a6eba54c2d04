"""An existing Volcano is accepted if it is supported, and otherwise named in the error."""

from typing import Any

import pytest

from components.install import installation_of
from components.volcano.component import VOLCANO
from core.versions import UnsupportedVersionError


def crd(*served: str) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name, "served": True} for name in served]}}


def deployment(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "volcano-scheduler", "image": image}]}}}}


@pytest.mark.parametrize(
    "image", ["docker.io/volcanosh/vc-scheduler:v1.14.1", "registry.example:5000/vc-scheduler:1.14.1"]
)
def test_a_supported_installation_is_accepted(image: str) -> None:
    assert VOLCANO.check(installation_of(crd("v1beta1"), deployment(image)), "volcano-system") == "1.14.1"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (
            installation_of(crd("v1beta1"), deployment("vc-scheduler:latest")),
            "no Deployment volcano-scheduler with a version",
        ),
        (installation_of(crd("v1beta1"), deployment("vc-scheduler:v1.9.0")), r"Volcano 1\.9\.0 is not supported"),
        (
            installation_of(crd("v1"), deployment("vc-scheduler:v1.14.1")),
            "CRD queues.scheduling.volcano.sh serving v1. Here",
        ),
    ],
)
def test_an_unsupported_installation_is_refused_with_its_version(there: Any, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        VOLCANO.check(there, "volcano-system")
