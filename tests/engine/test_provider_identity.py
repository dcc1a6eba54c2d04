"""Names of objects, and edits that replace them."""

from collections.abc import Iterator

import pytest

from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeProject
from tests.engine.provider_stack import Stack, provider_stack

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(180),
]


@pytest.fixture
def stack(project: MakeProject, cluster: Rehearsal) -> Iterator[Stack]:
    with provider_stack(project, cluster) as made:
        yield made


def test_a_name_that_the_program_does_not_set_is_generated_once_and_kept(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata={"namespace": NAMESPACE}, data={"a": "%s"}, opts=here())'
    stack.up(program % 1, enable_config_map_mutable=True)
    (name,) = stack.names("configmaps")
    assert name.startswith("settings-")
    stack.up(program % 2, enable_config_map_mutable=True)
    assert stack.names("configmaps") == {name}


def test_a_config_map_is_replaced_unless_the_provider_treats_it_as_mutable(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata={"namespace": NAMESPACE}, data={"a": "%s"}, opts=here())'
    stack.up(program % 1)
    (before,) = stack.names("configmaps")
    assert "1 to replace" in stack.preview(program % 2).output
    stack.up(program % 2)
    (after,) = stack.names("configmaps")
    assert after != before


def test_an_object_with_a_name_in_the_program_is_deleted_before_it_is_replaced(stack: Stack) -> None:
    stack.up('Deployment("web", **web(), opts=here())')
    before = stack.field("deployment/web", ".metadata.uid")
    edit = """
        body = web()
        body["spec"]["template"]["metadata"]["labels"] = {"app": "shop"}
        body["spec"]["selector"] = {"match_labels": {"app": "shop"}}
        Deployment("web", **body, opts=here())
    """
    assert "1 to replace" in stack.preview(edit).output
    assert "1 replaced" in stack.up(edit).output
    assert stack.field("deployment/web", ".metadata.uid") != before


def test_another_namespace_is_another_object(stack: Stack) -> None:
    program = """
        Namespace("other", metadata={"name": NAMESPACE + "-b"}, opts=here())
        ConfigMap("settings", metadata={"name": "settings", "namespace": NAMESPACE + "%s"}, opts=here())
    """
    stack.up(program % "")
    assert "1 to replace" in stack.preview(program % "-b").output
    stack.up(program % "-b")
    assert stack.names("configmaps") == set()


def test_an_existing_object_is_not_taken_over(stack: Stack) -> None:
    stack.kubectl("create", "configmap", "settings", "--from-literal=greeting=external")
    program = 'ConfigMap("settings", metadata=named("settings"), data={"greeting": "ours"}, opts=here())'
    refused = stack.up(program, fails=True).output
    assert "already exists" in refused
    assert "pulumi import" in refused
    assert stack.field("configmap/settings", ".data.greeting") == "external"
    assert "kubectl-create" in stack.up(program, fails=True, upsert_existing_objects=True).output
    stack.up(program, upsert_existing_objects=True, enable_patch_force=True)
    assert stack.field("configmap/settings", ".data.greeting") == "ours"


def test_a_renamed_resource_needs_an_alias_to_keep_its_object(stack: Stack) -> None:
    stack.up('ConfigMap("old", metadata=named("settings"), opts=here())')
    uid = stack.field("configmap/settings", ".metadata.uid")
    assert "already exists" in stack.up('ConfigMap("new", metadata=named("settings"), opts=here())', fails=True).output
    alias = 'ConfigMap("new", metadata=named("settings"), opts=here(aliases=[pulumi.Alias(name="old")]))'
    stack.up(alias)
    assert stack.field("configmap/settings", ".metadata.uid") == uid


def test_an_existing_object_is_imported_as_it_is(stack: Stack) -> None:
    stack.kubectl("create", "configmap", "settings", "--from-literal=greeting=hello")
    uid = stack.field("configmap/settings", ".metadata.uid")
    arguments = 'metadata=named("settings"), data={"greeting": "hello"}'
    imported = stack.up(f'ConfigMap("settings", {arguments}, opts=here(import_=NAMESPACE + "/settings"))').output
    assert "1 imported" in imported
    stack.project.changes_nothing()
    assert stack.field("configmap/settings", ".metadata.uid") == uid


def test_an_object_is_read_without_being_managed(stack: Stack) -> None:
    stack.kubectl("create", "configmap", "settings", "--from-literal=greeting=hello")
    stack.up("""
        settings = ConfigMap.get("settings", NAMESPACE + "/settings", opts=here())
        pulumi.export("greeting", settings.data["greeting"])
    """)
    assert stack.project.outputs() == {"greeting": "hello"}
    stack.up("")
    assert stack.names("configmaps") == {"settings"}


def test_the_error_for_a_list_of_objects_names_the_alternative(stack: Stack) -> None:
    refused = stack.up('kubernetes.core.v1.ConfigMapList("all", items=[], opts=here())', fails=True).output
    assert "Use the underlying resource type instead" in refused
