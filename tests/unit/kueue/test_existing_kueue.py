"""An existing Kueue is accepted if it is supported, and otherwise named in the error."""

from typing import Any

import pytest

from components.install import installation_of
from components.kueue.component import KUEUE
from core.versions import UnsupportedVersionError


def crd(*served: str) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name, "served": True} for name in served]}}


def deployment(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}}}


def test_a_supported_installation_is_accepted() -> None:
    live = installation_of(crd("v1beta1", "v1beta2"), deployment("registry.k8s.io/kueue/kueue:v0.15.2"))
    assert KUEUE.check(live, "kueue-system") == "0.15.2"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (
            installation_of(None, None),
            "no Deployment kueue-controller-manager with a version in namespace 'kueue-system'",
        ),
        (
            installation_of(crd("v1beta1"), deployment("kueue:v0.14.0")),
            r"Kueue 0\.14\.0 is not supported.*Supported: 0\.15\.x",
        ),
        (
            installation_of(crd("v1beta1"), deployment("kueue:v0.15.0")),
            r"does not serve v1beta2: apply .* Kueue 0\.15\.0",
        ),
        (installation_of(None, deployment("kueue:v0.15.0")), "no CRD clusterqueues.kueue.x-k8s.io. Here"),
    ],
)
def test_an_unsupported_installation_is_refused_with_its_version(there: Any, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        KUEUE.check(there, "kueue-system")
