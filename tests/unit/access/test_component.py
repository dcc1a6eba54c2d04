"""The access objects of a stack: their namespaces and their order."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from components.access import admission
from components.access.manifests import cluster_access, tenant_access
from components.access.personas import NamedCluster, RayUserSettings
from components.access.restricted import Deployer, Restricted
from components.objects import Object
from core.body import Body
from stacks.load import parse
from stacks.objects.access import restricted
from stacks.objects.platform import parts_of_platform, parts_of_tenants


def names(bodies: Iterable[Body]) -> set[tuple[str, str, str | None]]:
    """Kind, name and namespace of each."""
    return {(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")) for each in bodies}


def tenant(**settings: Any) -> set[tuple[str, str, str | None]]:
    """The objects of a tenant `team-a`."""
    nobody = {"admins": (), "users": (), "clusters": (), "accounts": (), "ingresses": False, "templates": ()}
    return names(tenant_access("team-a", **{**nobody, **settings}).values())


def restrictions(stack: str = "prod", **admitted: Any) -> dict[str, Object]:
    """The admission policies of a stack, by name."""
    return {each.name: each for each in admission.restrictions(stack, Restricted(**admitted))}


def bodies(**admitted: Any) -> dict[str, Body]:
    return {name: each.body for name, each in restrictions(**admitted).items()}


def test_a_tenant_without_people_has_no_objects_and_pods_with_kubernetes_tokens_have_an_account() -> None:
    assert tenant(clusters=[NamedCluster("training", "training")]) == set()
    shared = NamedCluster("shared", accounts=("shared",))
    assert tenant(clusters=[shared], accounts=["shared"]) == {
        ("ServiceAccount", "shared", "team-a"),
        ("Role", "ray-platform:pods:shared", "team-a"),
        ("RoleBinding", "ray-platform:pods:shared", "team-a"),
        ("ClusterRoleBinding", "ray-platform:token-review:team-a:shared", None),
    }


def test_five_policies_of_a_stack_restrict_all_of_its_tenants() -> None:
    policies = {"scaling-only", "ray-jobs", "deletions", "own-workers", "neighbours"}
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert names(each.body for each in restrictions("Prod_eu").values()) == {
        (kind, f"ray-platform.prod-eu.{each}", None) for kind in kinds for each in policies
    }


@pytest.mark.parametrize(
    ("namespaces", "selector"),
    [
        (None, {"key": "ray-platform/tenant", "operator": "Exists"}),
        (("b", "a"), {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}),
    ],
)
def test_tenants_namespaces_are_selected_by_label_or_by_name(
    namespaces: tuple[str, ...] | None, selector: dict[str, Any]
) -> None:
    found = bodies(namespaces=namespaces).values()
    bindings = [each["spec"] for each in found if each["kind"].endswith("Binding")]
    assert [each["matchResources"]["namespaceSelector"]["matchExpressions"] for each in bindings] == [[selector]] * 5
    assert [each["validationActions"] for each in bindings] == [["Deny"]] * 5


def test_a_warning_is_given_only_where_the_network_is_closed() -> None:
    assert "connected-policy" not in bodies()
    made = bodies(connected={"team-a": ["rayclusters/training"]})
    spec = made["connected-policy-binding"]["spec"]
    assert spec["validationActions"] == ["Warn"]
    assert spec["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a"]


def test_host_names_are_restricted_where_a_tenant_may_have_ingresses() -> None:
    binding = bodies(hosts={"team-a": ["a.example.com"]})["ingress-hosts-policy-binding"]
    assert binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a"]}
    ]


def test_what_code_on_ray_creates_is_restricted_where_it_has_connections_or_claims() -> None:
    assert "ray-deployer-policy" not in bodies()
    binding = bodies(deployers={"team-a": Deployer("runner", networked=True)})["ray-deployer-policy-binding"]["spec"]
    assert binding["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a"]
    for settings in ({}, {"network": {"ports": [8000]}}, {"persistentVolumeClaims": {"storageClasses": ["a"]}}):
        stack = parse({"tenants": [{"name": "team-a", "rayDeployer": settings}, {"name": "team-b"}]})
        assert list(restricted(stack).deployers) == (["team-a"] if settings else [])


def test_runs_of_job_templates_have_a_policy_with_the_template_as_its_parameter() -> None:
    made = {name: each["spec"] for name, each in bodies(templates=["tune"]).items()}
    assert made["job-template-policy"]["paramKind"] == {"apiVersion": "ray.io/v1", "kind": "RayCronJob"}
    binding = made["job-template:tune-binding"]
    assert binding["paramRef"] == {"name": "tune", "parameterNotFoundAction": "Deny"}
    assert binding["matchResources"]["objectSelector"] == {"matchLabels": {"ray-platform/job-template": "tune"}}
    others = restrictions(templates=["tune"])["ray-jobs-policy-binding"]
    assert others.body["spec"]["matchResources"]["objectSelector"] == {
        "matchExpressions": [{"key": "ray-platform/job-template", "operator": "NotIn", "values": ["tune"]}]
    }
    assert {"job-template-policy", "job-template:tune-binding"} <= set(others.after)


def test_a_run_is_compared_with_its_size_and_with_the_template_if_that_has_no_such_size() -> None:
    made = restrictions(templates=["tune"], sizes={"tune": ["small", "large"]})
    large, own = (made[f"job-template:{name}-binding"] for name in ("tune.large", "tune"))
    assert large.body["spec"]["paramRef"] == {"name": "tune-large", "parameterNotFoundAction": "Deny"}
    label = {"ray-platform/job-template": "tune"}
    assert large.body["spec"]["matchResources"]["objectSelector"] == {
        "matchLabels": {**label, "ray-platform/job-size": "large"}
    }
    assert own.body["spec"]["matchResources"]["objectSelector"] == {
        "matchLabels": label,
        "matchExpressions": [{"key": "ray-platform/job-size", "operator": "NotIn", "values": ["large", "small"]}],
    }
    # Meanwhile, runs of a new size would be compared with nothing.
    assert set(own.after) == {"job-template:tune.small-binding", "job-template:tune.large-binding"}


def test_tenants_with_one_template_name_have_the_sizes_of_both() -> None:
    group = {"groupName": "cpu", "cpu": 1, "memory": "4Gi"}
    cluster = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workerGroups": [group]}

    def tenant(name: str, **cpus: int) -> dict[str, Any]:
        sizes = {size: {"workerGroups": [{"groupName": "cpu", "cpu": cpu}]} for size, cpu in cpus.items()}
        job = {"name": "tune", "entrypoint": "python tune.py", "cluster": cluster, "sizes": sizes}
        return {"name": name, "jobTemplates": [job]}

    tenants = [tenant("team-a", small=2), tenant("team-b", small=4, large=8), tenant("team-c")]
    assert restricted(parse({"tenants": tenants})).sizes == {"tune": ["small", "large"]}


def test_configmaps_of_users_have_a_policy_where_runs_bring_code() -> None:
    assert "local-code-policy" not in bodies(templates=["tune"])
    made = restrictions(templates=["tune"], local_code=True)
    assert made["local-code-policy"].body["metadata"]["name"] == "ray-platform.prod.local-code"
    users = [RayUserSettings(subject="user:a"), RayUserSettings(subject="user:b", job_templates=("tune",))]
    found = tenant(admins=["user:ada"], users=users, templates=["tune", "mine"], with_code=["mine"])
    assert ("Role", "ray-platform:ray-local-code", "team-a") in found
    assert ("Role", "ray-platform:ray-local-code", "team-a") not in tenant(users=users, templates=["tune", "mine"])


def test_rayjobs_on_an_existing_raycluster_are_refused_only_with_volcano() -> None:
    def messages(**admitted: Any) -> str:
        policy = bodies(**admitted)["neighbours-policy"]["spec"]
        return " ".join(each.get("message", "") for each in policy["validations"])

    assert "KubeRay starts no RayJob on an existing RayCluster" in messages(scheduler="volcano")
    assert "existing RayCluster" not in messages()


@pytest.mark.parametrize(
    ("owns", "roles"), [(True, {"ray-platform:aggregate-to-view", "ray-platform:aggregate-to-edit"}), (False, set())]
)
def test_the_stack_that_installs_kuberays_kinds_adds_them_to_kubernetes_own_roles(owns: bool, roles: set[str]) -> None:
    assert {name for _, name, _ in names(cluster_access((), "ray-system", owns_kinds=owns).values())} == roles


def test_cluster_admins_have_a_cluster_role_and_a_role_in_the_operators_namespace() -> None:
    assert names(cluster_access(("group:platform",), "kuberay", owns_kinds=False).values()) == {
        ("ClusterRole", "ray-platform:cluster-admin", None),
        ("ClusterRoleBinding", "ray-platform:cluster-admin", None),
        ("Role", "ray-platform:cluster-admin", "kuberay"),
        ("RoleBinding", "ray-platform:cluster-admin", "kuberay"),
    }


def test_a_message_asks_for_no_rights() -> None:
    """The API server evaluates it without `authorizer`, and would show a message without the value."""
    deployers = {"team-a": Deployer("ray-deployer", networked=True, classes=["standard"])}
    for body in bodies(hosts={"team-a": ["a.example.com"]}, templates=["tune"], deployers=deployers).values():
        spec = body["spec"]
        shown = [each.get("messageExpression", "") for each in spec.get("validations", ())]
        shown += [each["expression"] for each in spec.get("variables", ())]
        assert not any("authorizer" in each for each in shown)


def test_an_update_is_judged_by_the_object_before() -> None:
    """An entry that was wrong before may stay; each rule names what it has found."""
    for name in ("neighbours-policy", "ingress-hosts-policy", "ray-deployer-policy"):
        hosts, schedulers = {"team-a": ["a.example.com"]}, {"team-a": ["volcano"]}
        deployers = {"team-a": Deployer("ray-deployer", networked=True, classes=["standard"])}
        spec = bodies(hosts=hosts, scheduler="volcano", schedulers=schedulers, deployers=deployers)[name]["spec"]
        found = {each["name"]: each["expression"] for each in spec["variables"]}
        for each in spec["validations"]:
            if "messageExpression" in each:
                part = each["expression"].partition("variables.")[2].partition("[")[0]
                assert found[part].startswith("variables.sides.map(side, ")
                assert not re.search(r"\b(object|oldObject)\b", found[part])
                assert f"variables.{part}[?1].orValue([]).exists(kept, item in kept)" in each["expression"]


@pytest.mark.parametrize(("namespace", "there"), [("redis", True), (None, False)])
def test_cluster_admins_look_after_redis_in_its_own_namespace(namespace: str | None, there: bool) -> None:
    tenants = [{"name": "team-a"}]
    stack = parse(
        {"redis": {"namespace": namespace}, "access": {"clusterAdmins": ["group:platform"]}, "tenants": tenants}
    )
    found = [each.body for part in parts_of_tenants(stack) if part.kind == "RedisHa" for each in part.objects]
    roles = [each for each in names(found) if each[0] == "Role"]
    assert roles == [("Role", "ray-platform:cluster-admin", "redis")] * there


@pytest.mark.parametrize(
    ("scheduler", "role"),
    [
        ({"volcano": {}}, ("volcano-system", "volcano-scheduler-configmap")),
        ({"kueue": {"namespace": "kueue"}}, ("kueue", "kueue-manager-config")),
        ({"kueue": {"install": "existing"}}, None),
        (None, None),
    ],
)
def test_cluster_admins_change_the_configuration_of_the_scheduler_that_the_stack_installs(
    scheduler: dict[str, Any] | None, role: tuple[str, str] | None
) -> None:
    stack = parse({"scheduler": scheduler, "access": {"clusterAdmins": ["group:platform"]}})
    objects = next(part.objects for part in parts_of_platform(stack, "prod") if part.kind == "ClusterAccess")
    found = [
        (each.body["metadata"]["namespace"], *rule["resourceNames"])
        for each in objects
        for rule in each.body.get("rules", ())
        if "configmaps" in rule["resources"]
    ]
    assert found == ([role] if role else [])


def policies_of(stack: dict[str, Any]) -> dict[str, Body]:
    """The policies and bindings for tenants, by name."""
    parts = parts_of_platform(parse({"tenants": [{"name": "team-a"}, {"name": "team-b"}], **stack}), "prod")
    return {each.name: each.body for part in parts if part.kind == "TenantRestrictions" for each in part.objects}


@pytest.mark.parametrize(
    ("redis", "namespace"),
    [({}, "ray-system"), ({"namespace": "redis"}, "redis"), ({"scope": "perTenant"}, None), (None, None)],
)
def test_changes_of_a_shared_redis_by_cluster_admins_are_bounded(
    redis: dict[str, Any] | None, namespace: str | None
) -> None:
    made = policies_of({"redis": redis, "access": {"clusterAdmins": ["group:platform"]}})
    assert ("redis-policy" in made) == (namespace is not None)
    if namespace:
        (where,) = made["redis-policy-binding"]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert where["values"] == [namespace]
    assert "redis-policy" not in policies_of({"redis": redis})


def test_schedulers_are_refused_only_in_namespaces_of_tenants_that_name_some() -> None:
    tenants = [{"name": "team-a", "scheduler": "kubernetes"}, {"name": "team-b"}]
    spec = policies_of({"scheduler": {"kueue": {}}, "tenants": tenants})["neighbours-policy"]["spec"]
    (found,) = [each["expression"] for each in spec["variables"] if each["name"] == "scheduled"]
    assert 'request.namespace in ["team-a"]' in found
    assert '{"team-a": ["kubernetes"]}' in found
    without = policies_of({"scheduler": {"kueue": {}}})["neighbours-policy"]["spec"]
    assert "scheduled" not in [each["name"] for each in without["variables"]]
