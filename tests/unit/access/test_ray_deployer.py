"""The rights of the account that a tenant can have for Ray's pods."""

import pulumi
import pytest

from components.access.component import RayDeployer, RayDeployerArgs
from components.access.manifests import ray_deployer
from components.access.personas import RayDeployerSettings
from testbed.recorder import record

pytestmark = pytest.mark.unit

RBAC = "kubernetes:rbac.authorization.k8s.io/v1"


def test_it_may_create_and_delete_only_what_the_guide_names() -> None:
    granted = {
        (group, resource, verb)
        for rule in ray_deployer(RayDeployerSettings(), "team-a")["role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    resources = [("", "pods"), ("", "services"), ("apps", "deployments"), ("ray.io", "rayclusters")]
    verbs = ["get", "list", "watch", "create", "delete", "update", "patch"]
    assert granted == {(group, resource, verb) for group, resource in resources for verb in verbs}


def test_changed_names_still_refer_to_each_other() -> None:
    settings = RayDeployerSettings(service_account="runner", role="runs-ray", role_binding="runner-runs-ray")
    made = ray_deployer(settings, "team-a")
    assert made["service-account"]["metadata"]["name"] == "runner"
    assert made["role"]["metadata"]["name"] == made["role-binding"]["roleRef"]["name"] == "runs-ray"
    assert made["role-binding"]["subjects"] == [{"kind": "ServiceAccount", "name": "runner", "namespace": "team-a"}]
    assert made["role-binding"]["metadata"]["name"] == "runner-runs-ray"


def test_account_role_and_binding_are_created_in_the_tenants_namespace() -> None:
    recorder = record(lambda: RayDeployer("team-a-deployer", RayDeployerArgs(RayDeployerSettings(), "team-a")))
    made = [each for each in recorder.registered.values() if each.parent == "team-a-deployer"]
    assert sorted(each.type for each in made) == [
        "kubernetes:core/v1:ServiceAccount",
        f"{RBAC}:Role",
        f"{RBAC}:RoleBinding",
    ]
    assert {each.inputs["metadata"]["namespace"] for each in made} == {"team-a"}


def test_users_of_the_account_wait_until_it_is_bound() -> None:
    def program() -> None:
        deployer = RayDeployer("d", RayDeployerArgs(RayDeployerSettings(), "team-a"))
        pulumi.CustomResource("kubernetes:core/v1:Pod", "pod", {"account": deployer.service_account})

    recorder = record(program)
    assert recorder.registered["pod"].inputs["account"] == "ray-deployer"
    assert recorder.made_before("d-role-binding", "pod")
