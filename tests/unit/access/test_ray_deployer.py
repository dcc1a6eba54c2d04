"""The rights of the account that a tenant can have for Ray's pods."""

from components.access.manifests import ray_deployer
from components.access.personas import RayDeployerSettings


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
