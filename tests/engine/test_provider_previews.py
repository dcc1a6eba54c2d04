"""Known and unknown values of previews."""

from collections.abc import Iterator
from pathlib import Path

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


KIND = """
    definition = kubernetes.apiextensions.v1.CustomResourceDefinition(
        "shelves",
        metadata={"name": "shelves.example.com"},
        spec={
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "shelves", "singular": "shelf", "kind": "Shelf"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"open_apiv3_schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}},
            }],
        },
        opts=here(),
    )
    shelf = CustomResource(
        "shelf",
        api_version="example.com/v1", kind="Shelf", metadata=named("shelf"), spec={"books": 3},
        opts=here(depends_on=[definition]),
    )
    pulumi.export("books", shelf.spec["books"])
    pulumi.export("uid", shelf.metadata["uid"])
"""


def test_a_custom_resource_is_previewed_and_created_with_its_definition_in_one_run(stack: Stack) -> None:
    stack.preview(KIND)
    stack.up(KIND)
    assert stack.project.outputs()["books"] == 3
    assert stack.field("shelf/shelf", ".metadata.uid") == stack.project.outputs()["uid"]
    stack.project.changes_nothing()
    stack.project.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_a_custom_resource_without_its_definition_can_be_removed(stack: Stack) -> None:
    stack.up(KIND)
    stack.kubectl("delete", "crd", "shelves.example.com")
    stack.up("")


def test_an_object_can_be_previewed_into_a_namespace_of_the_same_program(stack: Stack) -> None:
    program = """
        inner = Namespace("inner", metadata={"name": NAMESPACE + "-inner"}, opts=here())
        settings = ConfigMap("settings", metadata={"namespace": inner.metadata.name}, opts=here())
        ConfigMap("copy", metadata=named("copy"), data={"uid": settings.metadata.uid}, opts=here())
    """
    assert "5 to create" in stack.preview(program).output
    stack.up(program)
    assert stack.field("configmap/copy", ".data.uid")


def test_the_preview_fails_if_the_server_would_refuse_the_object(stack: Stack) -> None:
    program = 'Service("front", metadata=named("front"), spec={"ports": [{"port": 99999}]}, opts=here())'
    assert "must be between 1 and 65535" in stack.preview(program, fails=True).output


def test_the_same_amount_written_differently_is_not_a_change(stack: Stack) -> None:
    program = """
        body = web()
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "%s", "memory": "%s"}}
        Deployment("web", **body, opts=here())
    """
    stack.up(program % ("1000m", "1024Mi"))
    stack.project.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    stack.project.changes_nothing()
    stack.write(program % ("1", "1Gi"))
    stack.project.changes_nothing()


def test_an_externally_changed_secret_is_reverted_without_being_shown(stack: Stack) -> None:
    stack.up('Secret("door", metadata=named("door"), string_data={"code": "tulip-42"}, opts=here())')
    stack.kubectl("patch", "secret/door", "-p", '{"stringData": {"code": "rose-99"}}')
    shown = stack.project.pulumi("refresh", "--yes", "--skip-preview", "--diff").output
    assert "~ data" in shown
    assert "stringData" not in shown
    assert "rose-99" not in shown + stack.project.files()
    assert "1 replaced" in stack.project.up().output
    assert stack.field("secret/door", ".data.code") == "dHVsaXAtNDI="


def test_without_a_cluster_a_preview_works_and_an_update_reports_the_cause(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data={"a": "1"}, opts=here())'
    nowhere = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    nowhere += "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a}]\ncurrent-context: a\n"
    assert "3 to create" in stack.preview(program, kubeconfig=nowhere).output
    assert "cluster is unreachable" in stack.up(program, fails=True, kubeconfig=nowhere).output


def test_only_another_cluster_replaces_the_objects(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data={"a": "1"}, opts=here())'
    stack.up(program)
    kubeconfig = Path(stack.kubeconfig).read_text()
    same = stack.preview(program, kubeconfig=kubeconfig).output
    assert "kubeconfig" in same
    assert "replace" not in same
    assert "2 to replace" in stack.preview(program, cluster_identifier="another").output
