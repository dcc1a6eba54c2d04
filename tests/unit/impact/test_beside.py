"""An edit shows its effect on each object of the stack beside RayClusters, and one edit shows few lines."""

from pathlib import Path
from typing import Any

import pytest

from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.kinds import AS_RIGHTS, KINDS
from stacks.commands.impact.report import report
from stacks.load import load
from stacks.objects.stack import render
from tests.unit.impact.stacks import ray
from tests.unit.planning.stacks import A100, stack, tenant

GOOD = sorted((Path(__file__).parents[2] / "stack_files" / "good").glob("*.yaml"))

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


def edited(before: dict[str, Any], after: dict[str, Any]) -> Impact:
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
        {"Rights of group:u": "in place"},
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
    assert shown(edited(before, after)) == sorted(expected.items())


def test_an_action_is_shown_with_its_old_value_and_not_only_as_part_of_a_list() -> None:
    before, after, _ = CASES["an admission policy switched to Deny"]
    [each] = edited(before, after).objects
    assert each.effects[0].text.startswith("spec.validationActions Warn -> Deny: applies to new and changed objects")


def test_objects_with_the_same_effects_share_a_row_and_a_sentence() -> None:
    deny, audit = ({"action": action} for action in ("Deny", "Audit"))
    made = edited({"stack": {"admissionPolicies": deny}}, {"stack": {"admissionPolicies": audit}})
    assert len(made.objects) > 20
    for_people = report("an edit", made)
    [row] = for_people.tables[0].rows
    assert row[0].startswith("ValidatingAdmissionPolicyBinding ray-platform-")
    assert row[0].endswith(f" and {len(made.objects) - 2} more")
    assert sum("spec.validationActions Deny -> Audit" in each for each in for_people.sentences) == 1


def test_every_kind_that_a_stack_creates_has_texts() -> None:
    made = {kind for file in GOOD for kind, _ in render(load(file))} - {"RayCluster"}
    assert made == {*KINDS, *AS_RIGHTS}


def test_accounts_of_pods_that_review_tokens_gain_that_right() -> None:
    found = {each.name: each for each in edited({}, {"cluster": K8S_TOKENS}).objects if each.kind == "Rights of"}
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
    [ingress] = edited(before, after).objects
    assert ingress.effects[0].text.startswith("metadata.annotations.note plain -> a\ufffd[31m # b: applies")
