"""A stack is for one cluster: the first update records it, and another one is refused."""

from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError
from stacks.build import build
from stacks.identity import OtherClusterError, cluster_of
from stacks.load import parse
from testbed.recorder import record

pytestmark = pytest.mark.unit

OURS = "0f5c2f0e-1111-4c1e-9d0a-3a2b1c0d9e8f"
OTHER = "77777777-2222-4c1e-9d0a-3a2b1c0d9e8f"

RECORDED = {"kubernetes": {"cluster": OURS}}

REFUSED = ClusterUnreachableError('the API server refuses: namespaces "kube-system" is forbidden')


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The contexts that were asked; each leads to our cluster, `other` to another one, `closed` to none."""
    contexts: list[str | None] = []

    def request(context: str | None, *_: str) -> dict[str, Any]:
        contexts.append(context)
        if context == "closed":
            raise REFUSED
        return {"metadata": {"uid": OTHER if context == "other" else OURS}}

    monkeypatch.setattr("stacks.identity.request", request)
    return contexts


def of(last: dict[str, Any], platform: bool = True, **kubernetes: str) -> str | None:
    values: dict[str, Any] = {"kubernetes": kubernetes}
    return cluster_of(parse(values if platform else {**values, "platform": {}}), last)


def test_a_state_without_a_cluster_gets_the_live_one(asked: list[str | None]) -> None:
    assert of({}) == OURS
    assert of({"clusters": {}}, context="prod") == OURS
    assert asked == [None, "prod"]


def test_the_recorded_cluster_stays(asked: list[str | None]) -> None:
    assert of(RECORDED) == OURS


def test_another_cluster_is_refused(asked: list[str | None]) -> None:
    with pytest.raises(OtherClusterError) as refused:
        of(RECORDED, context="other")
    message = str(refused.value)
    assert f"has UID {OURS} (recorded by its last update), and context 'other' leads to a cluster with UID {OTHER}" in (
        message
    )
    assert f"set ray-platform:kubernetes.cluster to {OTHER}" in message


def test_the_stack_file_moves_a_stack_on_purpose(asked: list[str | None]) -> None:
    assert of(RECORDED, context="other", cluster=OTHER) == OTHER
    with pytest.raises(OtherClusterError, match=r"set in ray-platform:kubernetes.cluster\), and the current context"):
        of(RECORDED, cluster=OTHER)


def test_a_cluster_that_cannot_be_read_is_refused_once_one_is_recorded(asked: list[str | None]) -> None:
    assert of({}, context="closed") is None
    with pytest.raises(OtherClusterError, match="does not show which cluster it leads to: the API server refuses"):
        of(RECORDED, context="closed")


def test_a_stack_on_another_platform_reads_nothing_outside_its_namespaces(asked: list[str | None]) -> None:
    assert of({}, platform=False) is None
    assert asked == []
    assert of({}, platform=False, cluster=OURS) == OURS


def test_the_program_exports_the_cluster_or_ends(asked: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stacks.build.cluster_of", cluster_of)
    outputs: dict[str, Any] = {}
    record(lambda: outputs.update(build(parse({"platform": {}, "kubernetes": {"cluster": OURS}}))))
    assert outputs["kubernetes"] == {"cluster": OURS}
    with pytest.raises(pulumi.RunError, match="this stack is for another cluster"):
        record(lambda: build(parse({"platform": {}, "kubernetes": {"cluster": OTHER}})))
