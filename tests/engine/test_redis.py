"""Redis in the stack: creation, deletion, and changes of passwords."""

import base64
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.gangs import settled
from testbed.kubectl import Kubectl
from testbed.platform_stack import Stack, existing
from tests.engine.conftest import MakeStack

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(1200),
]

NAMESPACE = "redis"
"""A namespace that the stack creates for Redis; test_network.py has one in the operator's namespace."""


def tenants(settings: dict[str, Any]) -> None:
    """Two tenants that may have RayClusters in separate stacks, and one without RayClusters."""
    settings["redis"] = {"namespace": NAMESPACE}
    settings["access"] = {"clusterAdmins": ["group:platform"]}
    settings["tenants"] = [
        {"name": "a", "clusterNames": ["training"]},
        {"name": "b", "clusterNames": ["training"]},
        {"name": "idle"},
    ]


@pytest.fixture(scope="module")
def shared(stack_on_operator: MakeStack) -> Stack:
    """A stack with a shared Redis, after `pulumi up`."""
    made = stack_on_operator("redis")
    made.edit(tenants)
    made.up()
    return made


def secret(core: Any, namespace: str, name: str = "ray-redis") -> dict[str, str]:
    data = core.read_namespaced_secret(name, namespace).data
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def up_waits_for_three_nodes_with_a_volume_each(shared: Stack, cluster: Rehearsal, core: Any) -> None:
    apps: Any = client.AppsV1Api(cluster.client())
    made = apps.read_namespaced_stateful_set("ray-redis", NAMESPACE)
    assert made.status.ready_replicas == 3
    claims = core.list_namespaced_persistent_volume_claim(NAMESPACE).items
    assert {claim.metadata.name: claim.status.phase for claim in claims} == {
        f"data-ray-redis-{index}": "Bound" for index in range(3)
    }
    assert len({claim.spec.volume_name for claim in claims}) == 3


def each_tenant_has_a_separate_secret(shared: Stack, core: Any) -> None:
    found = {namespace: secret(core, namespace) for namespace in ("a", "b", "idle")}
    assert found["a"]["username"] == "a"
    assert found["a"]["password"] != found["b"]["password"]
    assert found["a"]["passwords"] == found["a"]["password"] + "\n"


def no_password_is_in_plain_text_in_the_state(shared: Stack, core: Any) -> None:
    passwords = [secret(core, "a")["password"], secret(core, NAMESPACE, "ray-redis-users")["passwords"].strip()]
    state = shared.pulumi("stack", "export").output
    assert "ray-redis" in state
    assert [password for password in passwords if password in state] == []


def an_edit_of_a_cluster_admin_stays_until_an_up_after_a_refresh(shared: Stack, cluster: Rehearsal) -> None:
    apps: Any = client.AppsV1Api(cluster.client())

    def memory() -> str:
        made = apps.read_namespaced_stateful_set("ray-redis", NAMESPACE)
        (redis,) = [each for each in made.spec.template.spec.containers if each.name == "redis"]
        return str(redis.resources.limits["memory"])

    before = memory()
    as_admin = ("--as=root", "--as-group=platform", "-n", NAMESPACE)
    Kubectl(cluster).does("set", "resources", "sts/ray-redis", "-c", "redis", "--limits=memory=3Gi", *as_admin)
    shared.changes_nothing()
    assert memory() == "3Gi"
    assert "ray-redis" in shared.pulumi("refresh", "--yes", "--skip-preview", "--diff").output
    shared.up()
    assert memory() == before


def a_rotation_in_two_steps_restarts_no_pod(shared: Stack, core: Any) -> None:
    def pods() -> dict[str, str]:
        return {pod.metadata.name: pod.metadata.uid for pod in core.list_namespaced_pod(NAMESPACE).items}

    before, running = secret(core, "a"), pods()
    shared.edit(lambda settings: settings["redis"].update(passwordGenerations=[1, 2]))
    shared.up()
    both = secret(core, "a")
    assert both["password"] != before["password"]
    assert both["passwords"].split() == [both["password"], before["password"]]
    shared.edit(lambda settings: settings["redis"].update(passwordGenerations=[2]))
    shared.up()
    after = secret(core, "a")
    assert after["passwords"].split() == [after["password"]] == [both["password"]]
    assert pods() == running
    shared.changes_nothing()
    shared.edit(lambda settings: settings["redis"].update(passwordGenerations=[3]))
    shared.up()
    assert secret(core, "a")["passwords"].split()[0] not in both["passwords"].split()


def users(core: Any) -> list[str]:
    acl = secret(core, NAMESPACE, "ray-redis-users")["redis.acl"]
    return [line.split()[1] for line in acl.splitlines()]


def a_tenant_keeps_its_user_without_clusters_until_it_is_removed(shared: Stack, core: Any) -> None:
    """KubeRay's cleanup of a tenant's last RayCluster needs the user after the RayCluster has left the stack file."""
    shared.edit(lambda settings: settings["tenants"][1].update(clusterNames=[]))
    shared.up()
    assert users(core) == ["default", "_nodes", "a", "b", "idle"]
    shared.edit(lambda settings: settings["tenants"].pop(1))
    shared.up()
    assert users(core) == ["default", "_nodes", "a", "idle"]


