"""The rights of people and accounts: compares each cell of docs/access.md with a real API server."""

import textwrap
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
import yaml
from kubernetes import client

from components.access.manifests import (
    AGGREGATED,
    RBAC,
    admin_of_scheduler,
    aggregated,
    bodies,
    cluster_admin,
    cluster_admin_inside,
    pods_grants,
    ray_deployer,
    role_binding,
    subject,
    tenant_grants,
)
from components.access.neighbours import IDLE_FINALIZER
from components.monitoring.prometheus import service_of
from components.volcano.settings import VolcanoSettings
from local.rehearsal import Rehearsal
from stacks.objects.access import named_clusters
from stacks.objects.log_store import log_store
from stacks.objects.monitoring import objects_of_monitoring, scraper_of
from stacks.objects.ray_clusters import template_objects
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack
from testbed.pods.steps import until
from tests.engine.access_table import PAGE, PLACES, table
from tests.engine.attacks import ATTACKS, CRITICAL, EXTERNAL, JOBS, MODES, ONLY_SCALES, PATCHES, inside
from tests.engine.conftest import MakeStack
from tests.engine.people import (
    KUBERNETES_OWN,
    OPERATOR_NAMESPACE,
    OTHER_TEAM,
    PEOPLE,
    SCHEDULER_NAMESPACE,
    TEAM,
    WRITERS,
    Judge,
    Person,
    account,
    acting_as,
    people_of_two_tenants,
    refusal,
    settings_with_people,
    with_log_store,
)
from tests.engine.reaching import (
    CONNECTIONS,
    EARLIER,
    LABEL,
    MISSING,
    OF_CODE,
    OF_DEPLOYERS,
    OF_KINDS,
    OF_LABELLED_RAY,
    OF_REDIS,
    PODS,
    REACHING,
    worker_of,
)

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

TABLE = table()

COMPLETE = [who for who in PEOPLE if who not in ("Operator", *KUBERNETES_OWN)]
"""Columns that have all rights. The operator's rules are KubeRay's, and Kubernetes' roles have their own."""

SETTLES = 180.0
"""Seconds within which the API server applies a changed role; it usually takes much less."""

COLLECTED = 90.0
"""Seconds within which the garbage collector knows a new kind: it looks every 30 seconds
(cmd/kube-controller-manager/app/core.go)."""


@pytest.fixture(scope="module")
def up(stack: MakeStack, cluster: Rehearsal) -> Stack:
    """The stack after `pulumi up`, a person with each of Kubernetes' own roles in the tenant's namespace, and the role
    in the namespace of Volcano, which is not installed."""
    tenants = stack("access")
    tenants.edit(people_of_two_tenants)
    tenants.edit(with_log_store)
    tenants.edit(with_deployers)
    tenants.up()
    objects = client.CustomObjectsApi(cluster.client())
    for role in KUBERNETES_OWN:
        binding = role_binding(role, role, [subject(f"user:{PEOPLE[role].user}")])
        binding["roleRef"]["kind"] = "ClusterRole"
        objects.create_namespaced_custom_object(RBAC, "v1", TEAM, "rolebindings", binding)
    of_volcano = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SCHEDULER_NAMESPACE}}
    Kubectl(cluster).does("create", "-f", "-", bodies=[of_volcano, *scheduler_access().values()])
    return tenants


DEPLOYING = "team-deploys"
"""The namespace of a tenant whose code on Ray creates pods with connections, and claims."""

DEPLOYERS = {
    "account": account(DEPLOYING, "ray-deployer", DEPLOYING),
    "admin": Person("dora"),
    "editor": Person("eve"),
}


def with_deployers(settings: dict[str, Any]) -> None:
    """Adds this tenant."""
    network = {"clientFrom": [{"namespace": DEPLOYING, "podLabels": {"app": "portal"}}], "otherClusters": True}
    deployer = {"network": {"ports": [8000]}, "persistentVolumeClaims": {"storageClasses": ["standard"]}}
    tenant = {"name": DEPLOYING, "admins": ["user:dora"], "network": network, "rayDeployer": deployer}
    settings["tenants"].append(tenant)


