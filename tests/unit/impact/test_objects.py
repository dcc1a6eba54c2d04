"""The effects of an edit beside RayClusters: on namespaces, quotas, policies, Redis, the operator and its version."""

from pathlib import Path
from typing import Any

import pytest

from kuberay.edits import Verdict
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.effects import Effect
from stacks.load import load
from stacks.settings import StackSettings
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import stack, tenant

GOOD = Path(__file__).parents[2] / "stack_files" / "good"


def edited(before: dict[str, Any], after: dict[str, Any], **both: Any) -> Impact:
    """A tenant's settings, with the same RayCluster."""
    return impact_of(stack(tenant("a", ray(), **before), **both), stack(tenant("a", ray(), **after), **both))


def edited_stack(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    there = tenant("a", ray(faultTolerance=True)) if "redis" in before else tenant("a", ray())
    return impact_of(stack(there, **before), stack(there, **after))


def of_operator(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    return edited_stack({"operator": before}, {"operator": after})


@pytest.mark.parametrize(
    ("impact", "kind", "verdict", "text"),
    [
        (
            edited({}, {"quota": {"gpus": 8}}),
            "ResourceQuota",
            Verdict.CREATES,
            "existing objects beyond the limit stay",
        ),
        (edited({"quota": {"gpus": 16}}, {"quota": {"gpus": 8}}), "ResourceQuota", Verdict.IN_PLACE, "16 -> 8"),
        (edited({"quota": {"gpus": 16}}, {}), "ResourceQuota", Verdict.REMOVES, "nothing limits the namespace"),
        (edited({}, {"podSecurity": "baseline"}), "Namespace", Verdict.IN_PLACE, "restricted -> baseline"),
        (edited({}, {"network": {"policies": False}}), "NetworkPolicy", Verdict.REMOVES, ""),
        (
            of_operator({"version": "1.6.1"}, {"version": "1.6.2"}),
            "Operator",
            Verdict.ROLLING,
            "version 1.6.1 -> 1.6.2",
        ),
        (
            of_operator({"version": "1.6.2"}, {"version": "1.5.1"}),
            "Operator",
            Verdict.REFUSED,
            "refuses an older version",
        ),
        (of_operator({}, {"replicas": 2}), "Operator", Verdict.ROLLING, "replicas: the operator restarts"),
        (of_operator({}, {"namespace": "other"}), "Operator", Verdict.REPLACES, "ray-system -> other"),
        (
            edited_stack({"redis": {}}, {"redis": {"storage": {"size": "20Gi"}}}),
            "StatefulSet",
            Verdict.REPLACES,
            "at once",
        ),
        (edited_stack({}, {"scheduler": {"volcano": {}}}), "Scheduler", Verdict.CREATES, "is installed"),
    ],
)
def test_an_edit_of_a_tenant_or_of_the_platform(impact: Impact, kind: str, verdict: Verdict, text: str) -> None:
    [effect, *_] = effects_on(kind, impact)
    assert effect.verdict is verdict
    assert text in effect.text


def test_gained_and_lost_rights_are_listed_with_their_namespaces() -> None:
    found = edited({"users": ["group:old"]}, {"users": ["group:new"], "admins": ["user:ann"]})
    effects_by_subject = {each.name: each.effects[0].text for each in found.objects if each.kind == "Rights of"}
    assert effects_by_subject.keys() == {"group:old", "group:new", "user:ann"}
    assert effects_by_subject["group:new"].startswith("gains in namespace a: ")
    assert "secrets training" in effects_by_subject["group:new"]
    assert effects_by_subject["group:old"].startswith("loses in namespace a: ")
    assert "rayclusters.ray.io" in effects_by_subject["user:ann"]
    assert not found.verdict.hurts


def test_a_tenant_that_leaves_takes_its_namespace_and_ray_clusters_with_it() -> None:
    found = impact_of(stack(tenant("a", ray()), tenant("b", ray())), stack(tenant("a", ray())))
    gone = {f"{each.kind} {each.name}" for each in found.objects if each.verdict is Verdict.DELETES}
    assert gone == {"RayCluster b/training", "Namespace b"}


def test_gpus_and_cost_are_shown_as_they_were_and_will_be() -> None:
    after = stack(tenant("a", ray()), tenant("b", ray()))
    found = impact_of(stack(tenant("a", ray())), after, price=2.0)
    rows = {row.whose: row for row in found.budget.rows}
    assert rows.keys() == {"b", "all tenants"}
    assert rows["b"].before is None
    assert rows["b"].after is not None
    assert (rows["b"].after.most, rows["b"].after.cost) == ("32", "0.00 to 64.00")
    assert "nvidia.com/gpu 64 of 32" in found.budget.promises[0]


def test_an_edit_that_changes_nothing_has_nothing_to_say() -> None:
    same = stack(tenant("a", ray(), quota={"gpus": 8}, users=["group:a"]), redis={})
    assert impact_of(same, same) == Impact(())


@pytest.mark.parametrize("file", sorted(GOOD.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_good_stack_file_is_made_and_removed_and_is_no_edit_of_itself(file: Path) -> None:
    effects_by_subject, nothing = load(file), StackSettings()
    assert impact_of(effects_by_subject, effects_by_subject) == Impact(())
    made, gone = impact_of(None, effects_by_subject), impact_of(effects_by_subject, nothing)
    clusters = {
        f"{tenant.namespace_name}/{each.name}" for tenant in effects_by_subject.tenants for each in tenant.clusters
    }
    assert {each.name for each in made.objects if each.kind == "RayCluster"} == clusters
    assert not made.verdict.hurts
    assert {each.name for each in gone.objects if each.kind == "RayCluster"} == clusters
    assert gone.verdict.hurts or not clusters


def test_a_program_that_the_stack_does_not_install_is_not_removed() -> None:
    there = {"scheduler": {"volcano": {"install": "existing"}}, "operator": {"install": "existing"}}
    assert effects_on("Scheduler", edited_stack(there, {"operator": {"install": "existing"}})) == []
    assert [each.verdict for each in effects_on("Operator", edited_stack({}, there))] == [Verdict.DELETES]
    assert "fails if the cluster has an operator already" in effects_on("Operator", edited_stack(there, {}))[0].text


NO_MARKS = {"RayMultiHostIndexing": False}


def with_operator(version: str, gates: dict[str, bool] | None = None, hosts: int = 1) -> StackSettings:
    group = {"groupName": "tpu", "numOfHosts": hosts, "cpu": 4, "memory": "8Gi", "maxReplicas": 1}
    return stack(tenant("a", ray(workerGroups=[group])), operator={"version": version, "featureGates": gates or {}})


def of_version(before: StackSettings, after: StackSettings) -> list[Effect]:
    return effects_on("Operator", impact_of(before, after))


def test_an_upgrade_keeps_pods_and_reports_what_new_pods_get() -> None:
    restarts, pods = of_version(with_operator("1.5.1"), with_operator("1.6.2"))
    assert restarts.verdict is Verdict.ROLLING
    assert "Pods of RayClusters stay" in restarts.text
    assert "another `up`" in restarts.safer
    assert pods.verdict is Verdict.NEW_PODS
    assert "health probes by HTTP" in pods.text


def test_versions_that_create_the_same_pods_have_no_effect_on_pods() -> None:
    assert [each.verdict for each in of_version(with_operator("1.6.0"), with_operator("1.6.2"))] == [Verdict.ROLLING]


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (("1.5.1", {}), ("1.6.2", {}), True),
        (("1.5.1", {}), ("1.6.2", NO_MARKS), False),
        (("1.6.2", NO_MARKS), ("1.6.2", {}), True),
        (("1.5.1", {"RayMultiHostIndexing": True}), ("1.6.2", {}), False),
    ],
)
def test_workers_with_several_hosts_would_be_created_twice(before: Any, after: Any, refused: bool) -> None:
    effects = of_version(*(with_operator(version, gates, hosts=2) for version, gates in (before, after)))
    found = [each for each in effects if each.verdict is Verdict.REFUSED]
    assert bool(found) is refused
    for each in found:
        assert "a/training tpu" in each.text
        assert "RayMultiHostIndexing: false" in each.safer
