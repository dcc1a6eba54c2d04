"""What a name means: where its log is, how its dashboard is reached, and what wakes it."""

from collections.abc import Callable
from typing import Any

import pytest

from components.cluster import Connection
from components.payloads.idle_termination import FIELD_MANAGER
from core.body import Body
from stacks.commands.status.clusters import State
from stacks.commands.status.dashboard import lines, urls
from stacks.commands.status.snapshot import Found
from stacks.commands.status.targets import (
    NoLogError,
    NoSuchTargetError,
    NotWokenError,
    Place,
    place_of_log,
    target,
    wake_patch,
)
from tests.unit.planning.stacks import cluster as planned
from tests.unit.planning.stacks import stack, tenant
from tests.unit.status.live import READY, SUSPENDED, cluster, container, found, metadata, pod, ray_cluster

SUBMITTER = {
    "metadata": metadata("nightly-abc", labels={"batch.kubernetes.io/job-name": "nightly"}),
    "spec": {"nodeName": "node-0", "containers": [{"name": "ray-job-submitter"}]},
    "status": {"phase": "Running"},
}


def job(mode: str | None = None, **status: Any) -> Body:
    spec = {"submissionMode": mode} if mode else {}
    return {"metadata": metadata("nightly"), "spec": spec, "status": {"rayClusterName": "nightly-x", **status}}


def namespaces(*jobs: Body, **more: Any) -> dict[str, Found]:
    clusters = [ray_cluster("training", *READY), ray_cluster("nightly-x", *READY)]
    pods = [pod("training-head"), pod("nightly-head", "nightly-x"), pod("worker", gpus=8), SUBMITTER]
    service = {
        "metadata": metadata("chat"),
        "spec": {},
        "status": {"activeServiceStatus": {"rayClusterName": "training"}},
    }
    team_a = found(rayclusters=clusters, pods=pods, rayjobs=jobs, rayservices=[service])
    return {"team-a": team_a, "team-b": found(rayclusters=[ray_cluster("tuning", *READY)]), **more}


def place(word: str, pod: str | None = None, *jobs: Body) -> Place:
    return place_of_log(target(word, namespaces(*jobs)), pod, Connection("prod"))


def test_a_name_means_the_ray_cluster_of_any_tenant_or_the_one_that_a_service_or_job_uses() -> None:
    for word in ("training", "team-a/training"):
        assert target(word, namespaces()).title == "RayCluster team-a/training"
    chat, nightly = target("chat", namespaces()), target("nightly", namespaces(job()))
    assert [each.cluster and each.cluster["metadata"]["name"] for each in (chat, nightly)] == ["training", "nightly-x"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "trainning",
            "the stack's namespaces have no RayCluster, RayJob or RayService 'trainning': did you mean 'training'?",
        ),
        ("zzz", "RayService 'zzz': use one of chat, nightly-x, training, tuning"),
        (
            "team-b/training",
            "namespace 'team-b' has no RayCluster, RayJob or RayService 'training': did you mean 'team-b/tuning'?",
        ),
        ("team-c/training", "the stack has no namespace 'team-c': did you mean 'team-b'?"),
    ],
)
def test_an_unknown_name_is_answered_with_a_near_one(word: str, message: str) -> None:
    with pytest.raises(NoSuchTargetError) as error:
        target(word, namespaces())
    assert message in str(error.value)


def test_a_name_in_two_namespaces_has_to_be_completed() -> None:
    twice = namespaces() | {"team-b": found(rayclusters=[ray_cluster("training", *READY)])}
    with pytest.raises(NoSuchTargetError, match="several namespaces: write team-a/training or team-b/training"):
        target("training", twice)


def test_namespaces_that_must_not_be_read_are_named() -> None:
    hidden = namespaces() | {"team-b": found({"rayclusters": "forbidden"})}
    with pytest.raises(NoSuchTargetError, match=r"\(this account must not read team-b\)"):
        target("tuning-2", hidden)