def scheduler_access() -> dict[str, Any]:
    """The rights of cluster admins where Volcano is."""
    return admin_of_scheduler(["group:platform"], SCHEDULER_NAMESPACE, VolcanoSettings.CONFIG_MAP)


@pytest.fixture(scope="module")
def judge(up: Stack, cluster: Rehearsal) -> Judge:
    """The stack's API server."""
    return Judge(cluster.client())


def test_every_column_of_the_page_has_a_person() -> None:
    assert set(TABLE) == set(PEOPLE)


@pytest.mark.parametrize("who", PEOPLE)
def test_each_cell_of_the_page_is_the_api_servers_answer(who: str, judge: Judge) -> None:
    answers = judge.answers(PEOPLE[who], TABLE[who])
    wrong = [f"may {'' if may else 'not '}{action}" for action, may in answers.items() if may != TABLE[who][action]]
    assert wrong == []


@pytest.mark.thorough
@pytest.mark.parametrize("who", COMPLETE)
def test_only_actions_of_the_page_are_allowed(who: str, judge: Judge) -> None:
    person = PEOPLE[who]
    # The page names the proxies of two tenants; cluster admins may use all.
    further = {("get", "", "services/proxy", service_of(DEPLOYING))} if who == "Cluster admin" else set()
    for place in sorted(PLACES["everywhere"]):
        documented = {
            (action.verb, action.group, action.kind, action.name)
            for action, allowed in TABLE[who].items()
            if allowed and action.place in (place, "")
        }
        namespace = person.namespace(place)
        allowed = judge.rules(person, namespace) - judge.rules(Person("anybody"), namespace)
        assert allowed - documented - further == set()


class Role(NamedTuple):
    """A role of the stack, and a person whose rights come only from it."""

    body: dict[str, Any]
    namespace: str
    """Empty for a ClusterRole."""
    who: str


def roles() -> Iterator[Role]:
    """All roles of the stack."""
    stack = settings_with_people()
    admins = stack.access.cluster_admins
    tenant = stack.tenants[0]
    clusters = list(named_clusters(stack, tenant))
    yield Role(bodies(cluster_admin(admins), "ClusterRole")["role"], "", "Cluster admin")
    inside = cluster_admin_inside(admins, OPERATOR_NAMESPACE, redis=True)
    yield Role(inside["role"], OPERATOR_NAMESPACE, "Cluster admin")
    yield Role(scheduler_access()["role"], SCHEDULER_NAMESPACE, "Cluster admin")
    for to in AGGREGATED:
        yield Role(aggregated(to), "", to)
    holders = {
        "ray-cluster-admin": "Ray cluster admin",
        "ray-user": "Only looks",
        "ray-user:training": "Ray user of training",
        "ray-port-forwarder": "Ray user",
        "ray-job-submitter": "Ray user of training",
        "pods:tokens": "Head and workers with Kubernetes' tokens",
    }
    templates = [each.name for each in tenant.job_templates]
    with_code = [each.name for each in tenant.job_templates if each.local_code]
    given = tenant_grants(tenant.admins, tenant.users, clusters, templates=templates, with_code=with_code)
    for grant in [*given, *pods_grants(clusters, TEAM)]:
        yield Role(bodies(grant)["role"], TEAM, holders.get(grant.name, "Ray user"))
    yield Role(template_objects(stack, tenant, tenant.job_templates[0])["finetune:schedule-role"], TEAM, "Schedule")
    of_programs = {
        "ray-platform:cluster-admin": "Cluster admin",
        f"ray-platform:metrics:{TEAM}": "Only looks",
        f"ray-platform:metrics:{OTHER_TEAM}": "Cluster admin",
        f"ray-platform:logs:{TEAM}": "Only looks",
        f"ray-platform:logs:{OTHER_TEAM}": "Cluster admin",
        "ray-platform:prometheus": "Prometheus",
    }
    for body in (*objects_of_monitoring(stack), *scraper_of(stack, TEAM), *log_store(stack)):
        if body["kind"] == "Role":
            yield Role(dict(body), body["metadata"]["namespace"], of_programs[body["metadata"]["name"]])
    deployer = stack.tenants[1].ray_deployer
    assert deployer
    yield Role(ray_deployer(deployer, OTHER_TEAM)["role"], OTHER_TEAM, "ray-deployer")


