"""The platform on the real node, as a user and an operator of it see it."""

import base64
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from core.stack_file import PROJECT
from local import paths
from local.control_plane import write_kubeconfig
from local.plugins import Mode, Selection, select
from local.real_node import RealNode
from local.rehearsal import Rehearsal
from stacks.commands.images.used import used
from stacks.load import load
from stacks.objects.stack import images_of
from testbed.platform_stack import Stack
from testbed.pods import mirror
from testbed.pods.node import Node, is_ready
from testbed.pods.steps import Steps

FILE = paths.ROOT / "Pulumi.pods.yaml"

NAMESPACE = "team-a"

CLUSTER = "training"

SECURED = "secured"
"""A RayCluster like it, with TLS."""

REVIEWED = "reviewed"
"""A RayCluster with only a head, which requires tokens of Kubernetes."""

GANGS = ("first", "second")
"""Names of RayClusters that a test creates."""

USER = "may"
"""An account in the tenant's namespace that may use the RayCluster REVIEWED."""

SUBMITTER = "submits"
"""An account in the tenant's namespace that may create RayJobs on the RayCluster CLUSTER."""

SMALL = {"requests": {"cpu": "50m", "memory": "200Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}
"""Resources of a pod that submits a job, where many pods share a machine of two cores."""

Edit = Callable[[dict[str, Any]], None]
"""Changes settings of a stack file."""


class PodsStack(Stack):
    """The stack file for real pods. Its RayCluster has to start within an `up`."""

    seconds = 600.0


class Platform(Node):
    """The stack on its node."""

    def __init__(self, rehearsal: Rehearsal, stack: PodsStack) -> None:
        super().__init__(rehearsal)
        self.stack = stack

    @classmethod
    def of(cls, rehearsal: Rehearsal, name: str, folder: Path, edit: Edit) -> "Platform":
        """The stack file for real pods, edited, as a stack of that name on a node. It is not created yet."""
        stack = PodsStack(name, folder, rehearsal, plugins(), FILE)
        stack.edit(edit)
        return cls(rehearsal, stack)

    def stacks(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """The output of `ray-platform`. `kubeconfig`: somebody else's."""
        command, stack = [sys.executable, "-m", "stacks", *arguments], self.stack
        environment = stack.environment | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
        done = subprocess.run(command, cwd=stack.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def kubeconfig_of(self, account: str) -> Path:
        """A new account in the tenant's namespace, and a kubeconfig with its token alone."""
        self.kubectl("create", "serviceaccount", "-n", NAMESPACE, account)
        user = {"token": self.kubectl("create", "token", "-n", NAMESPACE, account).strip()}
        made = self.rehearsal.run / f"{account}.kubeconfig"
        write_kubeconfig(made, self.rehearsal.run, self.rehearsal.client().configuration.host, user)
        return made

    def runs(self, *arguments: str) -> str:
        """The output of `ray-platform runs`."""
        return self.stacks("runs", str(self.stack.file), *arguments)

    def recorded_runs(self) -> dict[str, dict[str, Any]]:
        """The runs whose records are complete, by name."""
        shown = json.loads(self.runs("--format", "json"))
        assert shown["problems"] == {}, shown["problems"]
        return {each["name"]: each for each in shown["runs"] if each["complete"]}

    def metric_of_operator(self, name: str) -> dict[str, dict[str, str]]:
        """The labels of the series of a metric of the KubeRay operator that are 1, by the names of their objects."""
        with self.forwarded("kuberay-operator", 8080, "ray-system") as address:
            text = httpx.get(f"{address}/metrics", trust_env=False).raise_for_status().text
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        return {each.labels["name"]: each.labels for each in samples if each.name == name and each.value == 1}

    def token(self, cluster: str = CLUSTER) -> str:
        """The token that a RayCluster requires."""
        secret = json.loads(self.kubectl("get", "secret", "-n", NAMESPACE, cluster, "-o", "json"))
        return base64.b64decode(secret["data"]["auth_token"]).decode()

    def head(self, cluster: str = CLUSTER) -> str | None:
        """The name of the head's pod once it is Ready."""
        heads = self.pods(f"ray.io/node-type=head,ray.io/cluster={cluster}", NAMESPACE)
        return next((name for name, pod in heads.items() if is_ready(pod)), None)

    def workers(self) -> dict[str, str]:
        """The group of each worker's pod, of the stack's own RayCluster."""
        found = self.pods(f"ray.io/node-type=worker,ray.io/cluster={CLUSTER}", NAMESPACE)
        return {name: pod["metadata"]["labels"]["ray.io/group"] for name, pod in found.items()}

    def in_head(self, *command: str, given: str = "", container: str = "ray-head", cluster: str = CLUSTER) -> str:
        """The output of a command in the head."""
        head = self.head(cluster)
        assert head is not None, "the head is not ready"
        return self.kubectl("exec", "-i", "-n", NAMESPACE, head, "-c", container, "--", *command, given=given)

    def start_in_head(self, script: str, *arguments: str) -> "subprocess.Popen[str]":
        """A Python script that runs in the head's Ray container while the test continues, with a pipe to its input."""
        head = self.head()
        assert head is not None, "the head is not ready"
        return self.start_in(head, "ray-head", script, *arguments)

    def start_in(
        self, pod: str, container: str, script: str, *arguments: str, namespace: str = NAMESPACE
    ) -> "subprocess.Popen[str]":
        """Such a script in any pod."""
        # Unbuffered, so that a test can wait for a line.
        python = ["python", "-u", "-c", textwrap.dedent(script)]
        return subprocess.Popen(
            self.command("exec", "-i", "-n", namespace, pod, "-c", container, "--", *python, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @contextmanager
    def forwarded(self, service: str, port: int, namespace: str = NAMESPACE) -> Iterator[str]:
        """The address of a Service's port on this machine, while it is forwarded."""
        command = self.command("port-forward", "-n", namespace, f"service/{service}", f":{port}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                address = re.search(r"127\.0\.0\.1:\d+", line)
                assert address is not None, f"kubectl port-forward printed {line!r}"
                yield f"http://{address[0]}"
            finally:
                process.terminate()


def pods_cluster() -> dict[str, Any]:
    """The settings of the RayCluster in the stack file for real pods, as a model for others."""
    content = yaml.safe_load(FILE.read_text())
    found: dict[str, Any] = content["config"][f"{PROJECT}:tenants"][0]["clusters"][0]
    return found


def plugins() -> Selection:
    """The plugins of Pulumi that the caller of the tests has chosen."""
    return select(cast("Mode", os.environ.get("PLUGINS", "auto")))


@contextmanager
def brought_up(
    folder: Path, steps: Steps, edit: Edit, further: Iterable[str] = (), nodes: int = 1
) -> Iterator[Platform]:
    """The stack for real pods, edited, on a node of its own, or several. `further`: images that later edits need. The
    nodes pull what their stack has on the mirror, and have all other images."""
    rehearsal = Rehearsal(folder / "run", "real")
    rehearsal.placement = RealNode(rehearsal.run, nodes)
    platform = Platform.of(rehearsal, "pods", folder, edit)
    try:
        settings = load(platform.stack.file)
        mirrored = [image for image in used(settings).images if image.pulled.startswith(mirror.REGISTRY)]
        images = {*images_of(settings), *further} - {image.pulled for image in mirrored}
        rehearsal.placement.check(images)
        with steps.step("node: from nothing to Ready"):
            rehearsal.start(settings.nodes)
        with steps.step("load the stack's images"):
            rehearsal.placement.load(images)
        if mirrored:
            with steps.step("copy images to a mirror"):
                mirror.serve(rehearsal)
                mirror.fill(rehearsal, platform.stack.file, mirrored)
        try:
            with steps.step("`pulumi up`"):
                platform.stack.up()
        except BaseException as error:
            error.add_note(platform.evidence())
            raise
        yield platform
    finally:
        rehearsal.stop(clean=True)