def test_the_log_of_a_ray_cluster_is_its_heads_and_of_a_new_service_its_pending_heads() -> None:
    assert place("training") == Place("team-a", "training-head", "ray")
    assert place("training", "head") == Place("team-a", "training-head", "ray")
    assert place("chat") == Place("team-a", "training-head", "ray")
    assert place("training", "worker") == Place("team-a", "worker", "ray")
    status = {"activeServiceStatus": {}, "pendingServiceStatus": {"rayClusterName": "training"}}
    service = {"metadata": metadata("chat"), "spec": {}, "status": status}
    there = found(rayclusters=[ray_cluster("training")], pods=[pod("training-head")], rayservices=[service])
    assert place_of_log(target("chat", {"team-a": there}), None) == Place("team-a", "training-head", "ray")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, Place("team-a", "nightly-abc", "ray-job-submitter")),
        ("K8sJobMode", Place("team-a", "nightly-abc", "ray-job-submitter")),
        ("SidecarMode", Place("team-a", "nightly-head", "ray-job-submitter")),
    ],
)
def test_the_log_of_a_job_is_its_submitters(mode: str | None, expected: Place) -> None:
    assert place("nightly", None, job(mode)) == expected
    assert place("nightly", "head", job(mode)) == Place("team-a", "nightly-head", "ray")


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode"])
def test_a_log_that_is_a_file_in_the_head_comes_with_the_commands_that_show_it(mode: str) -> None:
    """Users and tenants' admins may not `kubectl exec`."""
    with pytest.raises(NoLogError) as error:
        place("nightly", None, job(mode, jobId="nightly-1"))
    assert str(error.value).endswith(
        "With the token of its RayCluster: `ray job logs --address URL nightly-1`, with the URL and the token that "
        "`ray-platform dashboard` leads to. A Kubernetes administrator: kubectl --context prod exec -n team-a "
        "nightly-head -c ray -- cat /tmp/ray/session_latest/logs/job-driver-nightly-1.log"
    )
    with pytest.raises(NoLogError, match="has no job yet"):
        place("nightly", None, job(mode))


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (found(rayclusters=[ray_cluster("training")]), "the head of RayCluster team-a/training has no pod now"),
        (
            found(rayclusters=[ray_cluster("training")], pods=[pod("head", node=None)]),
            "pod team-a/head has no node yet",
        ),
        (found({"pods": "forbidden"}, rayclusters=[ray_cluster("training")]), "cannot be read: forbidden"),
    ],
)
def test_without_a_log_the_reason_is_reported(within: Found, message: str) -> None:
    with pytest.raises(NoLogError, match=message):
        place_of_log(target("training", {"team-a": within}), None)


def test_a_job_without_a_submitter_or_a_cluster_has_no_log() -> None:
    alone = {"team-a": found(rayjobs=[job()])}
    with pytest.raises(NoLogError, match="RayJob team-a/nightly has no submitter pod now"):
        place_of_log(target("nightly", alone), None)
    with pytest.raises(NoLogError, match="RayJob team-a/nightly has no RayCluster now"):
        place_of_log(target("nightly", alone), "head")


def test_an_unknown_pod_is_answered_with_a_near_one() -> None:
    with pytest.raises(NoSuchTargetError, match=r"namespace 'team-a' has no pod 'worke': did you mean 'worker'\?"):
        place("training", "worke")


def ingress(service: str, host: str | None = "ray.example.com", path: str = "/", tls: bool = True) -> Body:
    backend = {"service": {"name": service, "port": {"number": 8265}}}
    rule = {**({"host": host} if host else {}), "http": {"paths": [{"path": path, "backend": backend}]}}
    return {"metadata": metadata("dashboard"), "spec": {"rules": [rule], "tls": [{"hosts": [host]}] if tls else []}}


def dashboard_of(context: str | None = None, found: tuple[str, ...] = (), **spec: Any) -> list[str]:
    spec.setdefault("headGroupSpec", {"template": {"spec": {"containers": [container(0)]}}})
    return list(lines(ray_cluster("training", *READY, **spec), found, Connection(context)))


def test_an_ingress_of_the_head_is_the_dashboards_url() -> None:
    training = ray_cluster("training", *READY)
    assert list(urls(training, [ingress("other-head-svc"), ingress("training-head-svc")])) == [
        "https://ray.example.com"
    ]
    plain = ingress("training-head-svc", path="/training", tls=False)
    assert list(urls(training, [plain, ingress("training-head-svc", host=None)])) == ["http://ray.example.com/training"]
    assert dashboard_of(found=("https://ray.example.com",)) == ["https://ray.example.com"]


def test_without_an_ingress_the_command_that_forwards_its_port_is_printed() -> None:
    assert dashboard_of() == [
        "http://localhost:8265    # while this command runs:",
        "kubectl port-forward -n team-a service/training-head-svc 8265",
    ]
    ports = {
        "template": {"spec": {"containers": [{**container(0), "ports": [{"name": "dashboard", "containerPort": 80}]}]}}
    }
    assert dashboard_of("my prod", headGroupSpec=ports)[1] == (
        "kubectl --context 'my prod' port-forward -n team-a service/training-head-svc 80"
    )


