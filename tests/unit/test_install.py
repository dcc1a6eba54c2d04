"""An existing Volcano or Kueue is accepted if it is supported, and otherwise named in the error."""

from typing import Any

import pytest

from components.install import Installation, Installed, installation_of
from components.kueue.component import KUEUE
from components.volcano.component import VOLCANO
from core.versions import UnsupportedVersionError


def there(image: str, *served: str) -> Installation:
    container = {"name": "manager", "image": image}
    crd: dict[str, Any] = {"spec": {"versions": [{"name": name, "served": True} for name in served]}}
    deployment = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return installation_of(crd if served else None, deployment if image else None)


@pytest.mark.parametrize(
    ("program", "found", "version"),
    [
        (KUEUE, there("registry.k8s.io/kueue/kueue:v0.19.2", "v1beta1", "v1beta2"), "0.19.2"),
        (VOLCANO, there("docker.io/volcanosh/vc-scheduler:v1.14.1", "v1beta1"), "1.14.1"),
        (VOLCANO, there("registry.example:5000/vc-scheduler:1.14.1", "v1beta1"), "1.14.1"),
    ],
)
def test_a_supported_installation_is_accepted(program: Installed, found: Installation, version: str) -> None:
    assert program.check(found, "there") == version


@pytest.mark.parametrize(
    ("program", "found", "message"),
    [
        (KUEUE, there(""), "no Deployment kueue-controller-manager with a version in namespace 'there'"),
        (KUEUE, there("kueue:v0.15.0", "v1beta1"), r"Kueue 0\.15\.0 is not supported.*Supported: 0\.19\.x"),
        (KUEUE, there("kueue:v0.19.0", "v1beta1"), r"does not serve v1beta2: apply .* Kueue 0\.19\.0"),
        (KUEUE, there("kueue:v0.19.0"), "no CRD clusterqueues.kueue.x-k8s.io. Problem"),
        (VOLCANO, there("vc-scheduler:latest", "v1beta1"), "no Deployment volcano-scheduler with a version"),
        (VOLCANO, there("vc-scheduler:v1.9.0", "v1beta1"), r"Volcano 1\.9\.0 is not supported"),
        (VOLCANO, there("vc-scheduler:v1.14.1", "v1"), "CRD queues.scheduling.volcano.sh serving v1. Problem"),
    ],
)
def test_an_unsupported_one_is_refused_with_its_version(program: Installed, found: Installation, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        program.check(found, "there")
