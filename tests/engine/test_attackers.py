"""What people and code may write, with values in any field: nothing that is accepted reaches beyond their own."""

import copy
import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes import client

from components.job_template.manifests import brings_code, code_of, run_of, size_name
from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays
from tests.conftest import Compared
from tests.engine.attackers.fields import Body, Fields, Mutations
from tests.engine.attackers.reach import POD_SECURITY, changed, pods, reached
from tests.engine.attacks import ON_TRAINING, inside
from tests.engine.conftest import MakeStack
from tests.engine.people import (
    OPERATOR_NAMESPACE,
    OTHER_TEAM,
    PEOPLE,
    TEAM,
    WRITERS,
    Judge,
    Person,
    headers,
    people_of_two_tenants,
)
from tests.engine.reaching import OF_CODE, worker_of

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.differential,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(1200),
]

FEWER = settings(max_examples=settings().max_examples // 4)
"""Each case is a request to the API server, of twenty kinds of attackers."""


@pytest.fixture(scope="module")
def judge(stack_on_operator: MakeStack, cluster: Rehearsal) -> Judge:
    """The API server of a stack with two tenants."""
    tenants = stack_on_operator("access")
    tenants.edit(people_of_two_tenants)
    tenants.up()
    return Judge(cluster.client())


@pytest.fixture(scope="module")
def fields(judge: Judge) -> Fields:
    return Fields(judge.api)


class Sent(NamedTuple):
    """The answer to a request that changes nothing."""

    status: int
    body: Body

    @property
    def accepted(self) -> bool:
        return self.status < HTTPStatus.MULTIPLE_CHOICES


def send(judge: Judge, person: Person | None, method: str, path: str, body: Any, kind: str = "json") -> Sent:
    """A dry run. `person`: None for a Kubernetes administrator."""
    content = {"Content-Type": "application/json" if kind == "json" else f"application/{kind}+json"}
    answer = judge.api.rest_client.pool_manager.request(
        method,
        f"{judge.api.configuration.host}{path}?dryRun=All",
        json=body,
        headers={**content, **(headers(person) if person else {})},
    )
    return Sent(answer.status, answer.json())


def path_of(version: str, namespace: str, plural: str, name: str = "") -> str:
    root = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{plural}"
    return f"{root}/{name}" if name else root


RAY = "ray.io/v1"

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "own"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}},
}