def rules() -> Iterator[Any]:
    """Each rule of each role, by the indexes of both, with a descriptive name."""
    for number, role in enumerate(roles()):
        for index, rule in enumerate(role.body["rules"]):
            what = f"{' '.join(rule['verbs'])} {' '.join(rule['resources'])} {' '.join(rule.get('resourceNames', []))}"
            place = role.namespace or "everywhere"
            yield pytest.param(number, index, id=f"{role.body['metadata']['name']} in {place}: {what.strip()}")


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "index"), list(rules()))
def test_without_this_rule_an_action_of_the_page_is_denied(
    number: int, index: int, judge: Judge, cluster: Rehearsal
) -> None:
    role = list(roles())[number]
    person, rule = PEOPLE[role.who], role.body["rules"][index]
    cells = [action for action, allowed in TABLE[role.who].items() if allowed and action.by(rule)]
    assert cells
    less = {**role.body, "rules": [each for at, each in enumerate(role.body["rules"]) if at != index]}
    try:
        replace(cluster, role, less)
        until(lambda: not all(judge.answers(person, cells).values()), "the rights are gone", SETTLES, 0.05)
    finally:
        replace(cluster, role, role.body)
        until(lambda: all(judge.answers(person, cells).values()), "the rights are back", SETTLES, 0.05)


def replace(cluster: Rehearsal, role: Role, body: dict[str, Any]) -> None:
    """Gives a role the rules of `body`."""
    objects, name, patch = client.CustomObjectsApi(cluster.client()), body["metadata"]["name"], {"rules": body["rules"]}
    if role.namespace:
        objects.patch_namespaced_custom_object(RBAC, "v1", role.namespace, "roles", name, patch)
    else:
        objects.patch_cluster_custom_object(RBAC, "v1", "clusterroles", name, patch)


@pytest.mark.thorough
@pytest.mark.parametrize("what", JOBS)
def test_a_ray_user_creates_rayjobs_only_on_named_clusters_and_without_pod_templates(
    what: str, judge: Judge, rays: Rays
) -> None:
    spec, refused = JOBS[what]
    if "rayClusterSpec" in spec:
        spec = {**spec, "rayClusterSpec": rays.read(TEAM, "training")["spec"]}
    assert refused in refusal_of_job(PEOPLE["Ray user of training"], judge, spec)


@pytest.mark.thorough
@pytest.mark.parametrize("how", MODES)
def test_a_rayjob_whose_submitter_could_not_start_is_refused(how: str, judge: Judge, rays: Rays) -> None:
    how_in, refused = MODES[how]
    spec = {"submissionMode": "K8sJobMode", "rayClusterSpec": rays.read(TEAM, "training")["spec"], **how_in}
    error = refusal_of_job(PEOPLE["Ray cluster admin"], judge, spec)
    assert refused in error
    assert bool(refused) == bool(error)


def refusal_of_job(person: Person, judge: Judge, spec: dict[str, Any]) -> str:
    """The error when a person creates a RayJob, as a dry run; empty if it is accepted."""
    spec = {"entrypoint": "true", "submissionMode": "HTTPMode", **spec}
    metadata = {"name": "job", "annotations": spec.pop("annotations", {})}
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}
    return refusal_of(person, judge, job)


