"""What a state lacks after a killed command, which objects exist in the cluster, and the completed state."""

from typing import Any

import pytest

from stacks.commands.recover.deployment import UNKNOWN, Candidate, completed, has_unknown, missing, unsettled
from stacks.commands.recover.repair import is_own, look
from testbed.fake_cluster import FakeCluster

STACK = "urn:pulumi:dev::ray-platform::pulumi:pulumi:Stack::ray-platform-dev"
PROVIDER = "urn:pulumi:dev::ray-platform::pulumi:providers:kubernetes::cluster"
PLATFORM = "urn:pulumi:dev::ray-platform::ray-platform:index:Platform::platform"
GUARD = "urn:pulumi:dev::ray-platform::pulumi-python:dynamic/ray-platform:TenantGuard::team-a"


def namespaced(name: str, *, namespace: str = "team-a", **fields: Any) -> dict[str, Any]:
    """The row of a ConfigMap under the platform."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": {"pulumi.com/patchFieldManager": "pulumi-ray-platform-dev"},
    }
    return {
        "urn": f"urn:pulumi:dev::ray-platform::ray-platform:index:Platform$kubernetes:core/v1:ConfigMap::{name}",
        "type": "kubernetes:core/v1:ConfigMap",
        "custom": True,
        "parent": PLATFORM,
        "provider": f"{PROVIDER}::the-id",
        "inputs": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
        **fields,
    }


def creates(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"op": "create", "urn": row["urn"], "newState": row} for row in rows]


STACK_ROW = {"urn": STACK, "type": "pulumi:pulumi:Stack", "custom": False}
PLATFORM_ROW = {"urn": PLATFORM, "type": "ray-platform:index:Platform", "custom": False, "parent": STACK}
PROVIDER_ROW = {
    "urn": PROVIDER,
    "type": "pulumi:providers:kubernetes",
    "custom": True,
    "parent": STACK,
    "id": "the-id",
    "inputs": {"context": "kind"},
}
WHOLE = [STACK_ROW, PROVIDER_ROW, PLATFORM_ROW]


def test_objects_that_were_being_created_or_that_a_preview_would_create_may_exist() -> None:
    """The latter if no state was written meanwhile (PULUMI_SKIP_CHECKPOINTS), or an older one was restored."""
    begun = namespaced("one") | {"inputs": namespaced("one")["inputs"] | {"data": {"key": "as it was sent"}}}
    state = {"resources": WHOLE, "pending_operations": [{"type": "creating", "resource": begun}]}
    of_preview = creates(namespaced("one"))
    for found in (missing(state, []), missing({"resources": WHOLE}, of_preview)):
        assert [str(each) for each in found] == ["ConfigMap team-a/one"]
    # A begun operation is taken from the state with its secrets.
    (both,) = missing(state, of_preview)
    assert both.row["inputs"]["data"] == {"key": "as it was sent"}


def test_objects_that_cannot_exist_or_that_the_state_has_are_not_missing() -> None:
    # A renamed resource without an alias: if it were added twice, the object would be deleted with its old name.
    existing = namespaced("one", id="team-a/one", outputs={"kind": "ConfigMap"})
    renamed = namespaced("one") | {"urn": "urn:pulumi:dev::ray-platform::kubernetes:core/v1:ConfigMap::renamed"}
    assert missing({"resources": [*WHOLE, existing]}, creates(renamed)) == []
    # The existing object is the one to be replaced.
    steps = [{"op": "create-replacement", "urn": "x", "newState": namespaced("one")}]
    assert missing({"resources": WHOLE}, steps) == []
    for name in (UNKNOWN, None):
        row = namespaced("one")
        row["inputs"]["metadata"]["name"] = name
        assert missing({"resources": WHOLE}, creates(row)) == []
    # The namespace is an output of its own resource, which has to be in the state first: it is looked up again.
    row = namespaced("one", namespace=UNKNOWN)
    assert missing({"resources": WHOLE}, creates(row)) == []
    assert has_unknown(creates(row))
    assert not has_unknown(creates(namespaced("one"), STACK_ROW))


def test_objects_are_added_to_the_state_with_their_parents_and_providers() -> None:
    """The first `up`, of which the state has nothing."""
    steps = creates(
        STACK_ROW,
        PROVIDER_ROW | {"id": UNKNOWN},
        PLATFORM_ROW | {"outputs": {"x": UNKNOWN}},
        namespaced("one", provider=f"{PROVIDER}::{UNKNOWN}", outputs={"status": UNKNOWN}),
        namespaced("two", dependencies=[GUARD, namespaced("one")["urn"]], propertyDependencies={"data": [GUARD]}),
    )
    state = completed({"manifest": {}}, steps, missing({}, steps))
    rows = {row["urn"]: row for row in state["resources"]}
    assert [row["type"] for row in state["resources"]] == [
        "pulumi:pulumi:Stack",
        "ray-platform:index:Platform",
        "pulumi:providers:kubernetes",
        "kubernetes:core/v1:ConfigMap",
        "kubernetes:core/v1:ConfigMap",
    ]
    one, two = rows[namespaced("one")["urn"]], rows[namespaced("two")["urn"]]
    assert one["id"] == "team-a/one"
    assert one["parent"] == PLATFORM
    assert one["provider"] == f"{PROVIDER}::{rows[PROVIDER]['id']}"
    assert rows[PROVIDER]["id"] not in (UNKNOWN, "")
    assert one["outputs"]["metadata"]["name"] == "one", "without it the provider cannot compare it"
    assert one["outputs"]["__inputs"] == one["inputs"]
    assert two["dependencies"] == [one["urn"]]
    assert two["propertyDependencies"] == {"data": []}


def test_an_operation_without_an_object_is_removed() -> None:
    state = {
        "resources": WHOLE,
        "pending_operations": [
            {"type": "creating", "resource": namespaced("one")},
            {"type": "creating", "resource": {"urn": GUARD, "type": "pulumi-python:dynamic/x:TenantGuard"}},
        ],
    }
    after = completed(state, [], [])
    assert after["resources"] == WHOLE
    assert "pending_operations" not in after


def test_a_recreated_object_replaces_the_row_of_the_deleted_one() -> None:
    old = namespaced("one", id="team-a/one", outputs={"old": True}, pendingReplacement=True)
    new = namespaced("one")
    state = {"resources": [*WHOLE, old], "pending_operations": [{"type": "creating", "resource": new}]}
    *_, row = completed(state, [], missing(state, []))["resources"]
    assert row["id"] == "team-a/one"
    assert "pendingReplacement" not in row


def test_a_recreated_object_comes_before_the_rows_that_depend_on_it() -> None:
    """Pulumi refuses a state in which a dependency comes later."""
    old = namespaced("one", id="team-a/one", pendingReplacement=True)
    new = namespaced("one", dependencies=[namespaced("zero")["urn"]])
    zero = namespaced("zero", id="team-a/zero")
    dependent = namespaced("two", id="team-a/two", dependencies=[old["urn"]])
    state = {
        "resources": [*WHOLE, old, dependent, zero],
        "pending_operations": [{"type": "creating", "resource": new}],
    }
    rows = completed(state, [], missing(state, []))["resources"]
    assert [row["inputs"]["metadata"]["name"] for row in rows[len(WHOLE) :]] == ["zero", "one", "two"]


def test_objects_that_were_being_changed_must_be_refreshed() -> None:
    one = namespaced("one", id="team-a/one", outputs={"kind": "ConfigMap"})
    state = {"resources": [*WHOLE, one], "pending_operations": [{"type": "updating", "resource": one}]}
    assert unsettled(state) == [one["urn"]]


def test_added_objects_that_were_not_read_must_be_refreshed() -> None:
    """The recovery was killed between the two."""
    one, two = namespaced("one"), namespaced("two", id="team-a/two", outputs={"metadata": {"uid": "2"}, "__inputs": {}})
    begun = {"resources": [*WHOLE, two], "pending_operations": [{"type": "creating", "resource": one}]}
    assert unsettled(completed(begun, [], missing(begun, []))) == [one["urn"]]


OURS = "pulumi-ray-platform-dev"


def candidate(manager: str = OURS) -> Candidate:
    return Candidate({"urn": "one"}, "v1", "ConfigMap", "team-a", "one", manager)


def live(marked: str | None, *managers: str) -> dict[str, Any]:
    annotations = {"pulumi.com/patchFieldManager": marked} if marked else {}
    return {"metadata": {"annotations": annotations, "managedFields": [{"manager": each} for each in managers]}}


@pytest.mark.parametrize(
    ("marked", "managers", "own"),
    [
        *((OURS, managers, True) for managers in (["pulumi-kubernetes"], [OURS], ["kube-controller-manager", OURS])),
        (None, ["kubectl-client-side-apply"], False),
        # Another project's, another stack's, and a copy that kubectl made.
        (None, ["pulumi-kubernetes"], False),
        ("pulumi-ray-platform-prod", ["pulumi-kubernetes"], False),
        (OURS, ["kubectl-create"], False),
    ],
)
def test_only_an_object_that_this_stack_created_is_its_own(marked: str | None, managers: list[str], own: bool) -> None:
    assert is_own(candidate(), live(marked, *managers)) == own
    # Without the stack's field manager it belongs to no stack.
    assert not is_own(candidate(manager=""), live(None, *managers))


KINDS = [
    {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    {"name": "namespaces/status", "kind": "Namespace", "namespaced": False},
    {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
]


def test_each_object_is_looked_up_where_the_api_server_has_its_kind() -> None:
    def configmap(name: str, manager: str, **metadata: str) -> tuple[Candidate, dict[str, Any]]:
        body = live(OURS, manager)
        body["metadata"] |= {"namespace": "team-a", "name": name, **metadata}
        return Candidate({"urn": name}, "v1", "ConfigMap", "team-a", name, OURS), {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            **body,
        }

    own, foreign = configmap("own", "pulumi-kubernetes"), configmap("foreign", "kubectl")
    deleted = configmap("deleted", OURS, deletionTimestamp="2026-01-01T00:00:00Z")
    namespace = Candidate({"urn": "team-a"}, "v1", "Namespace", "", "team-a", OURS)
    created = {"apiVersion": "v1", "kind": "Namespace", **live(OURS, OURS)}
    created["metadata"]["name"] = "team-a"
    missing = Candidate({"urn": "missing"}, "v1", "ConfigMap", "team-a", "missing", OURS)
    unknown = Candidate({"urn": "unknown"}, "ray.io/v1", "RayCluster", "team-a", "training", OURS)
    cluster = FakeCluster(own[1], foreign[1], deleted[1], created)
    cluster.objects["/api/v1"] = {"resources": KINDS}
    found = look(cluster, [own[0], foreign[0], deleted[0], namespace, missing, unknown])
    assert (found.own, found.foreign, found.deleting) == ([own[0], namespace], [(foreign[0], "kubectl")], [deleted[0]])
    assert [each.path for each in cluster.requests].count("/api/v1") == 1


def test_without_objects_no_cluster_is_needed() -> None:
    cluster = FakeCluster()
    assert look(cluster, []).own == []
    assert cluster.requests == []
