"""The owner of a namespace with a separate stack, on the platform of another stack, without further rights."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from components.ray_service.settings import SERVICE_LABEL
from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack, existing
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]

OWNER = "owner"
"""A ServiceAccount in `default`, admin of only the tenant `team-own`."""

NOWHERE = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
"""A head on no node."""

MIRRORS = {"docker.io": "registry.example.com/hub", "quay.io": "registry.example.com/quay"}


def platform(settings: dict[str, Any]) -> None:
    settings["images"] = {"mirrors": MIRRORS}
    settings["tenants"] = [
        {
            "name": "team-own",
            "admins": [f"serviceAccount:default/{OWNER}"],
            "clusterNames": ["adhoc", "giant"],
            "jobNames": ["survey"],
            "serviceNames": ["chat"],
            "images": {"registries": ["docker.io/rayproject"], "pullSecrets": ["registry"]},
            "quota": {"cpu": 2000, "memory": "100Ti"},
        },
        {"name": "team-next"},
    ]


def adhoc(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["tenants"][0]["clusters"][0]
    return found


def owners(settings: dict[str, Any]) -> None:
    settings.pop("operator", None)
    cluster = {"name": "adhoc", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "idleTimeout": "5m"}
    settings["platform"] = {"stack": "organization/ray-platform/platform"}
    settings["images"] = {"mirrors": MIRRORS}
    image = {key: cluster[key] for key in ("rayVersion", "image")}
    served = {"applications": [{"import_path": "chat:app"}]}
    settings["tenants"] = [
        {
            "name": "team-own",
            "images": {"pullSecrets": ["registry"]},
            "clusters": [cluster],
            "jobs": [{"name": "survey", "entrypoint": "python survey.py", "cluster": image, "suspend": True}],
            "services": [{"name": "chat", "serveConfigV2": served, "cluster": {**image, "head": dict(NOWHERE)}}],
        }
    ]


@pytest.fixture(scope="module")
def admin(stack: MakeStack) -> Stack:
    """The platform's stack after `pulumi up`."""
    made = stack("platform")
    made.edit(platform)
    made.up()
    return made