def refusal_of(person: Person, judge: Judge, body: dict[str, Any], namespace: str = TEAM) -> str:
    """The error when a person creates an object of KubeRay's, as a dry run; empty if it is accepted."""
    objects, plural = client.CustomObjectsApi(acting_as(person, judge.api)), f"{body['kind'].lower()}s"
    return refusal(
        lambda: objects.create_namespaced_custom_object("ray.io", "v1", namespace, plural, body, dry_run="All")
    )


def own_cluster(rays: Rays) -> dict[str, Any]:
    """A RayCluster of the tenant's own, as the stack's."""
    spec = rays.read(TEAM, "training")["spec"]
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "adhoc"}, "spec": spec}


@pytest.mark.parametrize("what", [*ATTACKS, *REACHING])
def test_a_raycluster_of_a_tenant_harms_no_other(what: str, judge: Judge, rays: Rays) -> None:
    attack, refused = {**ATTACKS, **REACHING}[what]
    cluster = own_cluster(rays)
    attack(cluster)
    error = refusal_of(PEOPLE["Ray cluster admin"], judge, cluster)
    assert refused in error
    assert bool(refused) == bool(error)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["RayJob", "RayService", "RayCronJob"])
def test_nor_does_a_raycluster_in_another_kind(kind: str, judge: Judge, rays: Rays) -> None:
    spec = own_cluster(rays)["spec"]
    assert refusal_of(PEOPLE["Ray cluster admin"], judge, inside(kind, spec)) == ""
    spec["headGroupSpec"]["template"]["spec"].update(CRITICAL)
    assert "may evict pods of other tenants" in refusal_of(PEOPLE["Ray cluster admin"], judge, inside(kind, spec))


@pytest.mark.thorough
@pytest.mark.parametrize("what", OF_KINDS)
def test_nor_do_other_objects_of_kuberay(what: str, judge: Judge, rays: Rays) -> None:
    kind, attack, refused = OF_KINDS[what]
    body = inside(kind, own_cluster(rays)["spec"])
    attack(body)
    assert refused in refusal_of(PEOPLE["Ray cluster admin"], judge, body)


@pytest.mark.thorough
@pytest.mark.parametrize("what", EARLIER)
def test_an_update_keeps_an_earlier_violation_and_adds_none(what: str, judge: Judge, rays: Rays) -> None:
    earlier, patch, refused = EARLIER[what]
    cluster = own_cluster(rays)
    cluster["spec"]["suspend"] = True
    earlier(cluster)
    rays.create(TEAM, cluster)
    try:
        as_admin = client.CustomObjectsApi(acting_as(PEOPLE["Ray cluster admin"], judge.api))
        error = refusal(
            lambda: as_admin.patch_namespaced_custom_object(
                "ray.io", "v1", TEAM, "rayclusters", "adhoc", patch, dry_run="All"
            )
        )
    finally:
        rays.delete(TEAM, "adhoc")
        until(lambda: not rays.exists(TEAM, "adhoc"), "it is deleted")
    assert refused in error
    assert bool(refused) == bool(error)


@pytest.mark.thorough
def test_a_rayservice_takes_no_address_of_others(judge: Judge, rays: Rays) -> None:
    service = inside("RayService", own_cluster(rays)["spec"])
    service["spec"]["serveService"] = EXTERNAL
    assert "externalIPs take the traffic" in refusal_of(PEOPLE["Ray cluster admin"], judge, service)


@pytest.mark.thorough
@pytest.mark.parametrize("what", OF_CODE)
def test_nor_do_services_and_pods_of_code_on_ray(what: str, judge: Judge) -> None:
    api = acting_as(PEOPLE["ray-deployer"], judge.api)
    core: Any = client.CoreV1Api(api)
    apps: Any = client.AppsV1Api(api)
    create = {
        "Service": core.create_namespaced_service,
        "Pod": core.create_namespaced_pod,
        "Deployment": apps.create_namespaced_deployment,
    }
    body, refused = OF_CODE[what]
    error = refusal(lambda: create[body["kind"]](OTHER_TEAM, body, dry_run="All"))
    assert refused in error
    assert bool(refused) == bool(error)


