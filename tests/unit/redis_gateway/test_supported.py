"""Which Kubernetes has what the gateway needs."""

from typing import Any

import pytest

from components.client import ClusterUnreachableError
from components.redis_gateway import supported
from components.redis_gateway.supported import UnsupportedKubernetesError, check_kubernetes

pytestmark = pytest.mark.unit


def served(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | Exception) -> None:
    def read(_call: Any) -> dict[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(supported, "connect", lambda _context: None)
    monkeypatch.setattr(supported, "read", read)


@pytest.mark.parametrize("minor", ["28", "28+", "9"])
def test_a_kubernetes_without_native_sidecars_is_refused_with_a_fix(
    monkeypatch: pytest.MonkeyPatch, minor: str
) -> None:
    served(monkeypatch, {"major": "1", "minor": minor})
    with pytest.raises(
        UnsupportedKubernetesError, match=r"needs Kubernetes 1\.29 .*set redis.gateway.enabled to false"
    ):
        check_kubernetes(None)


@pytest.mark.parametrize("minor", ["29", "29+", "36"])
def test_newer_versions_are_accepted(monkeypatch: pytest.MonkeyPatch, minor: str) -> None:
    served(monkeypatch, {"major": "1", "minor": minor})
    check_kubernetes(None)


@pytest.mark.parametrize("answer", [ClusterUnreachableError("no answer"), {"major": "1", "minor": "?"}, {}])
def test_an_unknown_version_is_accepted(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    served(monkeypatch, answer)
    check_kubernetes(None)
