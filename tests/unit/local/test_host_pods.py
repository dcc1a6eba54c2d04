"""Pods that host-pods runs on the host: which images, with which arguments, environment and files, and until when."""

import base64
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from kubernetes import client

from local.control_plane import write_kubeconfig
from local.host_pods.container import Container
from local.host_pods.pods import TOKEN_SECONDS, HostPods
from local.host_pods.programs import program_of, tools_of
from local.tools import KUBERAY, KUBERAY_1_5, VOLCANO, Tool
from tests.unit.local.conftest import ApiServer


@pytest.mark.parametrize(
    ("image", "tool"),
    [
        ("quay.io/kuberay/operator:v1.6.2", KUBERAY),
        ("registry.example:5000/mirror/kuberay/operator:v1.6.2", KUBERAY),
        ("kuberay/operator", KUBERAY),
        ("quay.io/kuberay/operator:v1.6.2@sha256:" + "0" * 64, KUBERAY),
        ("mirror.example/kuberay/operator:v1.5.1", KUBERAY_1_5),
        *((image, None) for image in ("rayproject/ray:2.60.0", "example/notkuberay/operator:v1", "nginx")),
    ],
)
def test_the_operator_is_known_from_any_registry_and_other_images_are_left_to_their_nodes(
    image: str, tool: Tool | None
) -> None:
    program = program_of(image)
    assert (program and (program.name, program.tool)) == (tool and ("ray-operator", tool))


