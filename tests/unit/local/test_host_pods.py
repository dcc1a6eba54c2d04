"""Which images host-pods runs on the host, with which settings, and until when a program's token is valid."""

import time
from pathlib import Path
from typing import Any

import pytest

from local.control_plane import write_kubeconfig
from local.host_pods.pods import TOKEN_SECONDS, HostPods
from local.host_pods.programs import program_of
from local.tools import KUBERAY, KUBERAY_1_5
from tests.unit.local.conftest import ApiServer


@pytest.mark.parametrize(
    "image",
    [
        "quay.io/kuberay/operator:v1.6.2",
        "registry.example:5000/mirror/kuberay/operator:v1.6.2",
        "kuberay/operator",
        "quay.io/kuberay/operator:v1.6.2@sha256:" + "0" * 64,
    ],
)
def test_the_operator_is_known_from_any_registry(image: str) -> None:
    program = program_of(image)
    assert program is not None
    assert program.name == "ray-operator"
    assert program.tool == KUBERAY


def test_an_operator_of_another_version_runs_in_that_version() -> None:
    program = program_of("mirror.example/kuberay/operator:v1.5.1")
    assert program is not None
    assert program.tool == KUBERAY_1_5


@pytest.mark.parametrize("image", ["rayproject/ray:2.60.0", "example/notkuberay/operator:v1", "nginx"])
def test_other_images_are_left_to_their_nodes(image: str) -> None:
    assert program_of(image) is None


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
