"""The rights of people and accounts: compares each cell of docs/access.md with a real API server."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kubernetes import client

from components.access.manifests import (
    AGGREGATED,
    RBAC,
    aggregated,
    bodies,
    cluster_admin,
    cluster_admin_of_the_operator,
    pods_grants,
    ray_deployer,
    role_binding,
    subject,
    tenant_grants,
)
from local.rehearsal import Rehearsal
from stacks.access import named_clusters
from testbed.platform_stack import Rays, Stack
from tests.engine.access_table import table
from tests.engine.conftest import MakeStack
from tests.engine.people import (
    KUBERNETES_OWN,
    OPERATOR_NAMESPACE,
    OTHER_TEAM,
    PEOPLE,
    TEAM,
    Judge,
    Person,
    acting_as,
    people_of_two_tenants,
    refusal,
    settings_with_people,
)

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

TABLE = table()

COMPLETE = [who for who in PEOPLE if who not in ("Operator", *KUBERNETES_OWN)]
"""Columns that have all rights. The operator's rules are KubeRay's, and Kubernetes' roles have their own."""

SETTLES = 20.0
"""Seconds within which the API server applies a changed role; it usually takes much less."""


@pytest.fixture(scope="module")
def up(stack: MakeStack, cluster: Rehearsal) -> Stack:
    """The stack after `pulumi up`, and a person with each of Kubernetes' own roles in the tenant's namespace."""
    tenants = stack("access")
    tenants.edit(people_of_two_tenants)
    tenants.up()
    objects = client.CustomObjectsApi(cluster.client())
    for role in KUBERNETES_OWN:
        binding = role_binding(role, role, [subject(f"user:{PEOPLE[role].user}")])
        binding["roleRef"]["kind"] = "ClusterRole"
        objects.create_namespaced_custom_object(RBAC, "v1", TEAM, "rolebindings", binding)
    return tenants


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


@pytest.mark.parametrize("who", COMPLETE)
def test_only_actions_of_the_page_are_allowed(who: str, judge: Judge) -> None:
    person = PEOPLE[who]
    for place in ("own", "foreign", "operator", "outside"):
        documented = {
            (action.verb, action.group, action.kind, action.name)
            for action, allowed in TABLE[who].items()
            if allowed and action.place in (place, "")
        }
        namespace = person.namespace(place)
        assert judge.rules(person, namespace) - judge.rules(Person("anybody"), namespace) - documented == set()


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
    yield Role(bodies(cluster_admin_of_the_operator(admins))["role"], OPERATOR_NAMESPACE, "Cluster admin")
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
    for grant in [*tenant_grants(tenant.admins, tenant.users, clusters), *pods_grants(clusters, TEAM)]:
        yield Role(bodies(grant)["role"], TEAM, holders.get(grant.name, "Ray user"))
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
        settled(lambda: not all(judge.answers(person, cells).values()))
    finally:
        replace(cluster, role, role.body)
        settled(lambda: all(judge.answers(person, cells).values()))


def replace(cluster: Rehearsal, role: Role, body: dict[str, Any]) -> None:
    """Gives a role the rules of `body`."""
    objects, name, patch = client.CustomObjectsApi(cluster.client()), body["metadata"]["name"], {"rules": body["rules"]}
    if role.namespace:
        objects.patch_namespaced_custom_object(RBAC, "v1", role.namespace, "roles", name, patch)
    else:
        objects.patch_cluster_custom_object(RBAC, "v1", "clusterroles", name, patch)


def settled(reached: Callable[[], bool]) -> None:
    """Waits until it is true."""
    deadline = time.monotonic() + SETTLES
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


ON_TRAINING: dict[str, Any] = {"clusterSelector": {"ray.io/cluster": "training"}}

SUBMITTER = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "submitter", "image": "rayproject/ray:2.60.0"}]}
}

