"""A real Argo CD applies what `ray-platform render` writes, and leaves the numbers of the autoscaler alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from local.control_plane import free_ports
from local.rehearsal import Rehearsal
from local.tools import ARGO_CD, KUBERAY
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

NAMESPACE = "argocd"

CONFIGURATION: list[dict[str, Any]] = [
    *(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "argocd"}},
        }
        for name in (
            "argocd-cm",
            "argocd-rbac-cm",
            "argocd-tls-certs-cm",
            "argocd-ssh-known-hosts-cm",
            "argocd-gpg-keys-cm",
        )
    ),
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "argocd-secret", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "stringData": {"server.secretkey": "of-a-test"},
    },
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default"},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    },
]
"""What Argo CD's installation creates."""


class Repository:
    """A repository of git with the files of a stack."""

    def __init__(self, folder: Path, stack: Callable[[Path], None]) -> None:
        self.folder, self.files = folder, folder / "clusters/dev"
        stack(self.files)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-C", self.folder, "-c", "user.name=test", "-c", "user.email=test@test", *arguments], check=True
        )

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=render")


@pytest.fixture(scope="module")
def repository(stack: MakeStack, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The dev stack's manifests."""
    made = stack("dev")
    made.edit(lambda settings: settings["operator"].update(location=str(KUBERAY.share("config") / "default")))

    def render(files: Path) -> None:
        command = [sys.executable, "-m", "stacks", "render", str(made.file), "-o", str(files), "--path", "clusters/dev"]
        subprocess.run(command, env=made.environment, check=True)

    return Repository(tmp_path_factory.mktemp("repository"), render)


@pytest.fixture(scope="module")
def argo_cd(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """Runs Argo CD on the cluster until the end of the file."""
    kubectl, folder = Kubectl(cluster), tmp_path_factory.mktemp("argo-cd")
    kubectl.does("apply", "--server-side", "-k", str(ARGO_CD.share("manifests/crds")))
    kubectl.until_established()
    kubectl.does("create", "namespace", NAMESPACE)
    kubectl.does("apply", "-n", NAMESPACE, "-f", "-", bodies=CONFIGURATION)
    ports = free_ports()
    redis, repositories, *metrics = (str(next(ports)) for _ in range(4))
    at_redis, program = ("--redis", f"127.0.0.1:{redis}"), str(ARGO_CD.program("argocd"))
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{ARGO_CD.folder / 'bin'}:{os.environ['PATH']}",
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
    }
    commands: list[Sequence[str]] = [
        ["redis-server", "--port", redis, "--bind", "127.0.0.1", "--save", ""],
        [
            *(program, "repo-server", "--port", repositories, "--address", "127.0.0.1", "--disable-tls", *at_redis),
            *("--metrics-address", "127.0.0.1", "--metrics-port", metrics[0], "--revision-cache-expiration", "2s"),
        ],
        [
            *(program, "controller", "--kubeconfig", str(cluster.kubeconfig), "--namespace", NAMESPACE, *at_redis),
            *("--repo-server", f"127.0.0.1:{repositories}", "--repo-server-plaintext", "--app-resync", "4"),
            *("--metrics-port", metrics[1]),
        ],
    ]
    with ExitStack() as running:
        for number, command in enumerate(commands):
            log = running.enter_context((folder / f"{number}.log").open("wb"))
            process = running.enter_context(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            running.callback(process.terminate)
        yield kubectl


def application(kubectl: Kubectl) -> dict[str, Any]:
    """Its status."""
    found = json.loads(kubectl.does("get", "application", "-n", NAMESPACE, "ray-platform-dev", "-o", "json"))
    return cast("dict[str, Any]", found.get("status") or {})


def synced(kubectl: Kubectl, times: int) -> bool:
    """Whether the stack is applied, for that many times, and nothing differs."""
    status = application(kubectl)
    states = [(status.get(key) or {}).get("status") for key in ("sync", "health")]
    return states == ["Synced", "Healthy"] and len(status.get("history") or ()) == times


def test_argo_cd_applies_a_stack_and_leaves_the_autoscalers_numbers_alone(
    repository: Repository, argo_cd: Kubectl, rays: Rays
) -> None:
    made = yaml.safe_load((repository.files / "argocd.yaml").read_text())
    made["spec"]["source"]["repoURL"] = f"file://{repository.folder}"
    made["spec"]["syncPolicy"]["automated"] = {"selfHeal": True}
    argo_cd.does("apply", "-f", "-", bodies=[made])
    until(lambda: synced(argo_cd, times=1), "Argo CD has applied the stack", seconds=240)
    waves = {each["kind"]: int(each["syncWave"]) for each in application(argo_cd)["resources"]}
    assert waves["CustomResourceDefinition"] < waves["Namespace"] < waves["Deployment"] < waves["RayCluster"]

    by_the_autoscaler = [
        {"op": "add", "path": "/spec/workerGroupSpecs/0/replicas", "value": 2},
        {"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": []}},
    ]
    patch = ("--type=json", "--patch", json.dumps(by_the_autoscaler), "--field-manager=autoscaler")
    argo_cd.does("patch", "raycluster", "-n", "team-a", "training", *patch)
    [file] = repository.files.glob("*/team-a--raycluster--training.yaml")
    file.write_text(file.read_text().replace("idleTimeoutSeconds: 300", "idleTimeoutSeconds: 420"))
    repository.commit()
    until(lambda: synced(argo_cd, times=2), "Argo CD has applied the edit", seconds=240)
    spec = rays.read("team-a", "training")["spec"]
    assert spec["autoscalerOptions"]["idleTimeoutSeconds"] == 420
    assert spec["workerGroupSpecs"][0]["replicas"] == 2