KINDS = {
    "RayCluster": (RAY, "rayclusters"),
    "RayJob": (RAY, "rayjobs"),
    "RayService": (RAY, "rayservices"),
    "RayCronJob": (RAY, "raycronjobs"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "Pod": ("v1", "pods"),
    "Service": ("v1", "services"),
    "Deployment": ("apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "statefulsets"),
}
"""Version and plural."""

MAKERS = {
    "Ray cluster admin": (TEAM, ("RayCluster", "RayJob", "RayService", "RayCronJob", "PodDisruptionBudget")),
    "ray-deployer": (OTHER_TEAM, ("RayCluster", "Pod", "Service", "Deployment")),
    "Cluster admin": (TEAM, ("RayCluster",)),
}
"""Who makes objects of their own: where, and of which kinds."""


def own(kind: str, cluster: Body) -> Body:
    """An object that is accepted."""
    if kind == "PodDisruptionBudget":
        return BUDGET
    if kind in ("Pod", "Service", "Deployment"):
        return OF_CODE[f"a {kind}" if kind != "Pod" else "a pod"][0]
    if kind == "RayCluster":
        return {"apiVersion": RAY, "kind": kind, "metadata": {"name": "adhoc"}, "spec": cluster}
    return inside(kind, cluster)


@pytest.fixture(scope="module")
def cluster_spec(judge: Judge, cluster: Rehearsal) -> Body:
    """The spec of a RayCluster that the stack has made."""
    spec: Body = Rays(cluster, "rayclusters").read(TEAM, "training")["spec"]
    return spec


@pytest.mark.parametrize(("who", "kind"), [(who, kind) for who, (_, kinds) in MAKERS.items() for kind in kinds])
def test_no_object_that_somebody_makes_reaches_beyond_the_namespace(
    who: str, kind: str, judge: Judge, fields: Fields, cluster_spec: Body, compared: Compared
) -> None:
    namespace, _ = MAKERS[who]
    version, plural = KINDS[kind]
    mutations, base, tally = Mutations(fields, version, kind), own(kind, cluster_spec), Counter[str]()
    path = path_of(version, namespace, plural)
    first = send(judge, PEOPLE[who], "POST", path, base)
    assert first.accepted, first.body["message"]

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        body = data.draw(st.composite(mutations.drawn)(base))
        sent = send(judge, PEOPLE[who], "POST", path, body)
        tally[verdict(judge, namespace, sent)] += 1

    attack()
    assert tally["refused"] > 0
    compared("the table of what is anybody's own", f"objects of kind {kind} by {who}", tally)


def verdict(judge: Judge, namespace: str, sent: Sent) -> str:
    """Fails if what is accepted reaches beyond the namespace."""
    if not sent.accepted:
        return "refused"
    found = reached(sent.body)
    assert not [each for each in found if not each.startswith(POD_SECURITY)]
    if found:
        made = [{**pod, "apiVersion": "v1", "kind": "Pod"} for pod in pods(sent.body)]
        for pod in made:
            pod["metadata"] = {"name": "made"}
            for container in pod["spec"]["containers"]:
                container.setdefault("image", "ray")
        answers = [send(judge, None, "POST", path_of("v1", namespace, "pods"), pod) for pod in made]
        assert [each for each in answers if not each.accepted], found
        return "refused in its pods"
    return "accepted"


OF_THE_SERVER = re.compile(
    r"metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields|generateName).*|status.*"
)


def differing(before: Body, after: Body, free: str) -> list[str]:
    """The fields that differ and are not free."""
    found = changed(before, after)
    return [each for each in found if not OF_THE_SERVER.fullmatch(each) and not re.fullmatch(free, each)]


JOB: Body = {
    "apiVersion": RAY,
    "kind": "RayJob",
    "metadata": {"name": "mine"},
    "spec": {"entrypoint": "true", "submissionMode": "HTTPMode", **ON_TRAINING},
}


def test_no_job_of_a_user_brings_pods_or_runs_elsewhere(judge: Judge, fields: Fields, compared: Compared) -> None:
    alice, tally = PEOPLE["Ray user of training"], Counter[str]()
    mutations, path = Mutations(fields, RAY, "RayJob"), path_of(RAY, TEAM, "rayjobs")
    assert send(judge, alice, "POST", path, JOB).accepted

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        sent = send(judge, alice, "POST", path, data.draw(st.composite(mutations.drawn)(JOB)))
        tally["accepted" if sent.accepted else "refused"] += 1
        if sent.accepted:
            assert reached(sent.body) == []
            spec = sent.body["spec"]
            assert not {"rayClusterSpec", "submitterPodTemplate"} & set(spec)
            assert spec["clusterSelector"]["ray.io/cluster"] == "training"
            author = sent.body["metadata"].get("annotations", {}).get("ray-platform/created-by", alice.user)
            assert author == alice.user

    attack()
    assert tally["refused"] > 0
    compared("the table of what is anybody's own", "RayJobs by Ray user of training", tally)


RUNNERS = (
    ("Ray user", "finetune"),
    ("Ray user", "finetune-large"),
    ("Schedule", "finetune-wide"),
    ("Ray user", "sandbox"),
)
"""Who runs which job template, or which size of it. Runs of `sandbox` bring their code."""

CODE = f"gcs://_ray_pkg_{'a1' * 20}.zip"


@pytest.mark.parametrize(("who", "name"), RUNNERS)
def test_no_run_differs_from_its_template_and_size(
    who: str, name: str, judge: Judge, fields: Fields, cluster: Rehearsal, compared: Compared
) -> None:
    template, tally = Rays(cluster, "raycronjobs").read(TEAM, name), Counter[str]()
    code = CODE if brings_code(template) else None
    run, bare = (run_of(template, given, PEOPLE[who].user, code) for given in (["--epochs=3"], []))
    mutations, path = Mutations(fields, RAY, "RayJob"), path_of(RAY, TEAM, "rayjobs")
    assert send(judge, PEOPLE[who], "POST", path, run).accepted

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        sent = send(judge, PEOPLE[who], "POST", path, data.draw(st.composite(mutations.drawn)(run)))
        tally["accepted" if sent.accepted else "refused"] += 1
        if sent.accepted and "rayClusterSpec" in sent.body["spec"]:
            free = r"spec\.suspend|metadata\.(name|generateName|namespace)"
            assert [] in [differing(each, sent.body, free) for each in (run, bare)]

    attack()
    assert tally["refused"] > 0
    compared("the table of what is anybody's own", f"runs of {name} by {who}", tally)


SIZES = (None, "large", "wide")
"""Those of `finetune`."""

PARTS = (
    ("metadata", "name"),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "rayClusterSpec"),
    *(("spec", "rayClusterSpec", "workerGroupSpecs", 0, field) for field in ("groupName", "replicas", "template")),
)
"""What a run may have of another size."""


def test_a_run_is_accepted_if_every_part_is_of_one_size(judge: Judge, cluster: Rehearsal, compared: Compared) -> None:
    user, tally, path = PEOPLE["Ray user"], Counter[str](), path_of(RAY, TEAM, "rayjobs")
    held = [Rays(cluster, "raycronjobs").read(TEAM, size_name("finetune", size)) for size in SIZES]
    runs = [run_of(each, ["--epochs=3"], user.user) for each in held]

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        body = copy.deepcopy(data.draw(st.sampled_from(runs)))
        for *above, last in data.draw(st.lists(st.sampled_from(PARTS), max_size=3)):
            holder: Any = body
            other: Any = data.draw(st.sampled_from(runs))
            for step in above:
                holder, other = holder[step], other[step]
            holder[last] = copy.deepcopy(other[last])
        [workers] = body["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        workers["replicas"] = data.draw(st.sampled_from([*[workers["replicas"]] * 4, 1, 2, 4, 100]))
        sent = send(judge, user, "POST", path, body)
        assert sent.accepted == (body in runs)
        tally["accepted" if sent.accepted else "refused"] += 1

    attack()
    assert all(tally[each] > 0 for each in ("accepted", "refused"))
    compared("the sizes of a job template", "runs with parts of several sizes", tally)


WITH_CODE = ("Ray user", "Ray user of training", "Ray cluster admin")
"""Who brings code to runs."""


@pytest.mark.parametrize("who", WITH_CODE)
def test_no_configmap_is_more_than_the_code_of_an_own_run(
    who: str, judge: Judge, fields: Fields, cluster: Rehearsal, compared: Compared
) -> None:
    run = run_of(Rays(cluster, "raycronjobs").read(TEAM, "sandbox"), [], PEOPLE[who].user, CODE)
    run["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    code, tally = code_of(run, b"PK"), Counter[str]()
    mutations, path = Mutations(fields, "v1", "ConfigMap"), path_of("v1", TEAM, "configmaps")
    assert send(judge, PEOPLE[who], "POST", path, code).accepted
    free = r"binaryData\.code\.zip|metadata\.(namespace|ownerReferences\.0\.(uid|controller|blockOwnerDeletion))"

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        sent = send(judge, PEOPLE[who], "POST", path, data.draw(st.composite(mutations.drawn)(code)))
        tally["accepted" if sent.accepted else "refused"] += 1
        if sent.accepted:
            assert differing(code, sent.body, free) == []
            [owner] = sent.body["metadata"]["ownerReferences"]
            assert not owner.get("controller")
            assert not owner.get("blockOwnerDeletion")

    attack()
    assert tally["refused"] > 0
    compared("the table of what is anybody's own", f"code of runs by {who}", tally)


SCALES = r"spec\.workerGroupSpecs\.\d+\.(replicas|scaleStrategy(\.workersToDelete(\.\d+)?)?)|spec\.idleSuspend"

PATCHED = {
    ("Head", "RayCluster", "training", ""): rf"{SCALES}|metadata\.finalizers(\.0)?",
    ("Head", "RayCluster", "tokens", ""): "",
    ("Head", "Pod", "own", ""): r"metadata\.annotations(\.ray\.io/.*)?",
    ("Head", "Pod", "foreign", ""): "",
    ("Head", "Pod", "ray-run-history-0", ""): "",
    ("Head", "Pod", "own", "resize"): r"(metadata\.annotations|spec\.(containers\.\d+\.)?resources).*",
    ("Head", "Pod", "ray-run-history-0", "resize"): "",
    ("Idle termination", "RayCluster", "training", ""): rf"{SCALES}|spec\.suspend|metadata\.finalizers(\.0)?",
    ("Idle termination", "RayCluster", "tokens", ""): rf"{SCALES}|spec\.suspend|metadata\.finalizers(\.0)?",
    ("Cluster admin", "StatefulSet", "ray-redis", ""): (
        r"metadata\.annotations.*|spec\.replicas|spec\.template\.spec\.containers\.\d+\.resources.*"
        r"|spec\.template\.metadata\.annotations(\.kubectl\.kubernetes\.io/restartedAt)?"
    ),
}
"""By who, kind, name and subresource, what a patch may change."""


@pytest.fixture(scope="module")
def workers(judge: Judge) -> Iterator[None]:
    """A worker of the RayCluster, and one of another."""
    core: Any = client.CoreV1Api(judge.api)
    for owner, name in (("training", "own"), ("tokens", "foreign")):
        core.create_namespaced_pod(TEAM, worker_of(owner, name))
    yield
    for name in ("own", "foreign"):
        core.delete_namespaced_pod(name, TEAM, grace_period_seconds=0)


@pytest.mark.parametrize("patched", PATCHED, ids=" ".join)
def test_no_patch_changes_more_than_its_account_may(
    patched: tuple[str, str, str, str], judge: Judge, fields: Fields, workers: None, compared: Compared
) -> None:
    who, kind, name, subresource = patched
    version, plural = KINDS[kind]
    path = path_of(version, OPERATOR_NAMESPACE if kind == "StatefulSet" else TEAM, plural, name)
    mutations, tally = Mutations(fields, version, kind), Counter[str]()

    @FEWER
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        before = Sent(
            200, judge.api.rest_client.pool_manager.request("GET", f"{judge.api.configuration.host}{path}").json()
        ).body
        written = {key: value for key, value in before.items() if key != "status"}
        for each in ("managedFields", "resourceVersion", "generation"):
            written["metadata"] = {key: value for key, value in written["metadata"].items() if key != each}
        body = data.draw(st.composite(mutations.drawn)(written))
        sent = send(
            judge,
            {**PEOPLE, **WRITERS}[who],
            "PATCH",
            f"{path}/{subresource}" if subresource else path,
            body,
            "merge-patch",
        )
        differs = differing(before, sent.body, PATCHED[patched]) if sent.accepted else []
        assert differs == []
        changes = sent.accepted and differing(before, sent.body, "")
        tally["accepted" if changes else "without a change" if sent.accepted else "refused"] += 1

    attack()
    assert tally["refused"] > 0
    compared("the table of what is anybody's own", f"patches of {' '.join(patched[1:]).strip()} by {who}", tally)


WITHOUT_AN_OBJECT = {
    ("ray:write", "rayclusters"),
    ("ray-platform:run", "raycronjobs"),
    ("create", "pods/portforward"),
}
"""Verbs with which nothing is written."""

OF_CLUSTER_ADMINS = {*("queues", "clusterqueues", "cohorts", "resourceflavors", "localqueues", "statefulsets/scale")}
"""What cluster admins write beside objects of tenants."""


def test_all_that_anybody_may_write_is_attacked(judge: Judge) -> None:
    attacked = {(who, KINDS[kind][1]) for who, (_, kinds) in MAKERS.items() for kind in kinds}
    attacked |= {("Ray user of training", "rayjobs"), *((who, "rayjobs") for who, _ in RUNNERS)}
    attacked |= {(who, "configmaps") for who in WITH_CODE}
    attacked |= {(who, f"{KINDS[kind][1]}/{sub}".strip("/")) for who, kind, _, sub in PATCHED}
    # A cluster admin has the rights of a tenant's admin there.
    attacked |= {("Cluster admin", plural) for who, plural in attacked if who == "Ray cluster admin"}
    attacked |= {("Cluster admin", each) for each in OF_CLUSTER_ADMINS}
    # Patched by Volcano's policies for queues, and by `neighbours` (tests/engine/test_queues.py).
    attacked |= {("Ray cluster admin", "podgroups"), ("Cluster admin", "podgroups")}
    people = {
        who: person
        for who, person in {**PEOPLE, **WRITERS}.items()
        if (who != "Operator" and who[0].isupper()) or who == "ray-deployer"
    }
    written = {
        (who, resource)
        for who, person in people.items()
        for place in ("own", "foreign", "operator", "outside")
        for verb, group, resource, _ in judge.rules(person, person.namespace(place))
        if verb in ("create", "update", "patch")
        and (verb, resource) not in WITHOUT_AN_OBJECT
        and not group.startswith(("authorization", "authentication"))
    }
    assert written - attacked == set()
