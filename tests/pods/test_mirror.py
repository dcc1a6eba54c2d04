"""The stack without RayClusters has KubeRay's image from a mirror, which the lines of docs/manifests.md have filled."""

import pytest

from components.network.manifests import OPERATOR
from testbed.machine import lacks
from testbed.pods import mirror
from testbed.pods.platform import Platform

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]


def test_the_operators_image_is_that_of_the_mirror(without_clusters: Platform) -> None:
    if programs := mirror.missing():
        lacks(f"not on the PATH: {', '.join(programs)}; they are in Debian's packages of the same names")
    (pod,) = without_clusters.pods(",".join(f"{key}={value}" for key, value in OPERATOR.items()), "ray-system").values()
    (container,) = pod["status"]["containerStatuses"]
    assert container["imageID"].startswith(f"{mirror.REGISTRY}/quay.io/kuberay/operator@sha256:")
    events = without_clusters.kubectl("get", "events", "-n", "ray-system", "-o", "jsonpath={.items[*].message}")
    assert f'Successfully pulled image "{container["image"]}"' in events