def test_a_token_is_renewed_by_the_clock_by_which_it_expires(
    tmp_path: Path, api_server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was suspended for a day has another time, but its monotonic clock stood still."""
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    operator = KUBERAY.program("ray-operator")
    operator.parent.mkdir(parents=True)
    operator.write_text("#!/bin/sh\nexec sleep 60\n")
    operator.chmod(0o755)
    for folder in ("kubeconfigs", "logs"):
        (tmp_path / folder).mkdir()
    write_kubeconfig(tmp_path / "kubeconfigs" / "host-pods", tmp_path, api_server.url, {})
    container = {"name": "operator", "image": f"quay.io/kuberay/operator:{KUBERAY.version}"}
    deployment: dict[str, Any] = {
        "metadata": {"namespace": "ray", "name": "operator"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    program = program_of(container["image"])
    assert program
    request = "POST /api/v1/namespaces/ray/serviceaccounts/default/token"
    pods, token = HostPods(tmp_path), tmp_path / "host-pods" / "ray_operator" / "token"

    def written(next_token: str) -> str:
        status = {"token": next_token, "expirationTimestamp": "2026-01-01T00:00:00Z"}
        api_server.answers[request] = {"spec": {"audiences": []}, "status": status}
        pods._reconcile({"ray/operator": (deployment, program)})
        return token.read_text()

    try:
        assert written("first") == "first"
        assert written("second") == "first"
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + TOKEN_SECONDS)
        assert written("third") == "third"
    finally:
        pods._reconcile({})


DEPLOYMENT: dict[str, Any] = {
    "metadata": {"namespace": "volcano-system", "name": "volcano-admission"},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "image": "docker.io/volcanosh/vc-webhook-manager:v1.14.1",
                        "args": ["--tls-cert-file=/certificates/tls.crt", "--port=8443"],
                        "env": [
                            {"name": "SOCKETS", "value": "/sockets"},
                            {"name": "HOME_OF_IT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                        ],
                        "volumeMounts": [
                            {"name": "certificates", "mountPath": "/certificates"},
                            {"name": "configuration", "mountPath": "/configuration"},
                            {"name": "sockets", "mountPath": "/sockets"},
                        ],
                    }
                ],
                "volumes": [
                    {"name": "certificates", "secret": {"secretName": "tls"}},
                    {"name": "configuration", "configMap": {"name": "conf"}},
                    {"name": "sockets", "emptyDir": {}},
                ],
            }
        }
    },
}


class Core:
    """A cluster with that Secret and that ConfigMap."""

    def read_namespaced_secret(self, name: str, namespace: str) -> Any:
        assert (name, namespace) == ("tls", "volcano-system")
        return SimpleNamespace(data={"tls.crt": base64.b64encode(b"PEM").decode()})

    def read_namespaced_config_map(self, name: str, namespace: str) -> Any:
        assert (name, namespace) == ("conf", "volcano-system")
        return SimpleNamespace(data={"volcano.conf": "text"})


def test_files_are_where_the_arguments_and_the_environment_point_to(tmp_path: Path) -> None:
    container = Container(DEPLOYMENT, tmp_path)
    container.write_files(cast("client.CoreV1Api", Core()))
    certificate = Path(container.arguments()[0].removeprefix("--tls-cert-file="))
    assert certificate.read_bytes() == b"PEM"
    assert certificate.stat().st_mode & 0o077 == 0
    assert certificate.is_relative_to(tmp_path)
    assert (certificate.parent.parent / "configuration" / "volcano.conf").read_text() == "text"
    assert container.environment()["HOME_OF_IT"] == "volcano-system"
    old = Path(container.environment()["SOCKETS"]) / "old"
    old.touch()
    # A file that leaves the configuration is removed at the next start.
    container.write_files(cast("client.CoreV1Api", Core()))
    assert not old.exists()


def test_a_webhook_listens_on_a_port_of_loopback_of_its_own() -> None:
    program = program_of("docker.io/volcanosh/vc-webhook-manager:v1.14.1")
    assert program is not None
    further = program.further("kubeconfig", "volcano-system", {8443: 23456})
    assert {"--listen-address=127.0.0.1", "--port=23456"} <= set(further)


CONFIGURED = {
    "metadata": {"namespace": "volcano-system", "name": "manager"},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "manager",
                        "args": ["--config=/config.yaml"],
                        "volumeMounts": [
                            {"name": "conf", "mountPath": "/config.yaml", "subPath": "volcano.conf"},
                            {"name": "tls", "mountPath": "text"},
                        ],
                    }
                ],
                "volumes": [
                    {"name": "conf", "configMap": {"name": "conf"}},
                    {"name": "tls", "secret": {"secretName": "tls"}},
                ],
            }
        }
    },
}
"""A container that mounts one file of a ConfigMap, whose `text` has the path of another."""


def test_paths_in_arguments_and_in_a_mounted_file_lead_to_the_mounted_files(tmp_path: Path) -> None:
    container = Container(CONFIGURED, tmp_path)
    container.write_files(cast("client.CoreV1Api", Core()), lambda name, content: content + name.encode())
    (argument,) = container.arguments()
    content = Path(argument.removeprefix("--config=")).read_text()
    assert content.endswith("volcano.conf")
    assert (Path(content.removesuffix("volcano.conf")) / "tls.crt").read_bytes() == b"PEMtls.crt"


def test_a_file_configures_the_ports_of_a_program_without_such_arguments() -> None:
    program = program_of("registry.k8s.io/kueue/kueue:v0.19.2")
    assert program is not None
    file, configuration = (
        "controller_manager_config.yaml",
        b"{webhook: {port: 9443, certDir: /certs}, metrics: {}, health: {}}",
    )
    ports = {9443: 23456, 8443: 23457}
    adapted = yaml.safe_load(program.adapted(file, configuration, ports))
    assert adapted["webhook"] == {"host": "127.0.0.1", "port": 23456, "certDir": "/certs"}
    assert adapted["metrics"] == {"bindAddress": "127.0.0.1:23457"}
    assert program.adapted("tls.crt", b"PEM", ports) == b"PEM"


def test_only_tools_for_the_images_of_a_stack_are_built() -> None:
    images = {f"docker.io/volcanosh/vc-{name}:v1.14.1" for name in ("scheduler", "controller-manager")}
    assert tools_of(images) == (VOLCANO,)
    assert tools_of({"quay.io/kuberay/operator:v1.6.2", "rayproject/ray:2.60.0"}) == (KUBERAY,)
    assert tools_of({"quay.io/kuberay/operator:v1.5.1"}) == (KUBERAY_1_5,)