@pytest.fixture(scope="module")
def editor(up: Stack, cluster: Rehearsal) -> None:
    """A person with Kubernetes' role `edit` where code on Ray creates pods with connections."""
    Kubectl(cluster).does("create", "rolebinding", "editor", "-n", DEPLOYING, "--clusterrole=edit", "--user=eve")


def tried(cluster: Rehearsal, who: str, command: str, *arguments: str, body: dict[str, Any] | None = None) -> str:
    """The API server's refusal of a command, as a dry run; empty if it accepts it."""
    acting = (f"--as={DEPLOYERS[who].user}", "-n", DEPLOYING, "--dry-run=server")
    return Kubectl(cluster).tries(command, *acting, *arguments, bodies=[body] if body else None).stderr


@pytest.mark.parametrize("what", OF_DEPLOYERS)
def test_only_code_on_ray_creates_pods_with_its_connections_and_without_others(
    what: str, editor: None, cluster: Rehearsal
) -> None:
    who, body, refused = OF_DEPLOYERS[what]
    error = tried(cluster, who, "create", "-f", "-", body=body)
    assert refused in error
    assert bool(refused) == bool(error)


def test_code_on_ray_deletes_its_claims_and_no_storage_of_the_tenant(up: Stack, cluster: Rehearsal) -> None:
    own = OF_DEPLOYERS["a claim with the label"][1]
    storage = {**own, "metadata": {"name": "storage"}}
    Kubectl(cluster).does("create", "-n", DEPLOYING, "-f", "-", bodies=[own, storage])
    for name, refused in (("own", ""), ("storage", "this claim may be storage of the tenant")):
        error = tried(cluster, "account", "delete", "pvc", name)
        assert refused in error
        assert bool(refused) == bool(error)
        assert tried(cluster, "editor", "delete", "pvc", name) == ""
    Kubectl(cluster).does("delete", "pvc", "-n", DEPLOYING, "own", "storage")


def on_the_page(begins: str) -> dict[str, Any]:
    """An object of the page, by its first lines."""
    _, found, rest = PAGE.read_text().partition(textwrap.indent(begins, "    "))
    body: dict[str, Any] = yaml.safe_load(textwrap.dedent(found + rest.partition("\n\n")[0]))
    return body


def test_the_pages_deployment_and_claim_are_accepted(up: Stack, cluster: Rehearsal) -> None:
    deployment = on_the_page("apiVersion: apps/v1\n")
    deployment["metadata"].pop("namespace")
    claim = on_the_page("apiVersion: v1\nkind: PersistentVolumeClaim\n")
    claim["metadata"]["name"] = "own"
    claim["spec"]["storageClassName"] = "standard"
    for body in (deployment, claim):
        assert tried(cluster, "account", "create", "-f", "-", body=body) == ""


@pytest.mark.parametrize("who", ["account", "admin"])
@pytest.mark.parametrize("what", OF_LABELLED_RAY)
def test_no_raycluster_has_the_connections_of_what_code_creates(
    what: str, who: str, up: Stack, cluster: Rehearsal, rays: Rays
) -> None:
    attack, refused = OF_LABELLED_RAY[what]
    body = own_cluster(rays)
    attack(body)
    error = tried(cluster, who, "create", "-f", "-", body=body)
    assert refused in error
    assert bool(refused) == bool(error)


def test_without_the_setting_code_on_ray_creates_pods_with_and_without_the_label(
    judge: Judge, cluster: Rehearsal
) -> None:
    core: Any = client.CoreV1Api(acting_as(PEOPLE["ray-deployer"], judge.api))
    for what in ("a pod with the label", "a pod without it"):
        assert refusal(partial(core.create_namespaced_pod, OTHER_TEAM, OF_DEPLOYERS[what][1], dry_run="All")) == ""
    claim = OF_DEPLOYERS["a claim"][1]
    assert 'cannot create resource \\"persistentvolumeclaims\\"' in refusal(
        partial(core.create_namespaced_persistent_volume_claim, OTHER_TEAM, claim, dry_run="All")
    )


