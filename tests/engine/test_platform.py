"""The program itself, on a control plane with the real operator: what the people who run it rely on."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from harness import Project
from kubernetes import client

from local import paths
from local.plugins import Selection
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal

pytestmark = [pytest.mark.engine, pytest.mark.timeout(420)]

Edit = Callable[[dict[str, Any]], None]


class Stack(Project):
    """A stack of this checkout's program, whose file a test may edit."""

    def __init__(self, name: str, file: Path, cluster: Rehearsal, plugins: Selection) -> None:
        self.file = file
        self._stack = RehearsalStack(cluster, plugins, name, file)
        self._stack.prepare()
        super().__init__(paths.ROOT, self._stack.environment)

    def edit(self, change: Edit) -> None:
        """Changes the settings in the stack file."""
        said = yaml.safe_load(self.file.read_text())
        change({key.partition(":")[2]: value for key, value in said["config"].items()})
        self.file.write_text(yaml.safe_dump(said))
        self._stack.prepare()


@pytest.fixture
def existing(cluster: Rehearsal) -> Callable[[], set[str]]:
    """What a stack could leave behind in the cluster."""
    api = cluster.client()
    lists: dict[str, Callable[[], Any]] = {
        "namespace": client.CoreV1Api(api).list_namespace,
        "definition": client.ApiextensionsV1Api(api).list_custom_resource_definition,
        "role": client.RbacAuthorizationV1Api(api).list_cluster_role,
        "binding": client.RbacAuthorizationV1Api(api).list_cluster_role_binding,
    }
    return lambda: {f"{kind} {item.metadata.name}" for kind, list_all in lists.items() for item in list_all().items}


@pytest.fixture
def dev(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cluster: Rehearsal,
    plugins: Selection,
    existing: Callable[[], set[str]],
) -> Iterator[Stack]:
    """The dev stack, not up yet; afterwards nothing of it is left."""
    before = existing()
    file = tmp_path / "Pulumi.dev.yaml"
    shutil.copy(paths.ROOT / file.name, file)
    stack = Stack(request.node.name[:40].replace("_", "-").strip("-"), file, cluster, plugins)
    yield stack
    stack.pulumi("cancel", "--yes")
    stack.pulumi("destroy", "--yes", "--skip-preview")
    assert stack.resources() == []
    assert existing() == before


@pytest.fixture
def rays(cluster: Rehearsal) -> "Rays":
    return Rays(cluster)


class Rays:
    """The RayClusters, as kubectl shows them."""

    def __init__(self, cluster: Rehearsal) -> None:
        self._api = client.CustomObjectsApi(cluster.client())

    def read(self, namespace: str, name: str) -> dict[str, Any]:
        return cast(
            "dict[str, Any]", self._api.get_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name)
        )

    def create(self, namespace: str, body: dict[str, Any]) -> None:
        self._api.create_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", body)

    def patch(self, namespace: str, name: str, body: dict[str, Any]) -> None:
        self._api.patch_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name, body)

    def delete(self, namespace: str, name: str) -> None:
        self._api.delete_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name)


def idle_timeout(settings: dict[str, Any], value: str) -> None:
    settings["tenants"][0]["clusters"][0]["idleTimeout"] = value


def test_the_dev_stack_is_ready_when_up_ends_and_a_second_up_changes_nothing(dev: Stack, rays: Rays) -> None:
    dev.up()
    status = rays.read("team-a", "training")["status"]
    assert status["state"] == "ready"
    assert {each["type"]: each["status"] for each in status["conditions"]}["HeadPodReady"] == "True"
    made = dev.outputs()["clusters"]["team-a/training"]
    assert made["state"] == "ready"
    assert made["greatestGpus"] == 8
    assert [group["gpus"] for group in made["workerGroups"]] == [1, 2, 4, 8]
    assert made["dashboardUrl"] == "http://training-head-svc.team-a.svc:8265"
    dev.changes_nothing()
    assert "changes" not in dev.up().output.lower().replace("no changes", "")


