"""Owners of fields: conflicts, force, ignored changes, and an autoscaler's fields."""

import json
from collections.abc import Iterator

import pytest
import yaml
from kubernetes import client

from local import tools
from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeProject
from tests.engine.provider_stack import Stack, provider_stack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(180)]


@pytest.fixture
def stack(project: MakeProject, cluster: Rehearsal) -> Iterator[Stack]:
    with provider_stack(project, cluster) as made:
        yield made


@pytest.fixture(scope="module")
def ray_cluster_kind(cluster: Rehearsal) -> Iterator[None]:
    """KubeRay's RayCluster, without its operator."""
    api = client.ApiextensionsV1Api(cluster.client())
    text = (tools.KUBERAY.share("config") / "crd" / "bases" / "ray.io_rayclusters.yaml").read_text()
    definition = yaml.load(text, Loader=yaml.CSafeLoader)
    api.create_custom_resource_definition(definition)
    yield
    api.delete_custom_resource_definition(definition["metadata"]["name"])


RAY_CLUSTER = """
    body = {{"groupName": "workers", "replicas": 0, "minReplicas": 0, "maxReplicas": {most}, "rayStartParams": {{}}}}
    body["template"] = {{"spec": {{"containers": [{{"name": "worker", "image": "rayproject/ray:2.60.0"}}]}}}}
    head = {{"rayStartParams": {{}}, "template": body["template"]}}
    CustomResource(
        "cluster",
        api_version="ray.io/v1",
        kind="RayCluster",
        metadata=named("training", **{annotations}),
        spec={{"headGroupSpec": head, "workerGroupSpecs": [body]}},
        opts=here({options}),
    )
"""


def scale_workers(stack: Stack, replicas: int) -> None:
    """Sends a JSON patch like Ray's autoscaler, with the field manager of its HTTP library."""
    patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": replicas}]
    manager = "--field-manager=python-requests"
    stack.kubectl("patch", "raycluster/training", "--type=json", "-p", json.dumps(patch), manager)


def test_the_conflict_about_a_field_of_another_manager_names_both(stack: Stack) -> None:
    stack.up('Deployment("web", **web(replicas=1), opts=here())')
    stack.kubectl("scale", "deployment/web", "--replicas=2")
    refused = stack.up('Deployment("web", **web(replicas=3), opts=here())', fails=True).output
    assert "conflict" in refused
    assert '"kubectl" with subresource "scale"' in refused
    assert ".spec.replicas" in refused
    assert stack.field("deployment/web", ".spec.replicas") == "2"
    forced = 'Deployment("web", **web(replicas=3, **{"pulumi.com/patchForce": "true"}), opts=here())'
    stack.up(forced)
    assert stack.field("deployment/web", ".spec.replicas") == "3"


def test_the_program_takes_over_fields_of_kubectl_edit(stack: Stack) -> None:
    program = 'Deployment("web", **web(image="example.com/web:%s"), opts=here())'
    stack.up(program % 1)
    stack.kubectl("set", "image", "deployment/web", "web=example.com/web:hotfix")
    stack.project.pulumi("refresh", "--yes", "--skip-preview")
    stack.project.up()
    assert stack.field("deployment/web", ".spec.template.spec.containers[0].image") == "example.com/web:1"
    stack.kubectl("set", "image", "deployment/web", "web=example.com/web:hotfix")
    stack.up(program % 2)
    assert stack.field("deployment/web", ".spec.template.spec.containers[0].image") == "example.com/web:2"


def test_fields_of_other_managers_that_the_program_does_not_set_stay(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data={"a": "%s"}, opts=here())'
    stack.up(program % 1, enable_config_map_mutable=True)
    stack.kubectl("label", "configmap/settings", "owner=them", "--field-manager=their-controller")
    stack.up(program % 2, enable_config_map_mutable=True)
    assert stack.field("configmap/settings", ".metadata.labels.owner") == "them"


def test_a_field_that_the_program_does_not_set_any_more_is_removed(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data=%s, opts=here())'
    stack.up(program % '{"a": "1", "b": "2"}', enable_config_map_mutable=True)
    stack.up(program % '{"a": "1"}', enable_config_map_mutable=True)
    assert json.loads(stack.field("configmap/settings", ".data")) == {"a": "1"}


def test_an_ignored_change_leaves_the_field_to_its_autoscaler(stack: Stack) -> None:
    program = (
        'Deployment("web", **web(replicas=1, image="example.com/web:%s"), opts=here(ignore_changes=["spec.replicas"]))'
    )
    stack.up(program % 1)
    stack.kubectl("scale", "deployment/web", "--replicas=2")
    stack.up(program % 2)
    assert stack.field("deployment/web", ".spec.replicas") == "2"
    assert stack.field("deployment/web", ".spec.template.spec.containers[0].image") == "example.com/web:2"


@pytest.mark.usefixtures("ray_cluster_kind")
def test_an_autoscaled_ray_cluster_cannot_be_edited_without_force(stack: Stack) -> None:
    """Server-side apply treats `workerGroupSpecs` as one value, which the autoscaler owns now."""
    stack.up(RAY_CLUSTER.format(most=2, annotations={}, options=""))
    scale_workers(stack, 1)
    stack.project.changes_nothing()
    refused = stack.up(RAY_CLUSTER.format(most=4, annotations={}, options=""), fails=True).output
    assert "python-requests" in refused
    assert ".spec.workerGroupSpecs" in refused


@pytest.mark.usefixtures("ray_cluster_kind")
@pytest.mark.parametrize("options", ["", 'ignore_changes=["spec.workerGroupSpecs[0].replicas"]'])
def test_a_forced_edit_of_an_autoscaled_ray_cluster_resets_its_replicas(stack: Stack, options: str) -> None:
    stack.up(RAY_CLUSTER.format(most=2, annotations={}, options=options))
    scale_workers(stack, 1)
    stack.up(RAY_CLUSTER.format(most=4, annotations={"pulumi.com/patchForce": "true"}, options=options))
    assert stack.field("raycluster/training", ".spec.workerGroupSpecs[0].maxReplicas") == "4"
    assert stack.field("raycluster/training", ".spec.workerGroupSpecs[0].replicas") == "0"
