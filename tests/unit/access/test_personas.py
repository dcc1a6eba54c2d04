"""The rights of a tenant's people and of the account for Ray's pods, and rights that nobody gets."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from components.access.manifests import (
    AGGREGATED,
    Grant,
    admin_of_scheduler,
    aggregated,
    bodies,
    cluster_admin,
    cluster_admin_inside,
    pods_grants,
    ray_deployer,
    subject,
    tenant_grants,
    token_review,
)
from components.access.personas import NamedCluster, RayDeployerSettings, RayUsers, RayUserSettings

CLUSTERS = [
    NamedCluster("training", "training"),
    NamedCluster("serving", "serving-token"),
    NamedCluster("shared", accounts=("shared", "shared-workers")),
]


def users(*configured: Any) -> tuple[RayUserSettings, ...]:
    return TypeAdapter[tuple[RayUserSettings, ...]](RayUsers).validate_python(list(configured))


def grants(*configured: Any, templates: tuple[str, ...] = ()) -> list[Grant]:
    """The grants of a tenant with these users and an admin."""
    return tenant_grants(["group:leads"], users(*configured), CLUSTERS, templates=templates)


def may(who: str, verb: str, resource: str, made: list[Grant]) -> set[str]:
    """The names of objects on which a subject has a verb; an empty one for all objects."""
    rules = [rule for grant in made if who in grant.subjects for rule in grant.rules]
    with_it = [rule for rule in rules if verb in rule["verbs"] and resource in rule["resources"]]
    return {name for rule in with_it for name in rule.get("resourceNames", [""])}


def all_rules() -> list[dict[str, Any]]:
    """Every rule that the program can grant."""
    given = [
        *tenant_grants(["group:leads"], users("group:team", {"subject": "user:a", "submitJobs": True}), CLUSTERS, True),
        *pods_grants(CLUSTERS, "team-a"),
        cluster_admin(["group:platform"]),
    ]
    roles = [
        *(bodies(grant)["role"] for grant in given),
        cluster_admin_inside(["group:platform"], "ray-system", redis=True)["role"],
        admin_of_scheduler(["group:platform"], "volcano-system", "volcano-scheduler-configmap")["role"],
        *map(aggregated, AGGREGATED),
        ray_deployer(RayDeployerSettings(), "team-a")["role"],
    ]
    return [rule for role in roles for rule in role["rules"]]


def test_no_rule_has_a_wildcard_or_allows_impersonation() -> None:
    words = {word for rule in all_rules() for key in rule for word in rule[key]}
    assert not [word for word in words if "*" in word]
    assert words & {"escalate", "bind", "impersonate", "serviceaccounts/token", "roles", "clusterroles"} == set()


def test_secrets_are_only_read_by_name() -> None:
    about_secrets = [rule for rule in all_rules() if "secrets" in rule["resources"]]
    assert about_secrets
    assert {tuple(rule["verbs"]) for rule in about_secrets} == {("get",)}
    assert all(rule["resourceNames"] for rule in about_secrets)


def test_cluster_admins_change_redis_and_a_schedulers_configuration_only_by_name() -> None:
    admins = ["group:platform"]
    made = [
        cluster_admin_inside(admins, "ray-system", redis=True)["role"],
        admin_of_scheduler(admins, "kueue-system", "kueue-manager-config")["role"],
    ]
    named = {
        (resource, *rule["resourceNames"])
        for each in made
        for rule in each["rules"]
        for resource in rule["resources"]
        if "resourceNames" in rule
    }
    assert named == {
        ("statefulsets", "ray-redis"),
        ("configmaps", "kueue-manager-config"),
    }
    without = cluster_admin_inside(admins, "ray-system", redis=False)["role"]["rules"]
    assert not [rule for rule in without if "resourceNames" in rule]


def test_a_user_may_use_all_rayclusters_or_named_ones_and_reads_all() -> None:
    alice, eve = {"subject": "user:alice", "clusters": ["serving"]}, {"subject": "user:eve", "clusters": []}
    bob = {"subject": "user:bob", "clusters": [], "submitJobs": True}
    made = grants("group:team", alice, eve, bob)
    everybody = ("group:team", "user:alice", "user:eve", "user:bob")
    assert [may(each, "list", "rayclusters", made) for each in everybody] == [{""}] * 4
    used = [may(each, "ray:write", "rayclusters", made) for each in everybody]
    assert used == [{"training", "serving", "shared"}, {"serving"}, set(), set()]
    assert [may(each, "create", "pods/portforward", made) for each in everybody] == [{""}, {""}, set(), set()]
    assert [may(each, "create", "rayjobs", made) for each in everybody] == [set(), set(), set(), {""}]


def test_users_run_all_job_templates_or_named_ones_and_those_who_only_look_run_none() -> None:
    some = {"subject": "user:alice", "clusters": [], "jobTemplates": ["tune"]}
    made = grants("group:team", some, {"subject": "user:eve", "clusters": []}, templates=("tune", "count"))
    run = [may(each, "ray-platform:run", "raycronjobs", made) for each in ("group:team", "user:alice", "user:eve")]
    assert run == [{"tune", "count"}, {"tune"}, set()]
    assert [may(each, "create", "rayjobs", made) for each in ("group:team", "user:alice", "user:eve")] == [
        {""},
        {""},
        set(),
    ]


def test_a_user_reads_the_token_or_has_rays_own_verb_without_a_token() -> None:
    made = grants("group:team")
    assert may("group:team", "get", "secrets", made) == {"training", "serving-token"}
    assert may("group:leads", "get", "secrets", made) == {"training", "serving-token"}
    assert may("group:team", "ray:write", "rayclusters", made) == {"training", "serving", "shared"}


def test_what_the_same_subjects_may_do_is_one_role() -> None:
    some = {"subject": "user:alice", "clusters": ["serving"]}
    assert [grant.name for grant in grants("group:team", "user:ann")] == ["ray-cluster-admin", "ray-user"]
    assert [grant.name for grant in grants({"subject": "group:leads", "submitJobs": True})] == ["ray-cluster-admin"]
    assert [grant.name for grant in grants("group:team", some)] == [
        "ray-cluster-admin",
        "ray-user",
        "ray-user:training",
        "ray-user:shared",
    ]


def test_ray_cluster_admins_create_ingresses_only_if_the_tenant_may_have_them() -> None:
    def ingresses(allowed: bool) -> list[Any]:
        admin = tenant_grants(["group:leads"], [], CLUSTERS, allowed)[0]
        return [rule for rule in admin.rules if "ingresses" in rule["resources"]]

    assert ingresses(allowed=False) == []
    assert ingresses(allowed=True)


def test_pods_with_kubernetes_tokens_may_use_their_own_raycluster_and_review_tokens() -> None:
    (grant,) = pods_grants(CLUSTERS, "team-a")
    assert grant.subjects == ["serviceAccount:team-a/shared", "serviceAccount:team-a/shared-workers"]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in grant.rules] == [(["ray:write"], ["shared"])]
    review = token_review(CLUSTERS[2], "team-a")
    assert review["roleRef"]["name"] == "system:auth-delegator"
    assert {(each["namespace"], each["name"]) for each in review["subjects"]} == {
        ("team-a", "shared"),
        ("team-a", "shared-workers"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group:team-a", {"kind": "Group", "name": "team-a", "apiGroup": "rbac.authorization.k8s.io"}),
        ("user:oidc:ada@x.org", {"kind": "User", "name": "oidc:ada@x.org", "apiGroup": "rbac.authorization.k8s.io"}),
        ("serviceAccount:ci/runner", {"kind": "ServiceAccount", "name": "runner", "namespace": "ci"}),
    ],
)
def test_a_subject_is_rendered_as_kubernetes_names_it(text: str, expected: dict[str, str]) -> None:
    assert subject(text) == expected


def test_it_may_create_and_delete_only_what_the_guide_names() -> None:
    def granted(settings: RayDeployerSettings) -> set[tuple[str, str, str]]:
        return {
            (group, resource, verb)
            for rule in ray_deployer(settings, "team-a")["role"]["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    resources = [("", "pods"), ("", "services"), ("apps", "deployments"), ("ray.io", "rayclusters")]
    verbs = ["get", "list", "watch", "create", "delete", "update", "patch"]
    given = granted(RayDeployerSettings())
    read = {("", "persistentvolumeclaims", verb) for verb in verbs[:3]}
    assert given == read | {(group, resource, verb) for group, resource in resources for verb in verbs}
    claims = RayDeployerSettings.model_validate({"persistentVolumeClaims": {"storageClasses": ["standard"]}})
    assert granted(claims) - given == {("", "persistentvolumeclaims", verb) for verb in ("create", "delete")}


def test_changed_names_still_refer_to_each_other() -> None:
    settings = RayDeployerSettings(service_account="runner", role="runs-ray", role_binding="runner-runs-ray")
    made = ray_deployer(settings, "team-a")
    assert made["service-account"]["metadata"]["name"] == "runner"
    assert made["role"]["metadata"]["name"] == made["role-binding"]["roleRef"]["name"] == "runs-ray"
    assert made["role-binding"]["subjects"] == [{"kind": "ServiceAccount", "name": "runner", "namespace": "team-a"}]
    assert made["role-binding"]["metadata"]["name"] == "runner-runs-ray"