def test_controllers_create_the_pods_of_a_deployment_and_their_label_does_not_change(
    up: Stack, cluster: Rehearsal
) -> None:
    kubectl = Kubectl(cluster)
    code, where = f"--as={DEPLOYERS['account'].user}", ("-n", DEPLOYING)
    kubectl.does("create", code, *where, "-f", "-", bodies=[OF_DEPLOYERS["a Deployment with the label"][1]])
    kubectl.does("create", *where, "-f", "-", bodies=[worker_of("training", "worker")])
    selector = ",".join(f"{key}={value}" for key, value in LABEL.items())

    def pods() -> list[str]:
        return kubectl.does("get", "pods", *where, "-l", selector, "-o", "name").split()

    until(lambda: len(pods()) == 1, "the Deployment has its pod")
    kubectl.does("scale", *where, "deployment/own", "--replicas=2")
    until(lambda: len(pods()) == 2, "it has two")
    removed = tried(cluster, "account", "label", pods()[0], "ray-platform/created-by-")
    assert MISSING in removed
    taken = tried(cluster, "account", "label", "pod/worker", "=".join(*LABEL.items()))
    assert "label ray.io/cluster=training" in taken
    assert CONNECTIONS in taken
    assert tried(cluster, "account", "label", "pod/worker", "mine=1") == ""
    # Kubernetes adds a finalizer to a Deployment that is deleted with its pods, as ado deletes it.
    kubectl.does("delete", code, *where, "deployment/own", "--cascade=foreground")
    assert pods() == []
    kubectl.does("delete", *where, "pod/worker", "--force")


@pytest.fixture(scope="module")
def workers(up: Stack, cluster: Rehearsal) -> Iterator[None]:
    """A worker of the RayCluster, and one of another."""
    core: Any = client.CoreV1Api(cluster.client())
    for owner, name in (("training", "own"), ("tokens", "foreign")):
        core.create_namespaced_pod(TEAM, worker_of(owner, name))
    yield
    for name in ("own", "foreign"):
        core.delete_namespaced_pod(name, TEAM, grace_period_seconds=0)


@pytest.mark.thorough
@pytest.mark.parametrize("what", PODS)
def test_the_heads_account_changes_no_pod_beside_its_workers(what: str, judge: Judge, workers: None) -> None:
    name, patch, refused = PODS[what]
    core: Any = client.CoreV1Api(acting_as(PEOPLE["Head"], judge.api))
    error = refusal(lambda: core.patch_namespaced_pod(name, TEAM, patch, dry_run="All"))
    assert refused in error
    assert bool(refused) == bool(error)


@pytest.mark.thorough
def test_the_heads_account_scales_no_other_raycluster(judge: Judge) -> None:
    objects = client.CustomObjectsApi(acting_as(PEOPLE["Head"], judge.api))
    patch = {"metadata": {"finalizers": [IDLE_FINALIZER]}}
    assert ONLY_SCALES in refusal(
        lambda: objects.patch_namespaced_custom_object(
            "ray.io", "v1", TEAM, "rayclusters", "tokens", patch, dry_run="All"
        )
    )


@pytest.mark.thorough
@pytest.mark.parametrize("namespace", ["kube-system", OPERATOR_NAMESPACE])
def test_a_cluster_admin_makes_no_raycluster_that_runs_as_the_operator(
    namespace: str, judge: Judge, rays: Rays
) -> None:
    cluster = own_cluster(rays)
    cluster["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"] = "kuberay-operator"
    assert 'cannot create resource \\"rayclusters\\"' in refusal_of(PEOPLE["Cluster admin"], judge, cluster, namespace)
    assert refusal_of(PEOPLE["Cluster admin"], judge, own_cluster(rays)) == ""