def a_node_whose_claim_and_pod_are_deleted_gets_another_volume(cluster: Rehearsal, core: Any) -> None:
    """As docs/runbooks.md has it for a volume that was lost with its machine."""

    def volumes() -> set[str]:
        claims = core.list_namespaced_persistent_volume_claim(NAMESPACE).items
        return {claim.spec.volume_name for claim in claims if not claim.metadata.deletion_timestamp}

    def ready() -> int:
        apps: Any = client.AppsV1Api(cluster.client())
        return int(apps.read_namespaced_stateful_set("ray-redis", NAMESPACE).status.ready_replicas or 0)

    before, kubectl = volumes(), Kubectl(cluster)
    kubectl.does("delete", "pvc", "-n", NAMESPACE, "data-ray-redis-2", "--wait=false")
    kubectl.does("delete", "pod", "-n", NAMESPACE, "ray-redis-2")
    settled(lambda: len(volumes() & before) == 2 and len(volumes() - {None}) == 3 and ready() == 3)


def destroy_deletes_it_with_its_namespace(shared: Stack, cluster: Rehearsal, core: Any) -> None:
    shared.destroy()
    assert shared.resources() == []
    assert f"namespace {NAMESPACE}" not in existing(cluster)
    assert core.list_persistent_volume_claim_for_all_namespaces().items == []


def test_a_redis_that_tenants_share(shared: Stack, cluster: Rehearsal, core: Any) -> None:
    up_waits_for_three_nodes_with_a_volume_each(shared, cluster, core)
    each_tenant_has_a_separate_secret(shared, core)
    no_password_is_in_plain_text_in_the_state(shared, core)
    an_edit_of_a_cluster_admin_stays_until_an_up_after_a_refresh(shared, cluster)
    a_rotation_in_two_steps_restarts_no_pod(shared, core)
    a_tenant_keeps_its_user_without_clusters_until_it_is_removed(shared, core)
    a_node_whose_claim_and_pod_are_deleted_gets_another_volume(cluster, core)
    destroy_deletes_it_with_its_namespace(shared, cluster, core)


def in_each_tenants_namespace(settings: dict[str, Any]) -> None:
    settings["network"] = {"monitoring": ["monitoring"]}
    settings["redis"] = {"mode": "single", "scope": "perTenant", "tls": {}, "exporter": {}, "backup": {}}
    settings["tenants"] = [
        {
            "name": "a",
            "clusterNames": ["training"],
            "quota": {"cpu": 4, "memory": "8Gi", "pods": 10, "storage": "20Gi"},
        },
        {"name": "idle"},
    ]


def test_a_redis_in_a_tenants_namespace_stays_within_the_tenants_limits(
    stack_on_operator: MakeStack, core: Any
) -> None:
    own = stack_on_operator("redis-per-tenant")
    own.edit(in_each_tenants_namespace)
    own.up()
    assert [pod.metadata.name for pod in core.list_namespaced_pod("a").items] == ["ray-redis-0"]
    assert core.read_namespaced_resource_quota("ray-platform", "a").status.used["requests.storage"] == "6Gi"
    made = secret(core, "a", "ray-redis-tls")
    assert secret(core, "a")["ca.crt"] == made["ca.crt"]
    assert made["tls.key"] not in own.pulumi("stack", "export").output
    assert "ray-redis-0" not in [pod.metadata.name for pod in core.list_namespaced_pod("idle").items]
    own.changes_nothing()
    own.destroy()


def test_the_secret_of_an_external_redis_is_copied_and_updated(stack_on_operator: MakeStack, core: Any) -> None:
    """Nothing listens at that address, so the stack warns."""
    core.create_namespace({"metadata": {"name": "external"}})
    given = {"username": "ray", "password": "first-password"}
    core.create_namespaced_secret("external", {"metadata": {"name": "redis"}, "stringData": given})
    external = {"address": "redis.invalid:6379", "secretName": "redis", "secretNamespace": "external"}
    others = stack_on_operator("redis-external")
    others.edit(tenants)
    others.edit(lambda settings: settings.update(redis={"mode": "external", "external": external}))
    assert "redis.external could not be checked: it does not answer from here" in others.up().output
    assert secret(core, "a").items() > {**given, "passwords": "first-password\n"}.items()
    core.patch_namespaced_secret("redis", "external", {"stringData": {"password": "second-password"}})
    others.up()
    assert secret(core, "a")["passwords"] == "second-password\n"
    assert "second-password" not in others.pulumi("stack", "export").output
    core.delete_namespaced_secret("redis", "external")
    assert "has no credentials: there is no Secret external/redis" in others.up(fails=True).output
    core.create_namespaced_secret("external", {"metadata": {"name": "redis"}, "stringData": given})
    others.destroy()
    core.delete_namespace("external")