JOBS = {
    "on a RayCluster of the user": (ON_TRAINING, ""),
    "on another RayCluster": ({"clusterSelector": {"ray.io/cluster": "adhoc"}}, "you may not use RayCluster adhoc"),
    "on no RayCluster": ({}, "name the RayCluster that it runs on"),
    "with a RayCluster of its own": ({"rayClusterSpec": True}, "rayClusterSpec is for those who may make RayClusters"),
    "with both": ({**ON_TRAINING, "rayClusterSpec": True}, "rayClusterSpec is for those who may make RayClusters"),
    "with a submitter of its own": (
        {**ON_TRAINING, "submitterPodTemplate": SUBMITTER},
        "submitterPodTemplate is for those who may make RayClusters",
    ),
}
"""RayJobs, and why they are refused. `rayClusterSpec: True` is replaced with the spec of the running RayCluster."""


@pytest.mark.parametrize("what", JOBS)
def test_a_ray_user_creates_rayjobs_only_on_named_clusters_and_without_pod_templates(
    what: str, judge: Judge, rays: Rays
) -> None:
    spec, refused = JOBS[what]
    if "rayClusterSpec" in spec:
        spec = {**spec, "rayClusterSpec": rays.read(TEAM, "training")["spec"]}
    assert refused in refusal_of_job(PEOPLE["Ray user of training"], judge, spec)


def test_a_ray_cluster_admin_creates_any_rayjob(judge: Judge, rays: Rays) -> None:
    spec = {"rayClusterSpec": rays.read(TEAM, "training")["spec"], "submitterPodTemplate": SUBMITTER}
    assert refusal_of_job(PEOPLE["Ray cluster admin"], judge, spec) == ""


def refusal_of_job(person: Person, judge: Judge, spec: dict[str, Any]) -> str:
    """The error when a person creates a RayJob, as a dry run; empty if it is accepted."""
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "job"},
        "spec": {"entrypoint": "true", **spec},
    }
    objects = client.CustomObjectsApi(acting_as(person, judge.api))
    return refusal(lambda: objects.create_namespaced_custom_object("ray.io", "v1", TEAM, "rayjobs", job, dry_run="All"))


JSON_PATCH = "application/json-patch+json"

ONLY_SCALES = "this account may only scale RayClusters"

GROUP = "/spec/workerGroupSpecs/0"

PATCHES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "more workers": ([{"op": "replace", "path": f"{GROUP}/replicas", "value": 1}], ""),
    "one worker less": (
        [{"op": "add", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": ["training-worker-1"]}}],
        "",
    ),
    "another account": (
        [{"op": "add", "path": f"{GROUP}/template/spec/serviceAccountName", "value": "ray-deployer"}],
        ONLY_SCALES,
    ),
    "a larger maximum": (
        [{"op": "replace", "path": f"{GROUP}/maxReplicas", "value": 99}],
        ONLY_SCALES,
    ),
    "one group less": ([{"op": "remove", "path": GROUP}], ONLY_SCALES),
    "another head": (
        [{"op": "replace", "path": "/spec/headGroupSpec/rayStartParams", "value": {}}],
        ONLY_SCALES,
    ),
    "no token": ([{"op": "remove", "path": "/spec/authOptions"}], ONLY_SCALES),
    "another queue": (
        [{"op": "add", "path": "/metadata/labels", "value": {"volcano.sh/queue-name": "other"}}],
        ONLY_SCALES,
    ),
}
"""Patches of the autoscaler, which the head's account may send, and others that a Ray job may try with that account."""


@pytest.mark.parametrize("what", PATCHES)
def test_the_heads_account_may_only_scale_rayclusters(what: str, judge: Judge) -> None:
    patch, refused = PATCHES[what]
    objects = client.CustomObjectsApi(acting_as(PEOPLE["Head"], judge.api))
    error = refusal(
        lambda: objects.patch_namespaced_custom_object(
            "ray.io", "v1", TEAM, "rayclusters", "training", patch, dry_run="All", _content_type=JSON_PATCH
        )
    )
    assert refused in error
    assert bool(refused) == bool(error)