@pytest.mark.thorough
@pytest.mark.parametrize("what", OF_REDIS)
def test_a_cluster_admin_scales_and_restarts_redis_and_changes_nothing_else_of_it(what: str, judge: Judge) -> None:
    patch, allowed = OF_REDIS[what]
    for person, may in ((PEOPLE["Cluster admin"], allowed), (Person("kubernetes-admin", ("system:masters",)), True)):
        apps: Any = client.AppsV1Api(acting_as(person, judge.api))
        patched = partial(apps.patch_namespaced_stateful_set, "ray-redis", OPERATOR_NAMESPACE, patch, dry_run="All")
        error = refusal(patched)
        assert error == "" if may else "cluster admins may set replicas and resources of Redis" in error


@pytest.mark.thorough
def test_the_operator_and_the_garbage_collector_set_owners(judge: Judge, rays: Rays, cluster: Rehearsal) -> None:
    """The operator makes the RayCluster of a RayJob; a RayJob that is deleted alone leaves it without an owner."""
    job = inside("RayJob", {**own_cluster(rays)["spec"], "enableInTreeAutoscaling": False})
    # A RayJob that is deleted alone before the garbage collector knows the kind never ends, so it has to know it.
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}
    jobs, orphan = Rays(cluster, "rayjobs"), {"metadata": {"name": "adhoc", "ownerReferences": [gone]}}
    jobs.create(TEAM, {**job, **orphan, "spec": {**job["spec"], "suspend": True}})
    until(lambda: not jobs.exists(TEAM, "adhoc"), "a RayJob without its owner is gone", COLLECTED)
    as_admin = Rays(cluster, "rayjobs", acting_as(PEOPLE["Ray cluster admin"], judge.api))
    as_admin.create(TEAM, job)

    def owned() -> list[Any]:
        return rays.named(TEAM, "ray.io/originated-from-cr-name=other")

    until(lambda: [each.get("status", {}).get("state") for each in owned()] == ["ready"], "the RayJob has a cluster")
    assert [each["metadata"]["ownerReferences"][0]["kind"] for each in owned()] == ["RayJob"]
    for each, name in (
        (as_admin, "other"),
        (Rays(cluster, "rayclusters", acting_as(PEOPLE["Ray cluster admin"], judge.api)), "training"),
    ):
        refused = refusal(partial(each.delete, TEAM, name, propagation_policy="Orphan"))
        assert "delete it without --cascade=orphan" in refused
    jobs.delete(TEAM, "other", propagation_policy="Orphan")
    until(lambda: ["ownerReferences" in each["metadata"] for each in owned()] == [False], "it has no owner", COLLECTED)
    rays.delete(TEAM, owned()[0]["metadata"]["name"])


JSON_PATCH = "application/json-patch+json"


@pytest.mark.thorough
@pytest.mark.parametrize(("who", "what"), PATCHES)
def test_an_account_may_only_scale_rayclusters_and_one_may_suspend_them(who: str, what: str, judge: Judge) -> None:
    patch, refused = PATCHES[who, what]
    objects = client.CustomObjectsApi(acting_as(WRITERS[who], judge.api))
    error = refusal(
        lambda: objects.patch_namespaced_custom_object(
            "ray.io", "v1", TEAM, "rayclusters", "training", patch, dry_run="All", _content_type=JSON_PATCH
        )
    )
    assert refused in error
    assert bool(refused) == bool(error)


def test_an_object_whose_pods_cannot_reach_each_other_is_created_with_a_warning(
    up: Stack, cluster: Rehearsal, rays: Rays
) -> None:
    spec = rays.read(TEAM, "training")["spec"]
    selected = {"entrypoint": "true", "clusterSelector": {"ray.io/cluster": "training"}}
    said = {
        kind: Kubectl(cluster).creates(
            TEAM, {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "by-hand"}, "spec": made}
        )
        for kind, made in (("RayCluster", spec), ("RayJob", selected))
    }
    assert said["RayCluster"].startswith("Warning: ")
    assert "its workers will wait for the head: add its name to clusterNames" in said["RayCluster"]
    assert said["RayJob"] == ""
