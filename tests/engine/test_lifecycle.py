"""The life of a stack's resources on a cluster: created, unchanged, edited, drifted, replaced, removed."""

import base64

import pytest
from kubernetes import client

from local.plugins import Selection
from local.rehearsal import Rehearsal
from testbed.harness import Project
from tests.engine.conftest import PROGRAMS

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(240),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, plugins: Selection, cluster: Rehearsal) -> Project:
    """The program `shop` with its settings."""
    made = Project.make(tmp_path_factory.mktemp("shop"), PROGRAMS / "shop.py", plugins)
    made.environment["KUBECONFIG"] = str(cluster.kubeconfig)
    made.configure("namespace", "shop")
    made.configure("greeting", "hello")
    made.configure("password", "tulip-42", "--secret")
    return made


@pytest.fixture(scope="module")
def settings(made: Project) -> str:
    """The original stack file."""
    return (made.folder / "Pulumi.test.yaml").read_text()


@pytest.fixture
def shop(made: Project, settings: str) -> Project:
    """The shop after `pulumi up`, with its original settings."""
    file = made.folder / "Pulumi.test.yaml"
    if file.read_text() != settings or not made.resources():
        file.write_text(settings)
        made.up()
    return made


def namespaces(core: client.CoreV1Api) -> set[str]:
    return {item["metadata"]["name"] for item in core.list_namespace().to_dict()["items"]}


def greeting(core: client.CoreV1Api, shop: Project, name: str = "settings") -> str:
    data = core.read_namespaced_config_map(name, shop.setting("namespace")).data
    assert data is not None
    return str(data["greeting"])


def ready_pods(cluster: Rehearsal, shop: Project) -> int:
    """The ready pods of the shop's ReplicaSet, for which the provider waits: the Deployment's status comes later."""
    apps = client.AppsV1Api(cluster.client())
    [replica_set] = apps.list_namespaced_replica_set(shop.setting("namespace")).to_dict()["items"]
    return int(replica_set["status"]["ready_replicas"])


def names(core: client.CoreV1Api, shop: Project) -> set[str]:
    """The ConfigMaps of the shop, without the one that Kubernetes creates in every namespace."""
    items = core.list_namespaced_config_map(shop.setting("namespace")).to_dict()["items"]
    return {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"}


def test_up_creates_the_programs_resources_and_waits_until_they_are_ready(
    shop: Project, core: client.CoreV1Api, cluster: Rehearsal
) -> None:
    assert greeting(core, shop) == "hello"
    assert shop.outputs() == {"settings": "settings"}
    assert ready_pods(cluster, shop) == 1


def test_a_second_up_changes_nothing(shop: Project) -> None:
    shop.changes_nothing()
    assert "6 unchanged" in shop.up().output


def test_an_edit_is_shown_by_the_preview_and_applied_by_up(
    shop: Project, core: client.CoreV1Api, cluster: Rehearsal
) -> None:
    shop.configure("greeting", "goodbye")
    shop.configure("replicas", "3")
    shown = shop.pulumi("preview", "--diff").output
    assert '"hello" => "goodbye"' in shown
    assert "1 => 3" in shown
    assert greeting(core, shop) == "hello"
    shop.up()
    assert greeting(core, shop) == "goodbye"
    assert ready_pods(cluster, shop) == 3
    shop.changes_nothing()


def test_an_external_change_is_shown_by_refresh_and_reverted_by_up(shop: Project, core: client.CoreV1Api) -> None:
    core.patch_namespaced_config_map("settings", shop.setting("namespace"), {"data": {"greeting": "kilroy"}})
    assert '"hello" => "kilroy"' in shop.pulumi("refresh", "--preview-only", "--diff").output
    shop.pulumi("refresh", "--yes", "--skip-preview")
    assert '"kilroy" => "hello"' in shop.pulumi("preview", "--diff").output
    shop.up()
    assert greeting(core, shop) == "hello"
    shop.changes_nothing()


def test_an_externally_deleted_object_is_created_again(shop: Project, core: client.CoreV1Api) -> None:
    core.delete_namespaced_config_map("settings", shop.setting("namespace"))
    assert "1 deleted" in shop.pulumi("refresh", "--yes", "--skip-preview").output
    assert "1 created" in shop.up().output
    assert greeting(core, shop) == "hello"


def test_a_refresh_without_an_external_change_changes_nothing(shop: Project) -> None:
    shop.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    shop.changes_nothing()


def test_another_name_replaces_the_object(shop: Project, core: client.CoreV1Api) -> None:
    shop.configure("settings", "preferences")
    assert "1 to replace" in shop.pulumi("preview").output
    shop.up()
    assert names(core, shop) == {"preferences"}
    assert shop.outputs()["settings"] == "preferences"


def test_a_secret_is_in_the_cluster_and_nowhere_else(shop: Project, core: client.CoreV1Api) -> None:
    encoded = base64.b64encode(b"tulip-42").decode()
    data = core.read_namespaced_secret("credentials", shop.setting("namespace")).data
    assert data == {"password": encoded}
    shop.pulumi("refresh", "--yes", "--skip-preview")
    printed = shop.pulumi("preview", "--diff").output + shop.pulumi("stack", "export").output
    for plain in ("tulip-42", encoded):
        assert plain not in printed
        assert plain not in shop.files()


def test_destroy_leaves_nothing(shop: Project, core: client.CoreV1Api) -> None:
    shop.pulumi("destroy", "--yes", "--skip-preview")
    assert shop.resources() == []
    assert "shop" not in namespaces(core)
