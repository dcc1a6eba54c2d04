"""The measured programs: this checkout, another commit, and a flat program."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from core.body import Body
from core.nodes import NodePool
from local import paths
from local.plugins import Selection
from local.pulumi import PROJECT
from local.rehearsal import Rehearsal
from testbed.harness import Project
from testbed.kubectl import Kubectl
from testbed.platform_stack import DEV, Stack

TENANTS_A_NODE = 8
"""Number of heads that fit on a node of the dev stack."""

DEFINITION = "CustomResourceDefinition"


def stack_of(file: Path, tenants: int) -> NodePool:
    """Writes the stack file of dev with this number of tenants, each with users, a quota and a RayCluster.

    Returns the nodes that they need.
    """
    content = yaml.safe_load(DEV.read_text())
    nodes, [first] = content["config"][f"{PROJECT}:nodes"], content["config"][f"{PROJECT}:tenants"]
    nodes[0]["count"] = max(nodes[0]["count"], -(-tenants // TENANTS_A_NODE))
    if tenants > 1:
        own = {"admins": ["group:leads"], "users": ["group:people"], "quota": {"gpus": 8, "pods": 40}}
        content["config"][f"{PROJECT}:tenants"] = [
            {**first, **own, "name": f"team-{number:04}"} for number in range(tenants)
        ]
    file.write_text(yaml.safe_dump(content))
    return NodePool.model_validate(nodes[0])


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """A worktree of another commit, with the virtual environment of this one."""
    git = ("git", "-C", str(paths.ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        (folder / ".venv").symlink_to(paths.ROOT / ".venv")
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def of_checkout(root: Path, folder: Path, cluster: Rehearsal, plugins: Selection, file: Path) -> Project:
    """The program of a checkout."""
    project = Project(root, Stack("measured", folder, cluster, plugins, original=file).environment)
    project.name = "measured"
    return project


def flat(folder: Path, cluster: Rehearsal, plugins: Selection, bodies: Sequence[Body], definitions: bool) -> Project:
    """The flat program. `definitions`: whether it has the CustomResourceDefinitions; otherwise they exist before."""
    folder.mkdir()
    project = Project.make(folder, Path(__file__).with_name("flat.py"), plugins)
    file = folder / "bodies.json"
    if not definitions:
        kubectl = Kubectl(cluster)
        crds = [body for body in bodies if body["kind"] == DEFINITION]
        kubectl.does("apply", "--server-side", "--filename=-", bodies=crds)
        names = [f"crd/{body['metadata']['name']}" for body in crds]
        kubectl.does("wait", "--for=condition=Established", "--timeout=60s", *names)
    file.write_text(json.dumps([body for body in bodies if definitions or body["kind"] != DEFINITION]))
    project.environment |= {"BODIES": str(file), "KUBECONFIG": str(cluster.kubeconfig)}
    return project


def bodies_of(project: Project, cluster: Rehearsal) -> list[Body]:
    """The objects of a stack as its program sent them: definitions first, then namespaces, then all others."""
    sent = [each["inputs"] for each in project.resources() if each["type"].startswith("kubernetes:")]
    others = [body for body in sent if body["kind"] != DEFINITION]
    return [*_definitions(cluster), *sorted(others, key=lambda body: body["kind"] != "Namespace")]


def _definitions(cluster: Rehearsal) -> list[Body]:
    """The live definitions, which may be missing in the state of the stack."""
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": DEFINITION,
            "metadata": {key: body["metadata"][key] for key in ("name", "annotations") if key in body["metadata"]},
            "spec": body["spec"],
        }
        for body in json.loads(Kubectl(cluster).does("get", "crd", "--output=json"))["items"]
    ]


def state_file(project: Project) -> Path:
    """The newest checkpoint of the project's stack."""
    backend = Path(urlsplit(project.environment["PULUMI_BACKEND_URL"]).path)
    [file] = (backend / ".pulumi" / "stacks").rglob("*.json")
    return file