def test_the_command_that_prints_the_token_is_printed_and_never_the_token() -> None:
    assert dashboard_of(authOptions={"mode": "token"})[-1] == (
        "kubectl get secret -n team-a training -o 'jsonpath={.data.auth_token}' | base64 -d"
    )
    assert dashboard_of(authOptions={"mode": "token", "secretName": "own"})[-1].startswith(
        "kubectl get secret -n team-a own"
    )
    of_kubernetes = dashboard_of(authOptions={"mode": "token", "enableK8sTokenAuth": True})
    assert of_kubernetes[-1] == "kubectl create token -n team-a SERVICE_ACCOUNT"


def test_what_users_write_into_their_objects_is_quoted() -> None:
    attack = dashboard_of(authOptions={"mode": "token", "secretName": "x; rm -rf ~ \x1b[2J"})[-1]
    assert "-n team-a 'x; rm -rf ~ \N{REPLACEMENT CHARACTER}[2J' -o" in attack
    with pytest.raises(NoLogError, match=r"job-driver-\$\(id\)\.log'$"):
        place("nightly", None, job("HTTPMode", jobId="$(id)"))


def test_a_container_that_has_not_started_has_no_log() -> None:
    def starting(**last: Any) -> dict[str, Found]:
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        status = {"name": "ray", "state": waiting, "lastState": last}
        return {"team-a": found(rayclusters=[ray_cluster("training")], pods=[pod("head", containerStatuses=[status])])}

    with pytest.raises(NoLogError, match="container ray of pod team-a/head has not started: ImagePullBackOff: no such"):
        place_of_log(target("training", starting()), None)
    assert place_of_log(target("training", starting(terminated={"exitCode": 1})), None).pod == "head"


SINCE = "2026-01-01T11:00:00Z"
BY_IDLE_TERMINATION = {
    "managedFields": [{"manager": FIELD_MANAGER, "time": SINCE, "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
}


def resting(**more: Any) -> Body:
    return ray_cluster("training", SUSPENDED, suspend=True, metadata={**BY_IDLE_TERMINATION, **more})


def woken(body: Body, **settings: Any) -> dict[str, Any] | None:
    known = stack(tenant("team-a"), **settings)
    return wake_patch(target("training", {"team-a": found(rayclusters=[body])}), known)


def test_a_cluster_that_rests_is_as_desired_and_shows_since_when() -> None:
    shown = cluster(resting())
    assert (shown.state, shown.ok) == (State.RESTING, True)
    assert shown.reasons == (f"it has been resting since {SINCE}: `ray-platform wake STACK NAMESPACE/NAME` wakes it",)


def test_waking_sets_suspend_to_false_because_kuberay_ignores_its_absence() -> None:
    asked = woken(resting())
    assert asked
    assert (asked["method"], asked["path"]) == ("PATCH", "/apis/ray.io/v1/namespaces/team-a/rayclusters/training")
    assert asked["body"] == {"spec": {"suspend": False}}
    assert asked["query"] != {"fieldManager": FIELD_MANAGER}
    lost = ray_cluster("training", SUSPENDED)
    assert woken({**lost, "status": {**lost["status"], "state": "suspended"}})
    assert woken(ray_cluster("training", *READY)) is None


@pytest.mark.parametrize(
    ("name", "suspended", "why"),
    [
        ("training", lambda: resting(labels={"kueue.x-k8s.io/queue-name": "research"}), "suspended by Kueue"),
        ("nightly", resting, "RayJob team-a/nightly is not a RayCluster"),
        ("training", lambda: resting(deletionTimestamp=SINCE), f"is being deleted since {SINCE}"),
    ],
)
def test_what_is_not_woken(name: str, suspended: Callable[[], Body], why: str) -> None:
    job = {"metadata": metadata("nightly"), "spec": {}}
    there = {"team-a": found(rayclusters=[suspended()], rayjobs=[job])}
    with pytest.raises(NotWokenError, match=why):
        wake_patch(target(name, there), stack(tenant("team-a")))


def test_what_the_stack_file_suspends_is_changed_there() -> None:
    known = stack(tenant("team-a", planned("training", overrides={"suspend": True})))
    with pytest.raises(NotWokenError, match="the stack file suspends"):
        wake_patch(target("training", {"team-a": found(rayclusters=[resting()])}), known)
