"""What stacks rely on in Pulumi's Kubernetes provider: who owns fields, whose an object is, which edit replaces it."""

import itertools
import json
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from local import tools
from local.plugins import Selection
from local.rehearsal import Rehearsal
from testbed.harness import Project, Result
from tests.engine.conftest import MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]

NUMBERS = itertools.count(1)

BEGINNING = """
import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap

NAMESPACE = {namespace!r}
cluster = kubernetes.Provider("cluster", **{settings!r})


def here(**options):
    return pulumi.ResourceOptions(provider=cluster, **options)


def named(name, **annotations):
    # An empty mapping would be a change of a custom resource at every update.
    return {{"name": name, "namespace": NAMESPACE, **({{"annotations": annotations}} if annotations else {{}})}}


def web(replicas=1, image="example.com/web:1", **annotations):
    pod = {{"metadata": {{"labels": {{"app": "web"}}}}, "spec": {{"containers": [{{"name": "web", "image": image}}]}}}}
    spec = {{"replicas": replicas, "selector": {{"match_labels": {{"app": "web"}}}}, "template": pod}}
    return {{"metadata": named("web", **annotations), "spec": spec}}


"""


class Stack:
    """A project whose program a test writes in a few lines, and a namespace that the project does not create."""

    def __init__(self, project: Project, cluster: Rehearsal) -> None:
        self.project, self.namespace = project, f"provider-{next(NUMBERS)}"
        self.kubeconfig = str(cluster.kubeconfig)

    def write(self, program: str, **settings: Any) -> None:
        """Writes the program; `settings` are the provider's."""
        beginning = BEGINNING.format(namespace=self.namespace, settings={"cluster_identifier": "test", **settings})
        (self.project.folder / "__main__.py").write_text(beginning + textwrap.dedent(program))

    def up(self, program: str, *, fails: bool = False, **settings: Any) -> Result:
        """`pulumi up` of a program."""
        self.write(program, **settings)
        return self.project.up(fails=fails)

    def preview(self, program: str, **settings: Any) -> Result:
        """`pulumi preview --diff` of a program."""
        self.write(program, **settings)
        return self.project.pulumi("preview", "--diff")

    def kubectl(self, *arguments: str) -> str:
        """Runs kubectl in the namespace as an administrator, without the stack."""
        program = str(tools.KUBERNETES.program("kubectl"))
        command = [program, "--kubeconfig", self.kubeconfig, "--namespace", self.namespace, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def field(self, thing: str, path: str) -> str:
        """A field of an object, e.g. `field("configmap/settings", ".data.greeting")`."""
        return self.kubectl("get", thing, "-o", f"jsonpath={{{path}}}")


@pytest.fixture
def stack(project: MakeProject, cluster: Rehearsal) -> Iterator[Stack]:
    """A stack that is destroyed in the end."""
    stack = Stack(project("", cluster=cluster), cluster)
    stack.kubectl("create", "namespace", stack.namespace)
    yield stack
    stack.project.pulumi("destroy", "--yes", "--skip-preview")
    stack.kubectl("delete", "namespace", stack.namespace, "--wait=false")


@pytest.fixture(scope="module")
def ray_cluster_kind(cluster: Rehearsal) -> Iterator[None]:
    """KubeRay's RayCluster, without its operator."""
    api = client.ApiextensionsV1Api(cluster.client())
    text = (tools.KUBERAY.share("config") / "crd" / "bases" / "ray.io_rayclusters.yaml").read_text()
    definition = yaml.load(text, Loader=yaml.CSafeLoader)
    api.create_custom_resource_definition(definition)
    yield
    api.delete_custom_resource_definition(definition["metadata"]["name"])


@pytest.fixture(scope="session")
def refuses_existing(plugins: Selection) -> bool:
    """Whether the provider refuses to create an object that exists: since 4.29, so the built one does not
    (docs/tools.md)."""
    return all(plugin.kind != "built" for plugin in plugins.plugins)


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


def test_fields_of_other_managers_that_the_program_does_not_set_stay(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data={"a": "%s"}, opts=here())'
    stack.up(program % 1, enable_config_map_mutable=True)
    stack.kubectl("label", "configmap/settings", "owner=them", "--field-manager=their-controller")
    stack.up(program % 2, enable_config_map_mutable=True)
    assert stack.field("configmap/settings", ".metadata.labels.owner") == "them"


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


def test_an_existing_object_is_not_taken_over_since_4_29(stack: Stack, refuses_existing: bool) -> None:
    """Before, its fields are taken over unless that is a conflict."""
    stack.kubectl("create", "configmap", "settings", "--from-literal=greeting=external")
    program = 'ConfigMap("settings", metadata=named("settings"), data={"greeting": "%s"}, opts=here())'
    refused = stack.up(program % "ours", fails=True).output
    assert ("already exists" if refuses_existing else 'conflict with "kubectl-create"') in refused
    assert stack.field("configmap/settings", ".data.greeting") == "external"
    stack.up(program % "external", fails=refuses_existing)


def test_a_renamed_resource_needs_an_alias_to_keep_its_object(stack: Stack, refuses_existing: bool) -> None:
    """Without one, the update is refused since 4.29. Before, the object is "created" once more, and then deleted."""
    program = 'ConfigMap("%s", metadata=named("settings"), opts=here(%s))'
    stack.up(program % ("old", ""))
    uid = stack.field("configmap/settings", ".metadata.uid")
    stack.up(program % ("new", 'aliases=[pulumi.Alias(name="old")]'))
    assert stack.field("configmap/settings", ".metadata.uid") == uid
    stack.up(program % ("newer", ""), fails=refuses_existing)
    left = stack.kubectl("get", "configmap/settings", "--ignore-not-found", "--output=name")
    assert bool(left) == refuses_existing


def test_only_another_cluster_replaces_the_objects(stack: Stack) -> None:
    program = 'ConfigMap("settings", metadata=named("settings"), data={"a": "1"}, opts=here())'
    stack.up(program)
    kubeconfig = Path(stack.kubeconfig).read_text()
    same = stack.preview(program, kubeconfig=kubeconfig).output
    assert "kubeconfig" in same
    assert "replace" not in same
    assert "2 to replace" in stack.preview(program, cluster_identifier="another").output
