"""A stack is for one cluster: the first update records it, and another one is refused."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError, ForbiddenError
from components.kubernetes_cluster import KubernetesCluster
from stacks.load import parse
from stacks.program.build import build
from stacks.program.identity import OtherClusterError, cluster_of_stack, connection_of, uid_of
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster, of_all_sessions
from testbed.recorder import record

OURS = "0f5c2f0e-1111-4c1e-9d0a-3a2b1c0d9e8f"
OTHER = "77777777-2222-4c1e-9d0a-3a2b1c0d9e8f"

RECORDED = {"kubernetes": {"cluster": OURS}}

REFUSED = ClusterUnreachableError('the API server refuses: namespaces "kube-system" is forbidden')


class Clusters(FakeCluster):
    """The clusters of all contexts: each is ours, `other` another one, `closed` none."""

    asked: list[str | None]
    """The contexts that were asked."""

    def request(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.asked.append(self.connection.context)
        if self.connection.context == "closed":
            raise REFUSED
        return {"metadata": {"uid": OTHER if self.connection.context == "other" else OURS}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The contexts that were asked."""
    clusters = Clusters()
    clusters.asked = []
    of_all_sessions(monkeypatch, clusters)
    return clusters.asked


def of(last: dict[str, Any], platform: bool = True, **kubernetes: str) -> str | None:
    values: dict[str, Any] = {"kubernetes": kubernetes}
    stack = parse(values if platform else {**values, "platform": {}})
    return uid_of(KubernetesCluster(connection_of(stack)), stack, last)


def test_a_state_without_a_cluster_gets_the_live_one_and_the_recorded_one_stays(asked: list[str | None]) -> None:
    assert of({}) == OURS
    assert of({"clusters": {}}, context="prod") == OURS
    assert asked == [None, "prod"]
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


def test_the_program_exports_the_cluster_or_ends(asked: list[str | None]) -> None:
    outputs: dict[str, Any] = {}
    record(lambda: outputs.update(build(parse({"platform": {}, "kubernetes": {"cluster": OURS}}))))
    assert outputs["kubernetes"] == {"cluster": OURS}
    with pytest.raises(pulumi.RunError, match="this stack is for another cluster"):
        record(lambda: build(parse({"platform": {}, "kubernetes": {"cluster": OTHER}})))


PINNED = f"""\
config:
  ray-platform:kubernetes: {{cluster: {OTHER}}}
  ray-platform:nodes: [{{pool: a100, count: 1, cpu: 64, memory: 1000Gi, gpus: 8}}]
  ray-platform:tenants:
    - name: team-a
      storage: [{{name: runs, claim: runs}}]
      runHistory: {{storage: runs, image: "rayproject/ray:2.60.0"}}
      jobTemplates:
        - {{name: vetted, entrypoint: echo, cluster: {{rayVersion: 2.60.0, image: "rayproject/ray:2.60.0"}}}}
      clusters:
        - {{name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {{pool: a100}}}}
"""


@pytest.fixture
def pinned(tmp_path: Path) -> str:
    """A stack file with the UID of another cluster than that which answers."""
    file = tmp_path / "Pulumi.pinned.yaml"
    file.write_text(PINNED)
    return str(file)


@pytest.mark.parametrize(
    "command",
    [
        "status FILE",
        "page FILE --live",
        "logs FILE training",
        "dashboard FILE training",
        "wake FILE training",
        "cancel FILE vetted-1",
        "run FILE vetted",
        "runs FILE",
        "adopt FILE team-a/other",
        "impact --from live --to FILE",
        "plan FILE --history live",
    ],
)
def test_commands_on_the_cluster_refuse_another_one_than_that_in_the_stack_file(
    asked: list[str | None], pinned: str, command: str
) -> None:
    done = stacks(*(pinned if word == "FILE" else word for word in command.split()))
    assert done.exit_code in (1, 2)
    assert f"has UID {OTHER} (set in ray-platform:kubernetes.cluster), and the current context leads to" in done.stderr
    assert asked == [None]


def test_an_account_that_may_not_read_the_uid_is_not_refused(in_memory: FakeCluster) -> None:
    in_memory.fail(ForbiddenError("namespaces is forbidden"))
    cluster = cluster_of_stack(parse({"kubernetes": {"cluster": OTHER, "context": "prod"}}))
    assert cluster.connection.context == "prod"


def test_a_stack_file_without_a_uid_asks_nothing(asked: list[str | None]) -> None:
    assert (
        cluster_of_stack(parse({"kubernetes": {"context": "prod"}}).in_context("other")).connection.context == "other"
    )
    assert asked == []
