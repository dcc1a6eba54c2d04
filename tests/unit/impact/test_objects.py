"""The effects of an edit on the objects beside RayClusters, and that one edit shows its effect once."""

from pathlib import Path
from typing import Any

import pytest

from kuberay.edits import Verdict
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.effects import Effect
from stacks.commands.impact.kinds import AS_RIGHTS, KINDS
from stacks.commands.impact.report import report
from stacks.load import load
from stacks.objects.stack import render
from stacks.settings import StackSettings
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import A100, stack, tenant

GOOD = Path(__file__).parents[2] / "stack_files" / "good"


SANDBOX: dict[str, Any] = {
    "name": "sandbox",
    "entrypoint": "python train.py",
    "localCode": True,
    "cluster": {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"},
}


def edited(before: dict[str, Any], after: dict[str, Any], **both: Any) -> Impact:
    """A tenant's settings, with the same RayCluster."""
    return impact_of(stack(tenant("a", ray(), **before), **both), stack(tenant("a", ray(), **after), **both))


def edited_stack(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    there = tenant("a", ray(faultTolerance=True)) if "redis" in before else tenant("a", ray())
    return impact_of(stack(there, **before), stack(there, **after))


SIZED: dict[str, Any] = {
    "name": "tune",
    "entrypoint": "python tune.py",
    "cluster": {**SANDBOX["cluster"], "workerGroups": [{"groupName": "cpu", "cpu": 1, "memory": "4Gi"}]},
    "sizes": {
        "small": {"workerGroups": [{"groupName": "cpu", "cpu": 2}]},
        "large": {"workerGroups": [{"groupName": "cpu", "cpu": 8}]},
    },
}


def alerting(**receiver: Any) -> dict[str, Any]:
    sender = {"receivers": [{"name": "oncall", "type": "pagerduty", **receiver}], "egress": [{"internet": True}]}
    return {"monitoring": {"mode": "install", "alertmanager": sender}}


LARGER = {"groupName": "cpu", "cpu": 16, "replicas": 3}
PORTAL, PORTAL_B, TEN = {"namespace": "portal"}, {"namespace": "portal-b"}, {"cidr": "10.0.0.0/8"}


def of_operator(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    return edited_stack({"operator": before}, {"operator": after})


@pytest.mark.parametrize(
    ("impact", "kind", "verdict", "text"),
    [
        (
            edited_stack({"logs": {"mode": "install"}}, {"logs": {"mode": "install", "store": {"storage": "50Gi"}}}),
            "StatefulSet",
            Verdict.REPLACES,
            "keeps its logs and its volume, whose size does not change",
        ),
        (
            edited_stack({"logs": {"mode": "install"}}, {}),
            "Namespace",
            Verdict.DELETES,
            "is deleted with the log store and all stored logs",
        ),
        (
            edited_stack(alerting(), alerting(severities=["critical"])),
            "StatefulSet",
            Verdict.ROLLING,
            "Alertmanager's pod is recreated: alerts are sent a minute or so later",
        ),
        (
            edited({}, {"quota": {"gpus": 8}}),
            "ResourceQuota",
            Verdict.CREATES,
            "what exists stays",
        ),
        (edited({"quota": {"gpus": 16}}, {"quota": {"gpus": 8}}), "ResourceQuota", Verdict.IN_PLACE, "16 -> 8"),
        (edited({"quota": {"gpus": 16}}, {}), "ResourceQuota", Verdict.REMOVES, "nothing limits the namespace"),
        (edited({}, {"podSecurity": "baseline"}), "Namespace", Verdict.IN_PLACE, "restricted -> baseline"),
        (edited({}, {"network": {"policies": False}}), "NetworkPolicy", Verdict.REMOVES, ""),
        (
            edited({"rayDeployer": {}}, {"rayDeployer": {"network": {"ports": [8000]}}}),
            "NetworkPolicy",
            Verdict.CREATES,
            "from now on the API server refuses pods and Deployments of that account without it",
        ),
        (
            edited({}, {"jobTemplates": [SANDBOX]}),
            "RayCronJob",
            Verdict.CREATES,
            "users of the job template can run any code",
        ),
        (
            edited(
                {"jobTemplates": [SIZED]}, {"jobTemplates": [{**SIZED, "sizes": {"small": SIZED["sizes"]["small"]}}]}
            ),
            "RayCronJob",
            Verdict.REMOVES,
            "the job template can no longer be run in this size; existing runs stay",
        ),
        (
            edited(
                {"jobTemplates": [SIZED]},
                {"jobTemplates": [{**SIZED, "sizes": {**SIZED["sizes"], "large": {"workerGroups": [LARGER]}}}]},
            ),
            "RayCronJob",
            Verdict.IN_PLACE,
            "cpu 8 -> 16 of worker group cpu, replicas none -> 3 of worker group cpu: applies to runs of this size",
        ),
        (
            edited({"network": {"dashboardFrom": [PORTAL]}}, {"network": {"dashboardFrom": [PORTAL, PORTAL_B]}}),
            "NetworkPolicy",
            Verdict.IN_PLACE,
            "it allows more connections, and cuts none",
        ),
        (
            edited({"network": {"dashboardFrom": [{"cidr": "10.0.0.0/16"}]}}, {"network": {"dashboardFrom": [TEN]}}),
            "NetworkPolicy",
            Verdict.IN_PLACE,
            "it allows more connections, and cuts none",
        ),
        (
            edited({"network": {"dashboardFrom": [PORTAL, PORTAL_B]}}, {"network": {"dashboardFrom": [PORTAL]}}),
            "NetworkPolicy",
            Verdict.IN_PLACE,
            "connections that it no longer allows are cut",
        ),
        (
            edited({"network": {"dashboardFrom": [PORTAL]}}, {"network": {"dashboardFrom": [PORTAL_B, TEN]}}),
            "NetworkPolicy",
            Verdict.IN_PLACE,
            "connections that it no longer allows are cut",
        ),
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


def test_another_size_of_a_job_template_changes_no_other() -> None:
    before = {**SIZED, "sizes": {"small": SIZED["sizes"]["small"]}}
    found = edited({"jobTemplates": [before]}, {"jobTemplates": [SIZED]})
    assert [(each.name, each.effects[0].text) for each in found.objects if each.kind == "RayCronJob"] == [
        ("a/tune-large", "users of the job template can run it in this size")
    ]


def test_gained_and_lost_rights_are_listed_with_their_namespaces() -> None:
    some = [
        {"subject": "user:eve", "clusters": []},
        {"subject": "user:bob", "clusters": ["training"], "submitJobs": True},
    ]
    found = edited({"users": ["group:old"]}, {"users": ["group:new", *some], "admins": ["user:ann"]})
    changed = {each.name: each.effects[0] for each in found.objects if each.kind == "Rights of"}
    assert {who: effect.text for who, effect in changed.items()} == {
        "group:old": "no longer sees Ray's objects, uses RayCluster training in namespace a",
        "group:new": "now sees Ray's objects, uses RayCluster training in namespace a",
        "user:eve": "now sees Ray's objects in namespace a",
        "user:bob": "now sees Ray's objects, uses RayCluster training, creates RayJobs in namespace a",
        "user:ann": "now Ray cluster admin in namespace a",
    }
    assert changed["group:new"].detail.startswith("gains: ")
    assert "secrets training" in changed["group:new"].detail
    assert "rayclusters.ray.io" in changed["user:ann"].detail
    assert not any("gains" in line for line in report("an edit", found).sentences)
    assert any("gains: " in line for line in report("an edit", found, full=True).sentences)
    assert not found.verdict.hurts


def test_work_that_outlasts_the_limit_of_a_drain_is_said_last() -> None:
    drain = {"updates": {"strategy": "drain", "limit": "10m"}}
    found = impact_of(stack(tenant("a", ray())), stack(tenant("a", ray(env={"A": "b"}, **drain))))
    assert report("an edit", found).sentences[-1] == (
        "The edit disrupts nothing that runs, except work that is longer than 10m."
    )


def test_a_tenant_that_leaves_takes_its_namespace_and_ray_clusters_with_it() -> None:
    found = impact_of(stack(tenant("a", ray()), tenant("b", ray())), stack(tenant("a", ray())))
    gone = {f"{each.kind} {each.name}": each.verdict for each in found.objects}
    assert (gone["RayCluster b/training"], gone["Namespace b"]) == (Verdict.DELETES, Verdict.REFUSED)
    allowed = impact_of(stack(tenant("a", ray()), tenant("b", ray(), allowDelete=True)), stack(tenant("a", ray())))
    [namespace] = [each for each in allowed.objects if each.kind == "Namespace"]
    assert namespace.verdict is Verdict.DELETES


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


GOOD_FILES = sorted((Path(__file__).parents[2] / "stack_files" / "good").glob("*.yaml"))

INGRESS = {"host": "ray.example.com", "className": "nginx", "tlsSecretName": "ray-tls"}
HOSTS = "ValidatingAdmissionPolicy ray-platform.stack.ingress-hosts"
OPENED: dict[str, Any] = {
    "stack": {"network": {"ingressController": "ingress-nginx"}},
    "tenant": {"network": {"ingress": True}},
}
BACKUP = {"schedule": "0 * * * *"}
KUEUE = {"scheduler": {"kueue": {}}, "queues": [{"name": "shared"}]}
CLASS = {"name": "models", "storageClass": "shared", "size": "1Ti"}
NFS = {"name": "models", "nfs": {"server": "nfs.example.com", "path": "/models"}, "size": "1Ti"}
DENY = {"action": "Deny", "rules": {"pod-no-host-path": "Warn"}}
K8S_TOKENS = {"authOptions": {"mode": "token", "enableK8sTokenAuth": True}}


def after_edit(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    """A stack with settings of its own, of its tenant and of its RayCluster: `stack`, `tenant`, `cluster`."""
    was, will = (stack(*_tenants(each), **each.get("stack", {})) for each in (before, after))
    return impact_of(was, will)


def _tenants(each: dict[str, Any]) -> list[dict[str, Any]]:
    first = tenant("a", ray(**each.get("cluster", {})), **each.get("tenant", {}))
    return [first, *(tenant(name, ray()) for name in each.get("more", ()))]


def shown(impact: Impact) -> list[tuple[str, str]]:
    return sorted((f"{each.kind} {each.name}", str(each.verdict)) for each in impact.objects)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "an Ingress": (
        OPENED,
        {**OPENED, "cluster": {"ingress": INGRESS}},
        {"Ingress a/training-dashboard": "creates", "NetworkPolicy a/head.training": "in place", HOSTS: "in place"},
    ),
    "another host": (
        {**OPENED, "cluster": {"ingress": INGRESS}},
        {**OPENED, "cluster": {"ingress": {**INGRESS, "host": "other.example.com"}}},
        {"Ingress a/training-dashboard": "in place", HOSTS: "in place"},
    ),
    "a backup's schedule": (
        {"stack": {"redis": {"backup": BACKUP}}},
        {"stack": {"redis": {"backup": {"schedule": "30 3 * * *"}}}},
        {"CronJob ray-system/ray-redis-backup": "in place"},
    ),
    "a backup's StorageClass": (
        {"stack": {"redis": {"backup": BACKUP}}},
        {"stack": {"redis": {"backup": {**BACKUP, "storage": {"size": "5Gi", "storageClassName": "ssd"}}}}},
        {"PersistentVolumeClaim ray-system/ray-redis-backup": "deletes and recreates"},
    ),
    "no backups any more": (
        {"stack": {"redis": {"backup": BACKUP}}},
        {"stack": {"redis": {}}},
        {
            "CronJob ray-system/ray-redis-backup": "removes",
            "CronJob ray-system/ray-redis-restore": "removes",
            "PersistentVolumeClaim ray-system/ray-redis-backup": "deletes",
        },
    ),
    "storage of a class that is kept": (
        {"tenant": {"storage": [CLASS]}},
        {},
        {"PersistentVolumeClaim a/models": "fails"},
    ),
    "another class of storage that is kept": (
        {"tenant": {"storage": [CLASS]}},
        {"tenant": {"storage": [{**CLASS, "storageClass": "other"}]}},
        {"PersistentVolumeClaim a/models": "fails"},
    ),
    "more storage": (
        {"tenant": {"storage": [CLASS]}},
        {"tenant": {"storage": [{**CLASS, "size": "2Ti"}]}},
        {"PersistentVolumeClaim a/models": "in place"},
    ),
    "storage of a class that is not kept": (
        {"tenant": {"storage": [{**CLASS, "retain": False}]}},
        {},
        {"PersistentVolumeClaim a/models": "deletes"},
    ),
    "storage of an existing source": (
        {"tenant": {"storage": [NFS]}},
        {},
        {"PersistentVolume a.models.9edf46fa": "removes", "PersistentVolumeClaim a/models": "removes"},
    ),
    "another source of storage": (
        {"tenant": {"storage": [NFS]}},
        {"tenant": {"storage": [{**NFS, "size": "2Ti"}]}},
        {
            "PersistentVolume a.models.526fd423": "creates",
            "PersistentVolume a.models.9edf46fa": "removes",
            "PersistentVolumeClaim a/models": "deletes and recreates",
        },
    ),
    "Redis with all that it needs": (
        {},
        {"stack": {"redis": {"namespace": "redis"}}},
        {"Namespace redis": "creates", "StatefulSet redis/ray-redis": "creates"},
    ),
    "an admission policy switched to Deny": (
        {"stack": {"admissionPolicies": DENY}},
        {"stack": {"admissionPolicies": {"action": "Deny"}}},
        {"ValidatingAdmissionPolicyBinding ray-platform-pod-no-host-path": "in place"},
    ),
    "an admission policy": (
        {"stack": {"admissionPolicies": {"rules": {"pod-no-host-path": "Disabled"}}}},
        {"stack": {"admissionPolicies": {}}},
        {"ValidatingAdmissionPolicy ray-platform-pod-no-host-path": "creates"},
    ),
    "an issuer of the authority that the stack has created": (
        {"cluster": {"tls": {}}},
        {"cluster": {"tls": {"issuer": {"name": "lab"}}}},
        {"Certificate a/training-ray-authority": "strands new workers"},
    ),
    "another issuer of an authority": (
        {"cluster": {"tls": {"issuer": {"name": "lab"}}}},
        {"cluster": {"tls": {"issuer": {"name": "other"}}}},
        {"Certificate a/training-ray-authority": "in place"},
    ),
    "a user who may make RayJobs": (
        {"tenant": {"users": ["group:u"]}},
        {"tenant": {"users": [{"subject": "group:u", "submitJobs": True}]}},
        {"Rights of group:u": "in place", "ResourceQuota a/ray-platform-objects": "creates"},
    ),
    "a quota of RayClusters": (
        {"tenant": {"quota": {"gpus": 64}}},
        {"tenant": {"quota": {"gpus": 64, "rayClusters": 8}}},
        {"ResourceQuota a/ray-platform": "in place"},
    ),
    "a tenant": ({}, {"more": ["b"]}, {"Namespace b": "creates", "RayCluster b/training": "creates"}),
    "a queue of Kueue": (
        {"stack": KUEUE},
        {"stack": {**KUEUE, "queues": [{"name": "shared"}, {"name": "more", "allowedNamespaces": ["a"]}]}},
        {"ClusterQueue more": "creates"},
    ),
    "a namespace that may use a queue": (
        {"stack": KUEUE},
        {"stack": {**KUEUE, "queues": [{"name": "shared", "allowedNamespaces": ["a"]}]}},
        {"ClusterQueue shared": "in place", "LocalQueue a/shared": "creates"},
    ),
    "nodes, with Kueue": (
        {"stack": KUEUE},
        {"stack": {**KUEUE, "nodes": [{**A100, "count": 6}]}},
        {"Cohort ray-platform": "in place"},
    ),
}


@pytest.mark.parametrize("edit", CASES)
def test_an_edit_shows_the_objects_that_it_changes_and_no_others(edit: str) -> None:
    before, after, expected = CASES[edit]
    assert shown(after_edit(before, after)) == sorted(expected.items())


def test_an_action_is_shown_with_its_old_value_and_not_only_as_part_of_a_list() -> None:
    before, after, _ = CASES["an admission policy switched to Deny"]
    [each] = after_edit(before, after).objects
    assert each.effects[0].text.startswith("spec.validationActions Warn -> Deny: applies to new and changed objects")


def test_objects_with_the_same_effects_share_a_row_and_a_sentence() -> None:
    deny, audit = ({"action": action} for action in ("Deny", "Audit"))
    made = after_edit({"stack": {"admissionPolicies": deny}}, {"stack": {"admissionPolicies": audit}})
    assert len(made.objects) > 20
    [brief] = report("an edit", made).tables[0].rows
    assert brief[0] == "Admission policies and their bindings"
    for_people = report("an edit", made, full=True)
    [row] = for_people.tables[0].rows
    assert row[0].startswith("ValidatingAdmissionPolicyBinding ray-platform-")
    assert row[0].endswith(f" and {len(made.objects) - 2} more")
    assert sum("spec.validationActions Deny -> Audit" in each for each in for_people.sentences) == 1


def test_every_kind_that_a_stack_creates_has_texts() -> None:
    made = {kind for file in GOOD_FILES for kind, _ in render(load(file))} - {"RayCluster"}
    assert made == {*KINDS, *AS_RIGHTS}


def test_accounts_of_pods_that_review_tokens_gain_that_right() -> None:
    found = {each.name: each for each in after_edit({}, {"cluster": K8S_TOKENS}).objects if each.kind == "Rights of"}
    [(who, each)] = found.items()
    assert who == "serviceAccount:a/training"
    assert any(
        "in the whole cluster: create subjectaccessreviews.authorization.k8s.io, tokenreviews" in effect.text
        for effect in each.effects
    )


def test_a_stack_that_is_new_adds_to_kubernetes_own_roles() -> None:
    made = impact_of(None, stack(tenant("a", ray())))
    assert {"Rights of clusterRole:view", "Rights of clusterRole:edit"} <= {f"{e.kind} {e.name}" for e in made.objects}


def test_a_value_is_shown_in_one_line_of_characters_that_a_terminal_shows() -> None:
    before, after = (
        {**OPENED, "cluster": {"ingress": {**INGRESS, "annotations": {"note": note}}}}
        for note in ("plain", "a\x1b[31m\n# b")
    )
    [ingress] = after_edit(before, after).objects
    assert ingress.effects[0].text.startswith("metadata.annotations.note plain -> a\ufffd[31m # b: applies")
