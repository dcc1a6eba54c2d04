"""RayJobs, RayServices and job templates whose RayClusters have fault tolerance or TLS."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic import redis_keys
from components.dynamic.redis_keys import cleaned_up
from components.job_template.component import JobTemplates, JobTemplatesArgs
from components.job_template.manifests import job_template
from components.job_template.settings import JobTemplateSettings
from components.objects import Object
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.pods import NAME_VARIABLE, RedisPlace
from components.ray_job.component import RayJob, RayJobArgs
from components.ray_job.manifests import ray_job, ray_job_objects
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from components.ray_service.component import RayService, RayServiceArgs
from components.ray_service.manifests import ray_service, ray_service_objects
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from components.redis.connection import RedisConnection
from kuberay import OperatorContext, validate
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

PLACE = RedisPlace(RedisConnection(("redis:6379",), None, replicas=0), "team-a")
CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}


def job(**cluster: Any) -> tuple[RayJobSettings, dict[str, Any]]:
    entry = {"name": "count", "entrypoint": "python count.py", "cluster": {**CLUSTER, **cluster}}
    settings = RayJobSettings.model_validate(entry)
    own = settings.own_cluster
    assert own
    return settings, ray_job(settings, ray_cluster(own, (), redis=PLACE), own)


def service(**cluster: Any) -> tuple[RayServiceSettings, dict[str, Any]]:
    config = {"applications": [{"import_path": "chat:app"}]}
    key = {"apiKey": {"name": "chat", "key": "keys"}} if cluster else {}
    entry = {"name": "chat", "serveConfigV2": config, **key, "cluster": {**CLUSTER, **cluster}}
    settings = RayServiceSettings.model_validate(entry)
    return settings, ray_service(settings, ray_cluster(settings.own_cluster, (), redis=PLACE))


def template(**cluster: Any) -> tuple[JobTemplateSettings, dict[str, Any]]:
    entry = {"name": "tune", "entrypoint": "python tune.py", "cluster": {**CLUSTER, **cluster}}
    settings = JobTemplateSettings.model_validate(entry)
    own = settings.job.own_cluster
    assert own
    return settings, job_template(settings, ray_job(settings.job, ray_cluster(own, (), redis=PLACE), own))


def provisioned(**cluster: Any) -> Recorder:
    """All three, after Redis."""
    of_job, job_body = job(**cluster)
    of_service, service_body = service(**cluster)
    of_template, body = template(**cluster)

    def program() -> None:
        after = pulumi.ResourceOptions(depends_on=[pulumi.CustomResource("t:t:Redis", "redis", {})])
        RayJob("job", RayJobArgs(of_job, list(ray_job_objects(of_job, job_body)), "team-a"), after)
        RayService(
            "service", RayServiceArgs(of_service, list(ray_service_objects(of_service, service_body)), "team-a"), after
        )
        JobTemplates("templates", JobTemplatesArgs([Object("tune", body)], "team-a", [of_template]), after)

    return record(program)


OWNERS = {"job": "job-ray-job", "service": "service-ray-service", "templates-tune": "templates-tune"}
"""The resources of the owners, by the prefix of what is made for them."""


@pytest.mark.parametrize("made", [job, service])
def test_keys_have_the_name_that_kuberay_generates(made: Callable[..., tuple[Any, dict[str, Any]]]) -> None:
    settings, body = made(faultTolerance=True, tls={}, env={"LEVEL": "2"})
    assert validate(body, OperatorContext()) == []
    spec = body["spec"].get("rayClusterSpec") or body["spec"]["rayClusterConfig"]
    keys = spec["gcsFaultToleranceOptions"]["externalStorageNamespace"]
    assert keys == f"team-a.{settings.name}.$({NAME_VARIABLE})"
    variables = spec["headGroupSpec"]["template"]["spec"]["containers"][0]["env"]
    # KubeRay adds the variable with the keys at the end.
    (named,) = (each for each in variables if each["name"] == NAME_VARIABLE)
    assert named["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['ray.io/cluster']"


def test_the_authority_exists_before_the_owner_and_the_pod_that_submits_has_no_certificate() -> None:
    made = provisioned(tls={})
    for prefix, owner in OWNERS.items():
        assert made.made_before(f"{prefix}-tls-secret", owner)
    secrets = [each.inputs["metadata"]["name"] for each in made.registered.values() if each.name.endswith("-secret")]
    assert sorted(secrets) == ["chat-ray-authority", "count-ray-authority", "tune-ray-authority"]
    _, body = job(tls={})
    assert not {"initContainers", "volumes"} & body["spec"]["submitterPodTemplate"]["spec"].keys()


def test_nothing_is_made_for_others() -> None:
    budgets = {"job-head-disruption-budget", "service-head-disruption-budget"}
    assert {*provisioned().registered} == {"redis", "job", "service", "templates", *OWNERS.values(), *budgets}


def test_redis_stays_until_the_keys_are_deleted() -> None:
    made = provisioned(faultTolerance=True, tls={})
    waits = {name: each for name, each in made.registered.items() if name.endswith("-redis-clean-up")}
    # People delete the runs of a job template, not the stack.
    assert sorted(waits) == ["job-redis-clean-up", "service-redis-clean-up"]
    assert [waits[name].inputs["label"] for name in sorted(waits)] == [JOB_LABEL, SERVICE_LABEL]
    assert made.made_before("service-api-key", "service-redis-clean-up")
    for name in waits:
        assert made.made_before("redis", name)
        # The pod that deletes the keys mounts what the head has mounted.
        assert made.made_before(f"{name.removesuffix('-redis-clean-up')}-tls-secret", name)
        assert made.made_before(name, OWNERS[name.removesuffix("-redis-clean-up")])


def test_an_old_kubernetes_is_refused(in_memory: FakeCluster) -> None:
    in_memory.objects["/version"] = {"major": "1", "minor": "28"}
    with pytest.raises(pulumi.RunError, match="'count': the Redis gateway is a native sidecar"):
        provisioned(faultTolerance=True)


PROPS = {"namespace": "team-a", "owner": "chat", "label": SERVICE_LABEL, "limit": 60, "connection": {}}

STORED = {"metadata": {"name": "chat-abcde"}, "spec": {"gcsFaultToleranceOptions": {}}}
OTHER = {"metadata": {"name": "chat-fghij"}, "spec": {}}


@pytest.fixture
def answers(in_memory: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the API server answers to each look at the RayClusters, the last one always."""
    given: list[Any] = []

    def request(_method: str, _path: str, *, query: Mapping[str, str]) -> dict[str, Any]:
        assert query == {"labelSelector": f"{SERVICE_LABEL}=chat"}
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return {"items": answer}

    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr(in_memory, "request", request)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(redis_keys, "cleanup_warning", lambda *_: None)
    return given


def test_it_waits_for_every_cluster_with_tables(answers: list[Any]) -> None:
    answers += [[STORED, OTHER], [STORED, OTHER], [OTHER]]
    assert cleaned_up(PROPS) == []
    assert answers == [[OTHER]]


def test_it_warns_of_keys_that_kuberay_could_not_delete(answers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        redis_keys, "cleanup_warning", lambda _cluster, _namespace, name, keys, _since: f"{name} {keys}"
    )
    answers.extend([[STORED], []])
    assert cleaned_up(PROPS) == ["chat-abcde team-a.chat.chat-abcde"]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ([STORED], ["chat-abcde still exists after 60 s, and has tables in Redis: RAYteam-a.chat.chat-abcde@*"]),
        (ClusterUnreachableError("no answer"), ["team-a/chat", "no answer"]),
    ],
)
def test_it_waits_no_longer_than_kuberay_and_ends_if_the_api_server_does_not_answer(
    answers: list[Any], answer: Any, shown: list[str]
) -> None:
    answers.append(answer)
    (warning,) = cleaned_up(PROPS)
    assert all(each in warning for each in shown)
