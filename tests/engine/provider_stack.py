"""A stack on the control plane whose program a test writes, and changes, in a few lines."""

import itertools
import json
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from local import tools
from local.rehearsal import Rehearsal
from testbed.harness import Project, Result

_NUMBERS = itertools.count(1)

_BEGINNING = """
import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment, StatefulSet
from pulumi_kubernetes.batch.v1 import Job
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret, Service

NAMESPACE = {namespace!r}
cluster = kubernetes.Provider("cluster", **{settings!r})


def here(**options):
    return pulumi.ResourceOptions(provider=cluster, **options)


def web(replicas=1, image="example.com/web:1", **annotations):
    pod = {{"metadata": {{"labels": {{"app": "web"}}}}, "spec": {{"containers": [{{"name": "web", "image": image}}]}}}}
    return {{
        "metadata": {{"name": "web", "namespace": NAMESPACE, "annotations": annotations}},
        "spec": {{"replicas": replicas, "selector": {{"match_labels": {{"app": "web"}}}}, "template": pod}},
    }}


def named(name, **annotations):
    # Pulumi's own plugin applies an empty mapping of a custom resource at every update (docs/stand-ins.md).
    return {{"name": name, "namespace": NAMESPACE, **({{"annotations": annotations}} if annotations else {{}})}}


"""


class Stack:
    """A project, and a namespace that the project does not create."""

    def __init__(self, project: Project, cluster: Rehearsal, namespace: str) -> None:
        self.project, self.namespace = project, namespace
        self.kubeconfig = str(cluster.kubeconfig)

    def write(self, program: str, **settings: Any) -> None:
        """Writes the program; `settings` are the provider's."""
        beginning = _BEGINNING.format(namespace=self.namespace, settings={"cluster_identifier": "test", **settings})
        (self.project.folder / "__main__.py").write_text(beginning + textwrap.dedent(program))

    def up(self, program: str, *arguments: str, fails: bool = False, **settings: Any) -> Result:
        """`pulumi up` of a program."""
        self.write(program, **settings)
        return self.project.up(*arguments, fails=fails)

    def preview(self, program: str, fails: bool = False, **settings: Any) -> Result:
        """`pulumi preview --diff` of a program."""
        self.write(program, **settings)
        return self.project.pulumi("preview", "--diff", fails=fails)

    def kubectl(self, *arguments: str) -> str:
        """Runs kubectl in the namespace as an administrator, without the stack."""
        program = str(tools.KUBERNETES.program("kubectl"))
        command = [program, "--kubeconfig", self.kubeconfig, "--namespace", self.namespace, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def names(self, kind: str) -> set[str]:
        """The objects of a kind in the namespace, without the ConfigMap that Kubernetes creates in each."""
        found = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        return {item["metadata"]["name"] for item in found} - {"kube-root-ca.crt"}

    def field(self, thing: str, path: str) -> str:
        """A field of an object, e.g. `field("configmap/settings", ".data.greeting")`."""
        return self.kubectl("get", thing, "-o", f"jsonpath={{{path}}}")


@contextmanager
def provider_stack(project: Callable[..., Project], cluster: Rehearsal) -> Iterator[Stack]:
    """A stack that is destroyed in the end."""
    stack = Stack(project("", cluster=cluster), cluster, f"provider-{next(_NUMBERS)}")
    stack.kubectl("create", "namespace", stack.namespace)
    yield stack
    stack.project.pulumi("destroy", "--yes", "--skip-preview")
    stack.kubectl("delete", "namespace", stack.namespace, "--wait=false")
