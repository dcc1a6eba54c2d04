"""What a cluster admin relies on with an existing operator."""

from typing import Any

import pytest

from components.operator.upgrade import Live, check_existing, live_operator
from core.versions import UnsupportedVersionError
from kuberay.releases import check_ray

Tree = list[dict[str, Any]]


def test_a_supported_operator_with_its_own_crds_is_accepted(tree: Tree) -> None:
    crd = next(body for body in tree if body["metadata"]["name"] == "rayclusters.ray.io")
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    live = live_operator(crd, deployment)
    assert live == Live("1.6.2", "1.6", ("v1", "v1alpha1"))
    assert check_existing(live, "ray-system", ["2.60.0"]) == ("1.6.2", None)


@pytest.mark.parametrize(
    ("version", "gates", "marks"),
    [
        ("1.5.1", "RayClusterStatusConditions=true", False),
        ("1.5.1", "RayMultiHostIndexing=true", True),
        ("1.6.2", "RayClusterStatusConditions=true", True),
        ("1.6.2", "RayMultiHostIndexing=false", False),
        ("1.4.2", "RayClusterStatusConditions=true", False),
    ],
)
def test_whether_the_operator_marks_workers_with_several_hosts_follows_from_its_gates(
    tree: Tree, version: str, gates: str, marks: bool
) -> None:
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": f"quay.io/kuberay/operator:v{version}", "args": [f"--feature-gates={gates}"]}
    assert live_operator(None, deployment).marks_hosts is marks


def test_an_operator_of_an_earlier_release_is_accepted_with_crds_of_that_release() -> None:
    assert check_existing(Live("1.5.1", "1.5", ("v1",), marks_hosts=False), "ray-system", ["2.60.0"])[0] == "1.5.1"


def test_of_a_later_release_a_warning_names_what_is_unknown() -> None:
    version, warning = check_existing(Live("1.8.1", "1.7", ("v1",)), "ray-system", ["2.60.0"])
    assert version == "1.8.1"
    assert warning
    assert warning.startswith("operator 1.8.1 is later than KubeRay 1.7, the last release known here")
    assert check_existing(Live("1.7.3", "1.7", ("v1",)), "ray-system", ["2.60.0"]) == ("1.7.3", None)


def test_without_an_image_tag_the_version_is_the_deployments_label(tree: Tree) -> None:
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    deployment["metadata"]["labels"]["app.kubernetes.io/version"] = "1.6.1"
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = f"mirror.example/operator@sha256:{'0' * 64}"
    assert live_operator(None, deployment).operator == "1.6.1"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (Live(None, None), r"operator none, no CRD rayclusters.ray.io.*no Deployment kuberay-operator.*'ray-system'"),
        (Live("1.4.2", None, ("v1",)), r"operator 1.4.2, CRD .* older than 1.5.1 .*operator 1.4.2 is not supported"),
        (Live("1.6.2", None, ("v1",)), r"CRDs are not of the operator's release 1.6: apply those of KubeRay v1.6.2"),
        (Live("1.5.0", None, ("v1",)), r"operator 1.5.0 is not supported"),
        (Live("1.6.2", "1.5", ("v1",)), r"CRDs are not of the operator's release 1.6"),
        (Live("1.7.0", "1.6", ("v1",)), r"CRDs are not of the operator's release 1.7"),
        (Live("1.6.2", "1.6", ("v1alpha1",)), r"does not serve v1"),
        (Live("2.0.0", "1.7", ("v1",)), r"operator 2.0.0 is not supported.*Supported: operator 1.5.1 to 1.7.x"),
    ],
)
def test_an_unsupported_operator_is_refused_with_live_and_supported_versions(there: Live, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        check_existing(there, "ray-system", [])


def test_a_ray_that_the_operator_does_not_support_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"KubeRay 1.6.2 does not support Ray 2.37.0.*2.38.0 or later"):
        check_ray("1.6.2", ["2.60.0", "2.37.0"])