@pytest.fixture(scope="module")
def kubeconfig(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The owner's kubeconfig."""
    core: Any = client.CoreV1Api(cluster.client())
    core.create_namespaced_service_account("default", {"metadata": {"name": OWNER}})
    token = core.create_namespaced_service_account_token(OWNER, "default", {"spec": {}}).status.token
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    file = tmp_path_factory.mktemp("owner") / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.fixture(scope="module")
def own(admin: Stack, stack: MakeStack, kubeconfig: Path) -> Stack:
    """The owner's stack, with the owner's rights."""
    return _as_owner(stack("own"), kubeconfig)


def _as_owner(made: Stack, kubeconfig: Path) -> Stack:
    made.edit(owners)
    made.environment["KUBECONFIG"] = str(kubeconfig)
    return made


def pods(cluster: Rehearsal, namespace: str) -> list[Any]:
    return list(client.CoreV1Api(cluster.client()).list_namespaced_pod(namespace).items)


def an_owner_creates_edits_and_refreshes_ray_clusters_without_further_rights(
    own: Stack, rays: Rays, cluster: Rehearsal
) -> None:
    own.pulumi("preview", "--diff")
    own.up()
    assert rays.read("team-own", "adhoc")["status"]["state"] == "ready"
    assert own.outputs()["clusters"]["team-own/adhoc"]["state"] == "ready"
    assert own.outputs()["jobs"]["team-own/survey"]["job"] == "survey"
    assert own.outputs()["services"]["team-own/chat"]["endpoint"] == "http://chat-serve-svc.team-own.svc:8000"
    assert own.outputs()["operator"] == {"version": "1.6.2", "namespace": "ray-system"}
    own.edit(lambda settings: adhoc(settings).update(idleTimeout="10m"))
    assert "idleTimeoutSeconds: 300 => 600" in own.pulumi("preview", "--diff").output
    own.up()
    assert rays.read("team-own", "adhoc")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600
    own.changes_nothing(refreshed=True)


def all_images_are_pulled_from_the_mirrors_with_the_tenants_secret(
    own: Stack, admin: Stack, cluster: Rehearsal
) -> None:
    deployment: Any = client.AppsV1Api(cluster.client()).read_namespaced_deployment("kuberay-operator", "ray-system")
    operator = [container.image for container in deployment.spec.template.spec.containers]
    assert operator == ["registry.example.com/quay/kuberay/operator:v1.6.2"]
    [head] = [pod for pod in pods(cluster, "team-own") if pod.metadata.labels["ray.io/cluster"] == "adhoc"]
    images = {container.name: container.image for container in head.spec.containers}
    assert set(images) >= {"ray-head", "autoscaler"}
    assert set(images.values()) == {"registry.example.com/hub/rayproject/ray:2.60.0"}
    assert [secret.name for secret in head.spec.image_pull_secrets] == ["registry"]


def the_preview_reports_conflicts_with_the_platform(own: Stack) -> None:
    own.edit(lambda settings: adhoc(settings).update(name="stray"))
    output = own.pulumi("preview", fails=True).output
    assert "this stack does not match stack organization/ray-platform/platform" in output
    assert "RayCluster 'stray' is not in clusterNames of tenant 'team-own' (adhoc, giant)" in output
    assert "Traceback" not in output
    own.edit(lambda settings: settings["tenants"][0].update(namespace="elsewhere"))
    output = own.pulumi("preview", fails=True).output
    assert "namespace 'elsewhere' belongs to no tenant there; namespaces of tenants: team-next, team-own" in output
    own.edit(lambda settings: settings.update(platform={"stack": "organization/ray-platform/nowhere"}))
    output = own.pulumi("preview", fails=True).output
    assert "nowhere" in output
    assert "Traceback" not in output


def the_reason_of_a_cluster_that_does_not_start_is_reported_without_access_to_the_operator(own: Stack) -> None:
    own.edit(owners)
    own.edit(lambda settings: adhoc(settings).update(idleTimeout="10m"))
    head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
    giant = {"name": "giant", "head": head, "readyTimeout": "10s"}
    own.edit(lambda settings: settings["tenants"][0]["clusters"].append({**adhoc(settings), **giant}))
    output = own.up(fails=True).output
    assert "RayCluster team-own/giant is not ready" in output
    assert "didn't match Pod's node affinity/selector" in output
    assert "the API server refuses" not in output


def the_api_server_refuses_a_foreign_namespace_with_a_clear_message(
    own: Stack, stack: MakeStack, kubeconfig: Path, rays: Rays
) -> None:
    stray = _as_owner(stack("stray"), kubeconfig)
    stray.edit(lambda settings: settings.update(platform={}))
    stray.edit(lambda settings: settings["tenants"][0].update(name="team-next"))
    output = stray.up(fails=True).output
    assert f'User "system:serviceaccount:default:{OWNER}" cannot' in output
    assert 'in the namespace "team-next"' in output
    assert "Traceback" not in output
    assert not rays.exists("team-next", "adhoc")


def the_platform_keeps_a_tenant_until_its_own_stack_has_no_clusters(
    own: Stack, admin: Stack, rays: Rays, cluster: Rehearsal
) -> None:
    """The operator stays as long as the tenant."""
    assert "RayCluster team-own/adhoc" in admin.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert {"namespace ray-system", "definition rayclusters.ray.io"} <= existing(cluster)
    own.destroy()
    assert own.resources() == []
    assert not rays.exists("team-own", "adhoc")
    until(lambda: not rays.named("team-own", f"{SERVICE_LABEL}=chat"), "KubeRay has deleted the service's RayCluster")
    admin.destroy()


def test_an_owner_has_a_stack_of_the_tenants_own(
    own: Stack, rays: Rays, cluster: Rehearsal, admin: Stack, stack: MakeStack, kubeconfig: Path
) -> None:
    an_owner_creates_edits_and_refreshes_ray_clusters_without_further_rights(own, rays, cluster)
    all_images_are_pulled_from_the_mirrors_with_the_tenants_secret(own, admin, cluster)
    the_preview_reports_conflicts_with_the_platform(own)
    the_reason_of_a_cluster_that_does_not_start_is_reported_without_access_to_the_operator(own)
    the_api_server_refuses_a_foreign_namespace_with_a_clear_message(own, stack, kubeconfig, rays)
    the_platform_keeps_a_tenant_until_its_own_stack_has_no_clusters(own, admin, rays, cluster)
