"""The changes to a RayCluster with TLS between its processes."""

from typing import Any

from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.objects import ray_cluster_objects
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from components.tls.manifests import ENVIRONMENT, FOLDER
from core.nodes import NodePool
from kuberay import OperatorContext, validate
from testbed.recorder import Recorder, record

POOLS = (NodePool(pool="cpu", count=2, cpu="8", memory="64Gi"),)


def settings(**keys: Any) -> RayClusterSettings:
    short = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "cpu"}, "tls": {}}
    return valid({**short, **keys})


def spec(**keys: Any) -> dict[str, Any]:
    body = ray_cluster(settings(**keys), POOLS)
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def pods(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["template"]["spec"] for group in (made["headGroupSpec"], *made["workerGroupSpecs"])]


def provisioned(**keys: Any) -> Recorder:
    objects = list(ray_cluster_objects(settings(**keys), ray_cluster(settings(**keys), POOLS)))
    return record(lambda: RayCluster("team-a-training", RayClusterArgs(settings(**keys), objects, "team-a", POOLS)))


def test_every_container_that_runs_ray_uses_the_pods_certificate() -> None:
    made = spec()
    for container in (*(pod["containers"][0] for pod in pods(made)), made["autoscalerOptions"]):
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env.items() >= ENVIRONMENT.items()
        assert FOLDER in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_only_the_container_that_creates_the_certificate_has_the_authoritys_key() -> None:
    for pod in pods(spec()):
        [volume] = [each["name"] for each in pod["volumes"] if "secret" in each]
        holders = [
            container["name"]
            for container in (*pod["containers"], *pod["initContainers"])
            if volume in [mount["name"] for mount in container["volumeMounts"]]
        ]
        assert holders == ["certificate"]


def test_that_container_is_restricted_and_has_its_pods_image() -> None:
    head, worker = pods(spec(head={"image": "head:2.60.0"}))
    for pod, image in ((head, "head:2.60.0"), (worker, "ray:2.60.0")):
        [container] = pod["initContainers"]
        assert container["image"] == image
        assert container["securityContext"] == pod["containers"][0]["securityContext"]


def test_the_clusters_own_volumes_and_variables_stay() -> None:
    made = spec(
        env={"HF_HOME": "/data"},
        volumes=[{"name": "data", "emptyDir": {}}],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    for pod in pods(made):
        assert pod["volumes"][0]["name"] == "data"
        assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/data"
        assert {"name": "HF_HOME", "value": "/data"} in pod["containers"][0]["env"]


def test_without_tls_a_cluster_is_unchanged() -> None:
    assert "tls" not in str(spec(tls=None))


def test_the_named_issuer_of_cert_manager_certifies_the_authority() -> None:
    recorder = provisioned(tls={"issuer": {"name": "lab", "kind": "ClusterIssuer"}})
    made = recorder.registered["team-a-training-tls-certificate"]
    assert made.type == "kubernetes:cert-manager.io/v1:Certificate"
    certificate = made.inputs["spec"]
    assert certificate["isCA"] is True
    assert certificate["secretName"] == "training-ray-authority"
    assert certificate["issuerRef"] == {"group": "cert-manager.io", "name": "lab", "kind": "ClusterIssuer"}
    assert "team-a-training-tls-secret" not in recorder.registered
