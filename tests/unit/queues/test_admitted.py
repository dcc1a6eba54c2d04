"""An update keeps what Kueue has written into a RayCluster or RayService."""

from typing import Any

import pytest

from components.ray_cluster.request import DIGEST, Later, Request, Scaled, request, service_request

PODSET, PRODUCT = "kueue.x-k8s.io/podset", "nvidia.com/gpu.product"

WRITTEN: dict[str, Any] = {
    "metadata": {"labels": {PODSET: "gpu", "of": "somebody"}, "annotations": {"kueue.x-k8s.io/workload": "w"}},
    "spec": {"nodeSelector": {PRODUCT: "A100", "zone": "a"}},
}
"""The template of a live worker group."""

KEPT: dict[str, Any] = {
    "metadata": {"labels": {PODSET: "gpu"}, "annotations": {"kueue.x-k8s.io/workload": "w"}},
    "spec": {"containers": [], "nodeSelector": {PRODUCT: "A100"}},
}


def body(**pod: Any) -> dict[str, Any]:
    metadata = {"name": "training", "namespace": "team-a", "annotations": {}}
    template = {"spec": {"containers": [], **pod}}
    return {"metadata": metadata, "spec": {"workerGroupSpecs": [{"groupName": "gpu", "template": template}]}}


def service(**pod: Any) -> dict[str, Any]:
    return {**body(), "spec": {"serveConfigV2": "{}", "rayClusterConfig": body(**pod)["spec"]}}


def sent(live: Scaled | None, of_service: bool, **pod: Any) -> tuple[Request, Any]:
    """The request, and the template that it has."""
    if of_service:
        made = service_request(service(**pod), live)
        return made, made.body["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]
    made = request(body(**pod), live, "pulumi", Later(), queued=True)
    return made, made.body["spec"]["workerGroupSpecs"][0]["template"]


def live(template: dict[str, Any], digest: str | None) -> Scaled:
    spec = {"workerGroupSpecs": [{"groupName": "gpu", "template": template}]}
    return Scaled(digest, {"gpu": {}}, spec)


@pytest.mark.parametrize("of_service", [False, True], ids=["RayCluster", "RayService"])
def test_without_an_edit_the_live_groups_stay_and_with_one_what_kueue_has_written(of_service: bool) -> None:
    made, template = sent(None, of_service)
    assert (template, made.ignored) == ({"spec": {"containers": []}}, ())
    annotations = made.body["metadata"]["annotations"]
    assert annotations["pulumi.com/patchForce"] == "true"
    same, template = sent(live(WRITTEN, annotations[DIGEST]), of_service)
    part = "spec.rayClusterConfig" if of_service else "spec"
    assert same.ignored == (f"{part}.workerGroupSpecs",)
    edited, template = sent(live(WRITTEN, annotations[DIGEST]), of_service, priority=1)
    assert edited.ignored == ()
    assert template == {**KEPT, "spec": {**KEPT["spec"], "priority": 1}}


def test_a_node_selector_that_kueue_has_reverted_is_sent_again() -> None:
    """When Kueue suspends an edited RayCluster, it restores its templates as they were admitted."""
    pod = {"nodeSelector": {"zone": "b"}}
    made, _ = sent(None, False, **pod)
    digest = made.body["metadata"]["annotations"][DIGEST]
    again, template = sent(live(WRITTEN, digest), False, **pod)
    assert again.ignored == ()
    assert template["spec"]["nodeSelector"] == {PRODUCT: "A100", "zone": "b"}
