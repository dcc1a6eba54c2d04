"""Which RayClusters can be adopted, by the API server's answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stacks.commands.adopt import live as module
from stacks.commands.adopt.live import CannotAdoptError, live_cluster
from tests.unit.adopt.live import live

pytestmark = pytest.mark.unit

Serve = Callable[..., None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Sets the API server's answers to reads, in order; None stands for `not found`."""

    def answers(*bodies: dict[str, Any] | None) -> None:
        waiting = list(bodies)
        monkeypatch.setattr(module, "connect", lambda context: None)
        monkeypatch.setattr(module, "read", lambda *call: waiting.pop(0))

    return answers


def test_the_object_is_returned_as_it_is(serve: Serve) -> None:
    serve(live())
    assert live_cluster(None, "research", "training") == live()


def test_a_missing_ray_cluster_is_reported_with_the_existing_ones(serve: Serve) -> None:
    serve(None, {"items": [live(), live(name="tuning")]}, None, None)
    with pytest.raises(CannotAdoptError, match=r"no RayCluster 'serving' .* RayClusters there: training, tuning"):
        live_cluster(None, "research", "serving")


@pytest.mark.parametrize(("kind", "answers"), [("RayService", [{}, None]), ("RayJob", [None, {}])])
def test_a_service_or_job_is_not_adopted(serve: Serve, kind: str, answers: list[Any]) -> None:
    found = [{"kind": kind} if each is not None else None for each in answers]
    serve(None, {"items": []}, *found)
    with pytest.raises(CannotAdoptError, match=f"research/chat is a {kind}, and only RayClusters are adopted"):
        live_cluster(None, "research", "chat")


def test_a_cluster_without_kuberay_has_another_message_than_one_without_the_object(serve: Serve) -> None:
    serve(None, None)
    with pytest.raises(CannotAdoptError, match=r"has no RayClusters .* is this the right context"):
        live_cluster(None, "research", "training")


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"ownerReferences": [{"kind": "RayService", "name": "chat"}]}, "belongs to RayService chat"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "is being deleted"),
    ],
)
def test_a_ray_cluster_that_will_be_deleted_or_reverted_is_refused(
    serve: Serve, metadata: dict[str, Any], shown: str
) -> None:
    serve(live(**metadata))
    with pytest.raises(CannotAdoptError, match=shown):
        live_cluster(None, "research", "training")


def test_a_context_that_the_kubeconfig_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(str(empty).replace("'", '"'))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with pytest.raises(CannotAdoptError, match=r"with context 'staging': no usable kubeconfig"):
        live_cluster("staging", "research", "training")
