"""The program itself, on a control plane with the real operator: what the people who run it rely on."""

import shutil
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from kubernetes import client, config

from local import paths
from local.plugins import Selection
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal
from tests.engine.harness import ADOPT, TAKE_OVER, Project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

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


class Rays:
    """The RayClusters, as kubectl shows them."""

    def __init__(self, cluster: Rehearsal) -> None:
        self._api = client.CustomObjectsApi(cluster.client())

    def read(self, namespace: str, name: str) -> dict[str, Any]:
        found = self._api.get_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name)
        return cast("dict[str, Any]", found)

    def there(self, namespace: str, name: str) -> bool:
        try:
            return bool(self.read(namespace, name))
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False

    def create(self, namespace: str, body: dict[str, Any]) -> None:
        self._api.create_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", body)

    def patch(self, namespace: str, name: str, body: dict[str, Any]) -> None:
        self._api.patch_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name, body)

    def delete(self, namespace: str, name: str) -> None:
        self._api.delete_namespaced_custom_object("ray.io", "v1", namespace, "rayclusters", name)


@pytest.fixture(scope="module")
def rays(cluster: Rehearsal) -> Rays:
    return Rays(cluster)


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory, cluster: Rehearsal, plugins: Selection) -> Stack:
    """The dev stack. The tests of this file are one day in its life, in their order; none can do without `up`."""
    file = tmp_path_factory.mktemp("stack") / "Pulumi.dev.yaml"
    shutil.copy(paths.ROOT / file.name, file)
    return Stack("dev", file, cluster, plugins)


@pytest.fixture
def up(dev: Stack) -> Stack:
    """The dev stack, up, with the settings of its file as it is in the checkout."""
    shutil.copy(paths.ROOT / dev.file.name, dev.file)
    dev.edit(lambda settings: None)
    dev.up()
    return dev


def training(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the stack's RayCluster."""
    return cast("dict[str, Any]", settings["tenants"][0]["clusters"][0])


def test_an_update_killed_again_and_again_is_recovered(
    dev: Stack, rays: Rays, existing: Callable[[], set[str]]
) -> None:
    """SIGKILL when the first definition, the operator's binding and the RayCluster come to be; each time the commands
    of docs/operations.md, the last of which is killed in its turn."""
    moments: list[Callable[[], bool]] = [
        lambda: "definition rayclusters.ray.io" in existing(),
        lambda: "binding kuberay-operator" in existing(),
        lambda: rays.there("team-a", "training"),
    ]
    environment: dict[str, str] = {}
    for come in moments:
        update = dev.start("up", "--yes", "--skip-preview", environment=environment)
        while not come():
            assert update.poll() is None, update.communicate()[0]
            time.sleep(0.05)
        update.kill()
        update.communicate()
        dev.release()
        environment = ADOPT
    dev.up(environment=ADOPT)
    dev.up()
    dev.changes_nothing()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    dev.edit(lambda settings: training(settings).update(idleTimeout="7m"))
    dev.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 420


def test_the_cluster_is_ready_when_up_ends(up: Stack, rays: Rays) -> None:
    status = rays.read("team-a", "training")["status"]
    assert status["state"] == "ready"
    assert {each["type"]: each["status"] for each in status["conditions"]}["HeadPodReady"] == "True"
    made = up.outputs()["clusters"]["team-a/training"]
    assert made["state"] == "ready"
    assert made["greatestGpus"] == 8
    assert [group["gpus"] for group in made["workerGroups"]] == [1, 2, 4, 8]
    assert made["dashboardUrl"] == "http://training-head-svc.team-a.svc:8265"


def test_the_operator_has_the_rights_that_the_stack_gave_it_and_no_other(up: Stack, cluster: Rehearsal) -> None:
    """It runs on the host, so that it could have had the host's: a permission that the stack forgets has to show."""
    kubeconfig = cluster.run / "host-pods" / "ray-system_kuberay-operator" / "kubeconfig"
    api = config.new_client_from_config(str(kubeconfig))
    review = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    user = api.sanitize_for_serialization(review)["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:ray-system:kuberay-operator"
    client.CoreV1Api(api).list_pod_for_all_namespaces()
    with pytest.raises(client.ApiException, match="Forbidden"):
        client.CoreV1Api(api).list_node()


def test_a_second_up_and_a_refresh_change_nothing(up: Stack) -> None:
    up.changes_nothing()
    up.pulumi("refresh", "--yes", "--skip-preview")
    up.changes_nothing()


def test_an_edit_of_the_stack_file_is_shown_by_the_preview_and_made_by_up(up: Stack, rays: Rays) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="10m"))
    shown = up.pulumi("preview", "--diff").output
    assert "idleTimeoutSeconds: 300 => 600" in shown
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600
    up.changes_nothing()


def test_a_change_with_kubectl_is_shown_by_refresh_and_undone_by_up(up: Stack, rays: Rays) -> None:
    rays.patch("team-a", "training", {"spec": {"autoscalerOptions": {"idleTimeoutSeconds": 7}}})
    assert "idleTimeoutSeconds: 300 => 7" in up.pulumi("refresh", "--preview-only", "--diff").output
    up.pulumi("refresh", "--yes", "--skip-preview")
    assert "idleTimeoutSeconds: 7 => 300" in up.pulumi("preview", "--diff", environment=TAKE_OVER).output
    up.up(environment=TAKE_OVER)
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    up.changes_nothing()


def test_a_wrong_setting_is_refused_with_one_message_before_anything_changes(up: Stack) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="soon"))
    output = up.up(fails=True).output
    shown = output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert "ray-platform:tenants[0].clusters[0].idleTimeout: 'soon' is not a duration such as 90s" in shown
    assert "Traceback" not in output


def test_a_cluster_that_cannot_come_up_says_why_within_its_time(up: Stack) -> None:
    def add_one_that_is_too_great(settings: dict[str, Any]) -> None:
        settings["tenants"][0]["clusters"].append(
            {**training(settings), "name": "giant", "head": {"cpu": "1000"}, "readyTimeout": "10s"}
        )

    up.edit(add_one_that_is_too_great)
    shown = up.up(fails=True).output
    assert "RayCluster team-a/giant is not ready" in shown
    assert "Insufficient cpu" in shown


def test_the_definitions_are_kept_while_somebody_else_has_a_ray_cluster(
    up: Stack, rays: Rays, existing: Callable[[], set[str]]
) -> None:
    spec = rays.read("team-a", "training")["spec"]
    rays.create(
        "default",
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "foreign"},
            "spec": {"rayVersion": spec["rayVersion"], "headGroupSpec": spec["headGroupSpec"]},
        },
    )
    refused = up.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "default/foreign" in refused
    assert "definition rayclusters.ray.io" in existing()
    assert rays.there("default", "foreign")
    rays.delete("default", "foreign")


def test_destroy_leaves_nothing(dev: Stack, existing: Callable[[], set[str]]) -> None:
    dev.up()
    dev.pulumi("destroy", "--yes", "--skip-preview")
    assert dev.resources() == []
    left = existing()
    assert not {name for name in left if "ray" in name}
    assert "namespace team-a" not in left
