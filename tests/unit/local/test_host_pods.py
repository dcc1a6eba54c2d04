"""Which images host-pods runs on the host, and with which settings."""

import pytest

from local.host_pods.programs import program_of
from local.tools import KUBERAY, KUBERAY_1_5

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "image",
    [
        "quay.io/kuberay/operator:v1.6.2",
        "registry.example:5000/mirror/kuberay/operator:v1.6.2",
        "kuberay/operator",
        "quay.io/kuberay/operator:v1.6.2@sha256:" + "0" * 64,
    ],
)
def test_the_operator_is_known_from_any_registry(image: str) -> None:
    program = program_of(image)
    assert program is not None
    assert program.name == "ray-operator"
    assert program.tool == KUBERAY


def test_an_operator_of_another_version_runs_in_that_version() -> None:
    program = program_of("mirror.example/kuberay/operator:v1.5.1")
    assert program is not None
    assert program.tool == KUBERAY_1_5


@pytest.mark.parametrize("image", ["rayproject/ray:2.60.0", "example/notkuberay/operator:v1", "nginx"])
def test_other_images_are_left_to_their_nodes(image: str) -> None:
    assert program_of(image) is None