def test_an_edit_of_the_stack_file_is_shown_by_the_preview_and_made_by_up(dev: Stack, rays: Rays) -> None:
    dev.up()
    dev.edit(lambda settings: idle_timeout(settings, "10m"))
    shown = dev.pulumi("preview", "--diff").output
    assert "idleTimeoutSeconds" in shown
    assert "300 => 600" in shown
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    dev.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600
    dev.changes_nothing()


def test_a_change_with_kubectl_is_shown_by_refresh_and_undone_by_up(dev: Stack, rays: Rays) -> None:
    dev.up()
    rays.patch("team-a", "training", {"spec": {"autoscalerOptions": {"idleTimeoutSeconds": 7}}})
    assert "300 => 7" in dev.pulumi("refresh", "--preview-only", "--diff").output
    dev.pulumi("refresh", "--yes", "--skip-preview")
    assert "7 => 300" in dev.pulumi("preview", "--diff").output
    dev.up(PULUMI_K8S_ENABLE_PATCH_FORCE="true")
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300


def test_a_refresh_without_a_change_finds_none(dev: Stack) -> None:
    dev.up()
    dev.pulumi("refresh", "--yes", "--skip-preview")
    dev.changes_nothing()


def test_a_wrong_setting_is_refused_with_one_message_before_anything_is_made(dev: Stack) -> None:
    dev.edit(lambda settings: idle_timeout(settings, "soon"))
    shown = dev.up(fails=True).output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert "ray-platform:tenants[0].clusters[0].idleTimeout: 'soon' is not allowed" in shown
    assert "Traceback" not in shown
    assert [each["type"] for each in dev.resources()] == ["pulumi:pulumi:Stack"]


def test_a_cluster_that_cannot_come_up_says_why_within_its_time(dev: Stack) -> None:
    def too_great(settings: dict[str, Any]) -> None:
        cluster = settings["tenants"][0]["clusters"][0]
        cluster["head"] = {"cpu": "1000"}
        cluster["readyTimeout"] = "10s"

    dev.edit(too_great)
    shown = dev.up(fails=True).output
    assert "RayCluster team-a/training is not ready" in shown
    assert "Insufficient cpu" in shown


def test_the_definitions_are_kept_while_somebody_else_has_a_ray_cluster(
    dev: Stack, rays: Rays, existing: Callable[[], set[str]]
) -> None:
    dev.up()
    body = {
        key: value for key, value in rays.read("team-a", "training").items() if key in ("apiVersion", "kind", "spec")
    }
    body["metadata"] = {"name": "foreign"}
    body["spec"].pop("workerGroupSpecs")
    rays.create("default", body)
    refused = dev.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "default/foreign" in refused
    assert "definition rayclusters.ray.io" in existing()
    rays.delete("default", "foreign")


@pytest.mark.parametrize("first", ["definition rayclusters.ray.io", "namespace ray-system", "a RayCluster"])
def test_an_update_killed_in_the_middle_is_recovered(
    dev: Stack, rays: Rays, existing: Callable[[], set[str]], first: str
) -> None:
    """SIGKILL once `first` is there; then the commands of docs/operations.md."""

    def there() -> bool:
        if first != "a RayCluster":
            return first in existing()
        try:
            return bool(rays.read("team-a", "training"))
        except client.ApiException:
            return False

    update = dev.start("up", "--yes", "--skip-preview")
    while not there():
        assert update.poll() is None, update.communicate()[0]
        time.sleep(0.02)
    update.kill()
    update.communicate()

    dev.pulumi("cancel", "--yes")
    dev.pulumi("refresh", "--yes", "--skip-preview", "--clear-pending-creates")
    dev.up(PULUMI_K8S_UPSERT_EXISTING_OBJECTS="true")
    dev.up()
    dev.changes_nothing()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
