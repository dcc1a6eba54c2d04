"""Stacks of the program itself on a control plane, for tests."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import yaml
from kubernetes import client, watch

from components.crds.definitions import whole
from components.manifest_files import parsed
from components.operator.manifests import operator_objects
from components.operator.settings import NAME, OperatorSettings
from core.nodes import NodePool
from local import paths, tools
from local.plugins import Selection
from local.pulumi import PROJECT, RehearsalStack
from local.rehearsal import Rehearsal
from testbed.harness import Project, Result
from testbed.kubectl import Kubectl

Edit = Callable[[dict[str, Any]], None]

_READING = frozenset({"preview", "stack"})
"""Commands that change neither the cluster nor the state."""

DEV = paths.ROOT / "Pulumi.dev.yaml"


_COULD_BE_LEFT = {
    "namespace": "/api/v1/namespaces",
    "definition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "role": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "binding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "policy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "mutating webhook": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "validating webhook": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
"""Kinds without a namespace, by their names in `existing`."""

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Tests poll: whole definitions of KubeRay are megabytes."""


class Stack(Project):
    """A stack of this checkout's program. Its file is a copy of `original`, which a test may edit."""

    def __init__(self, name: str, folder: Path, cluster: Rehearsal, plugins: Selection, original: Path = DEV) -> None:
        self.name = name
        self._original = original
        self.file = folder / f"Pulumi.{name}.yaml"
        shutil.copy(original, self.file)
        self._stack = RehearsalStack(cluster, plugins, name, self.file)
        self._stack.prepare()
        self._settled: str | None = None
        """The stack file when the cluster last matched it, if nothing was changed since."""
        super().__init__(paths.ROOT, self._stack.environment)

    def edit(self, change: Edit) -> None:
        """Changes the settings in the stack file."""
        content = yaml.safe_load(self.file.read_text())
        settings = {key.partition(":")[2]: value for key, value in content["config"].items()}
        change(settings)
        content["config"] = {f"{PROJECT}:{key}": value for key, value in settings.items()}
        self.file.write_text(yaml.safe_dump(content))
        self._stack.prepare()

    def start(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> "subprocess.Popen[str]":
        if arguments[0] not in _READING:
            self._settled = None
        return super().start(*arguments, environment=environment)

    def start_recovery(self, *arguments: str) -> "subprocess.Popen[str]":
        self._settled = None
        return super().start_recovery(*arguments)

    def pulumi(
        self, *arguments: str, fails: bool = False, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Result:
        result = super().pulumi(*arguments, fails=fails, environment=environment)
        if not fails and (arguments[0] == "up" or "--expect-no-changes" in arguments):
            self._settled = self.file.read_text()
        return result

    def settle(self, *edits: Edit) -> "Stack":
        """The stack after `pulumi up` of the original file with these edits, whatever was done to it before.

        It runs `up` unless the last command has shown that there is nothing to do. So a test that changes something
        without Pulumi has to restore it.
        """
        shutil.copy(self._original, self.file)
        for each in edits or (lambda _: None,):
            self.edit(each)
        if self._settled != self.file.read_text():
            self.up()
        return self

    def destroy(self) -> None:
        """`pulumi destroy`."""
        self.pulumi("destroy", "--yes", "--skip-preview")


@contextmanager
def rehearsing(run: Path, pool: NodePool) -> Iterator[Rehearsal]:
    """A control plane with simulated nodes, which is removed completely."""
    rehearsal = Rehearsal(run)
    try:
        rehearsal.start([pool])
        yield rehearsal
    finally:
        rehearsal.stop(clean=True)


def install_operator(cluster: Rehearsal) -> None:
    """Installs the operator like a stack, but without Pulumi."""
    settings = OperatorSettings(location=str(tools.KUBERAY.share("config") / "default"))
    does = Kubectl(cluster).does
    # Rendered by the cluster's kubectl: a machine may have none on its PATH.
    tree = whole(parsed(does("kustomize", settings.tree), settings.tree))
    definitions = [body for body in tree if body["kind"] == "CustomResourceDefinition"]
    objects = [*definitions, *(body for stage in operator_objects(tree, settings) for body in stage)]
    does("apply", "--server-side", "--filename=-", bodies=objects)
    deployment = (f"--namespace={settings.namespace}", f"deployment/{NAME}")
    does("wait", "--for=condition=Available", "--timeout=300s", *deployment)


def on_operator(file: Path) -> Path:
    """Writes the dev stack's file, with the existing operator instead of its own, and otherwise unchanged."""
    content = yaml.safe_load(DEV.read_text())
    content["config"][f"{PROJECT}:operator"] = {"install": "existing"}
    content["config"][f"{PROJECT}:priorityClasses"] = {"install": "manifests"}
    file.write_text(yaml.safe_dump(content))
    return file


WORKERS = {"groupName": "cpu", "cpu": 1, "memory": "4Gi"}
"""A worker group of a job or service. KubeRay writes the list of these to add its finalizer, and then owns it."""


class Rays:
    """The RayClusters, or the objects of another kind of KubeRay, as kubectl shows them."""

    def __init__(self, cluster: Rehearsal, plural: str = "rayclusters", api: client.ApiClient | None = None) -> None:
        """`api`: a client with the rights of somebody; None for all rights."""
        self._api = client.CustomObjectsApi(api or cluster.client())
        self._plural = plural

    def read(self, namespace: str, name: str) -> dict[str, Any]:
        found = self._api.get_namespaced_custom_object("ray.io", "v1", namespace, self._plural, name)
        return cast("dict[str, Any]", found)

    def named(self, namespace: str, label: str) -> list[dict[str, Any]]:
        """Those with a label."""
        found: Any = self._api.list_namespaced_custom_object(
            "ray.io", "v1", namespace, self._plural, label_selector=label
        )
        return list(found["items"])

    def exists(self, namespace: str, name: str) -> bool:
        try:
            return bool(self.read(namespace, name))
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False

    def version(self) -> str:
        """The API server's resourceVersion of all of them together."""
        found: Any = self._api.list_cluster_custom_object("ray.io", "v1", self._plural, limit=1)
        return str(found["metadata"]["resourceVersion"])

    def changes(self, since: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the API server has written since a version, in its order: ADDED, MODIFIED or DELETED, and the object."""
        list_all = self._api.list_cluster_custom_object
        where = {"group": "ray.io", "version": "v1", "plural": self._plural}
        for event in watch.Watch().stream(list_all, **where, resource_version=since, timeout_seconds=2):
            yield event["type"], event["object"]

    def create(self, namespace: str, body: dict[str, Any], **options: Any) -> None:
        self._api.create_namespaced_custom_object("ray.io", "v1", namespace, self._plural, body, **options)

    def patch(self, namespace: str, name: str, body: Any, **options: Any) -> None:
        self._api.patch_namespaced_custom_object("ray.io", "v1", namespace, self._plural, name, body, **options)

    def delete(self, namespace: str, name: str, **options: Any) -> None:
        self._api.delete_namespaced_custom_object("ray.io", "v1", namespace, self._plural, name, **options)


def training(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the stack's RayCluster."""
    return cast("dict[str, Any]", settings["tenants"][0]["clusters"][0])


def existing(cluster: Rehearsal) -> set[str]:
    """Objects that a stack could leave behind in the cluster, each as `kind name`."""
    api = cluster.client()

    def items(path: str) -> list[dict[str, Any]]:
        answer = api.call_api("GET", f"{api.configuration.host}{path}", {"Accept": _METADATA})
        return list(json.loads(answer.read())["items"] or ())

    return {f"{kind} {item['metadata']['name']}" for kind, path in _COULD_BE_LEFT.items() for item in items(path)}
