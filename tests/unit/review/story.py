"""A repository of git with two stacks over one base, and branches that each edit something.

`python -m tests.unit.review.story` writes the comments on the branches again: read the difference before you commit it.
"""

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from policies.read import FILE, load
from stacks.commands.impact.sources import git
from stacks.commands.review.comment import comment
from stacks.commands.review.reviewed import Review, change, review

COMMENTS = Path(__file__).with_name("comments")

BASE = """\
config:
  ray-platform:nodes:
    - {pool: a100, count: 4, cpu: 64, memory: 1000Gi, gpus: 8, gpuProduct: NVIDIA-A100-SXM4-80GB, gpuHourPrice: 2.5}
  ray-platform:scheduler: {volcano: {}}
  ray-platform:policies:
    options: {img-registry: {allowed: [registry.example.com, docker.io/rayproject]}}
    rules: {img-digest: disabled, ray-tls: disabled}
"""
STACK = """\
config:
  ray-platform:extends: base.yaml
  ray-platform:queues:
    - {name: research, guarantee: {gpus: 8}, capability: {gpus: 16}}
  ray-platform:tenants:
    - name: team-a
      owner: research
      admins: [group:leads]
      users: [group:team-a]
      quota: {gpus: 16, pods: 40}
      queue: {parent: research, capability: {gpus: 16}}
      clusters:
        - name: training
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0
          workers: {pool: a100}
          idleTimeout: 5m
"""
TENANT = """\
    - name: team-b
      owner: products
      users: [group:team-b]
      quota: {gpus: 8, pods: 20}
      queue: {parent: research, capability: {gpus: 8}}
      clusters:
        - name: serving
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0
          workers: {pool: a100}
          idleTimeout: 5m
"""
SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
BY_NAME = "correct horse battery staple"
"""A secret that only the name of its variable gives away."""


@dataclass(frozen=True)
class Branch:
    """An edit of one file."""

    file: str
    edit: Callable[[str], str]


def replacing(old: str, new: str) -> Callable[[str], str]:
    """An edit that replaces a text which is there."""

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


BRANCHES = {
    "adds a tenant": Branch("Pulumi.prod.yaml", lambda text: text + TENANT),
    "raises a queue over the nodes": Branch(
        "Pulumi.prod.yaml", replacing("{gpus: 8}, capability: {gpus: 16}", "{gpus: 40}, capability: {gpus: 40}")
    ),
    "promises more than the nodes have": Branch(
        "Pulumi.prod.yaml",
        lambda text: (
            text.replace("capability: {gpus: 16}", "capability: {gpus: 40}") + TENANT.replace("gpus: 8", "gpus: 24")
        ),
    ),
    "changes an image": Branch(
        "Pulumi.prod.yaml", replacing("rayproject/ray:2.60.0", "registry.example.com/team-a/ray:2.60.0-torch")
    ),
    "takes an image of anybody": Branch(
        "Pulumi.prod.yaml", replacing("rayproject/ray:2.60.0", "docker.io/somebody/ray:2.60.0")
    ),
    "weakens a right": Branch("Pulumi.prod.yaml", replacing("admins: [group:leads]", "admins: [group:everybody]")),
    "has a typo": Branch("Pulumi.staging.yaml", replacing("idleTimeout", "idelTimeout")),
    "has a secret": Branch(
        "Pulumi.prod.yaml",
        lambda text: f"{text}          env: {{HF_TOKEN: {SECRET}, DB_PASSWORD: {BY_NAME}, MODE: {SECRET}}}\n",
    ),
    "removes nodes of both": Branch("base.yaml", replacing("count: 4", "count: 1")),
    "renames a cluster": Branch("Pulumi.prod.yaml", replacing("name: training", "name: research")),
    "edits a page": Branch("README.md", lambda text: f"{text}More.\n"),
}


def repository(folder: Path) -> None:
    """The repository, on branch main."""
    for name, text in (("base.yaml", BASE), ("Pulumi.prod.yaml", STACK), ("Pulumi.staging.yaml", STACK)):
        (folder / name).write_text(text)
    (folder / "README.md").write_text("Stacks.\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")


def commit(folder: Path, message: str) -> None:
    """Commits all files."""
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", message)


def checked_out(folder: Path, name: str) -> None:
    """A branch with one of the edits, from main."""
    branch = BRANCHES[name]
    git(folder, "checkout", "-q", "-b", name.replace(" ", "-"), "main")
    file = folder / branch.file
    file.write_text(branch.edit(file.read_text()))
    commit(folder, name)


def reviewed() -> Review:
    """The review of the files in the current folder against main."""
    return review(change("main", Path()), load(FILE), {}, {})


def written(name: str) -> Path:
    """The file with the comment on a branch."""
    return COMMENTS / f"{name.replace(' ', '-')}.md"


def main() -> None:
    """Writes all comments."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        repository(Path())
        for name in BRANCHES:
            checked_out(Path(), name)
            written(name).write_text(f"{comment(reviewed())}\n")


if __name__ == "__main__":
    main()
