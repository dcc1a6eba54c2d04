"""Every pod template in an object is found, and objects that look like violations are none."""

import copy
from typing import Any

import pytest

from core.body import Body
from policies.configuration import Configuration, Level
from policies.judge import Judge
from policies.values import UNKNOWN, NotKnownYetError, Object, Secret
from policies.walk import containers, pods
from testbed.policies.bodies import (
    binding,
    body,
    budget,
    cron_job,
    deployment,
    job,
    namespace,
    network_policy,
    pod,
    ray_cluster,
    ray_job,
    redis,
    role,
    service,
    template,
    volcano_job,
)
from testbed.policies.case import put


def ray_service() -> dict[str, Any]:
    return body("ray.io/v1", "RayService", spec={"rayClusterConfig": ray_cluster()["spec"]})


def ray_cron_job() -> dict[str, Any]:
    return body("ray.io/v1", "RayCronJob", spec={"jobTemplate": ray_job()["spec"]})


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (pod(), ["spec"]),
        (body("v1", "PodTemplate", template=template()), ["template.spec"]),
        (body("v1", "ReplicationController", spec={"template": template()}), ["spec.template.spec"]),
        (deployment(), ["spec.template.spec"]),
        (redis(), ["spec.template.spec"]),
        ({**deployment(), "kind": "DaemonSet"}, ["spec.template.spec"]),
        ({**deployment(), "kind": "ReplicaSet"}, ["spec.template.spec"]),
        (job(), ["spec.template.spec"]),
        (cron_job(), ["spec.jobTemplate.spec.template.spec"]),
        (volcano_job(), ["spec.tasks[0].template.spec"]),
        (ray_cluster(), ["spec.headGroupSpec.template.spec", "spec.workerGroupSpecs[0].template.spec"]),
        (
            ray_service(),
            [
                "spec.rayClusterConfig.headGroupSpec.template.spec",
                "spec.rayClusterConfig.workerGroupSpecs[0].template.spec",
            ],
        ),
        (
            ray_job(),
            [
                "spec.rayClusterSpec.headGroupSpec.template.spec",
                "spec.rayClusterSpec.workerGroupSpecs[0].template.spec",
                "spec.submitterPodTemplate.spec",
            ],
        ),
        (
            ray_cron_job(),
            [
                "spec.jobTemplate.rayClusterSpec.headGroupSpec.template.spec",
                "spec.jobTemplate.rayClusterSpec.workerGroupSpecs[0].template.spec",
                "spec.jobTemplate.submitterPodTemplate.spec",
            ],
        ),
        (body("example.com/v1", "Deployment", spec={"template": template()}), ["spec.template.spec"]),
    ],
    ids=lambda each: each["kind"] if isinstance(each, dict) else "",
)
def test_pods_are_found(made: dict[str, Any], where: list[str]) -> None:
    found = [".".join(map(str, each.spec.path)) for each in pods(Object(made))]
    assert found == [each.replace("[", ".").replace("]", "") for each in where]


def test_containers_are_found_with_init_containers_and_the_autoscaler() -> None:
    made = ray_cluster()
    made["spec"]["headGroupSpec"]["template"]["spec"]["initContainers"] = [{"name": "first"}]
    assert [each.role for each in containers(Object(made))] == ["init", "container", "autoscaler", "container"]
    made["spec"]["enableInTreeAutoscaling"] = False
    assert "autoscaler" not in [each.role for each in containers(Object(made))]


def test_a_job_on_a_cluster_that_is_there_has_a_submitter_alone() -> None:
    made = ray_job(rayClusterSpec=None, clusterSelector={"ray.io/cluster": "it"})
    assert [each.role for each in pods(Object(made))] == ["submitter"]


def test_what_is_not_known_raises_where_it_is_read_and_not_before() -> None:
    owner = Object({"apiVersion": "v1", "kind": "Pod", "spec": {"a": [1, UNKNOWN], "b": True}})
    assert owner.root.at("spec", "b").value is True
    assert owner.root.at("spec", "a").is_set
    assert owner.root.at("spec", "a", 0).number == 1
    with pytest.raises(NotKnownYetError, match=r"spec\.a\[1\]"):
        _ = owner.root.value
    with pytest.raises(NotKnownYetError):
        owner.root.at("spec", "a", 1, "below")


def test_a_secret_is_read_and_never_shown() -> None:
    owner = Object({"kind": "Secret", "data": Secret({"a": 1, "b": Secret("hunter2")})})
    assert owner.root.at("data", "b").text == "hunter2"
    assert owner.root.at("data", "a").shown() == "[secret]"
    assert "hunter2" not in repr(owner.body)


def secret_everywhere(value: Any) -> Any:
    """The value with every leaf marked as a secret."""
    if isinstance(value, dict):
        return {key: secret_everywhere(each) for key, each in value.items()}
    if isinstance(value, list):
        return [secret_everywhere(each) for each in value]
    return Secret(f"hunter2-{value}") if isinstance(value, str) else Secret(value)


@pytest.mark.parametrize("made", [ray_cluster(), ray_job(), redis(), deployment(), volcano_job()])
def test_no_message_has_the_value_of_a_secret(made: dict[str, Any]) -> None:
    spec = secret_everywhere(copy.deepcopy(made["spec"]))
    report = Judge(Configuration(), "prod").report([Object({**made, "spec": spec}, protected=False)])
    assert report.findings
    assert not [each.message for each in report.findings if "hunter2" in each.message]


def test_a_spec_that_is_not_known_is_found_once_for_each_rule_that_needs_it() -> None:
    report = Judge(Configuration(), "prod").report([Object({**deployment(), "spec": UNKNOWN}, "a.yaml")])
    assert not report.blocked
    of_containers = [each for each in report.findings if each.rule.id == "pod-no-privileged"]
    assert [each.known for each in of_containers] == [False]
    assert of_containers[0].path == ("spec",)


REPOSITORY: dict[str, Any] = {"metadata": {"labels": {"argocd.argoproj.io/secret-type": "repository"}}}
C = "spec containers 0"
RAY = "spec headGroupSpec template spec containers 0"


def with_values(made: Body, values: dict[str, Any]) -> Body:
    for at, value in values.items():
        put(made, at, value)
    return made


def of_group(group: str, made: Body) -> Body:
    """The object as one of another API group, of a kind with the same name."""
    return {**made, "apiVersion": f"{group}/v1"}


NONE: dict[str, tuple[str, Body]] = {
    "a public repository of Argo CD": (
        "no-plain-secrets",
        body("v1", "Secret", stringData={"type": "git", "url": "https://example.com/a.git"}, **REPOSITORY),
    ),
    "a Secret without values": ("no-plain-secrets", body("v1", "Secret", stringData={"token": ""})),
    "the path of a file of Google": (
        "pod-no-plain-secret",
        with_values(pod(), {f"{C} env 0": {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/key"}}),
    ),
    "a password that is filled in": (
        "pod-no-plain-secret",
        with_values(pod(), {f"{C} env 0": {"name": "CACHE", "value": "redis://:$(PASSWORD)@cache:6379"}}),
    ),
    "a template of a URL": (
        "no-plain-secrets",
        body("v1", "ConfigMap", data={"a.py": "f'postgres://{user}:{password}@{host}'"}),
    ),
    "the tag of an application": (
        "ray-image-version",
        with_values(ray_cluster(), {f"{RAY} image": "acme/trainer:1.4.2"}),
    ),
    "the tag of a program that begins with ray": (
        "ray-image-version",
        with_values(ray_cluster(), {f"{RAY} image": "acme/raytracer:1.4.2"}),
    ),
    "a name that is filled in": (
        "ray-name-length",
        with_values(ray_cluster(), {"metadata name": "${JOB_NAME}-1"}),
    ),
    "a version that is filled in": (
        "ray-min-version",
        with_values(ray_cluster(), {"spec rayVersion": "{{ version }}"}),
    ),
    "a mode that is filled in": ("ray-auth-token", with_values(ray_cluster(), {"spec authOptions mode": "${MODE}"})),
    "a client of Redis": (
        "redis-persistent",
        with_values(pod(), {f"{C} image": "redis:8", f"{C} command": ["redis-cli", "-h", "redis", "ping"]}),
    ),
    "a client of Redis in a shell": (
        "redis-password",
        with_values(pod(), {f"{C} image": "redis:8", f"{C} args": ["sh", "-c", "valkey-cli -h redis ping"]}),
    ),
    "an exporter": ("redis-password", with_values(pod(), {f"{C} image": "oliver006/redis_exporter:v1"})),
    "a password of Redis from a Secret": (
        "redis-password",
        with_values(redis(), {"spec template spec containers 0 args": ["--requirepass", "$(PASSWORD)"]}),
    ),
    "a file of settings of Redis": (
        "redis-password",
        with_values(redis(), {"spec template spec containers 0 args": ["/etc/redis/redis.conf"]}),
    ),
    "a Service of Knative": ("net-no-public-service", of_group("serving.knative.dev", service(type="LoadBalancer"))),
    "a Role of another system": ("rbac-no-wildcard", of_group("iam.example.com", role(verbs=["*"]))),
    "a ClusterRoleBinding of another system": (
        "rbac-no-cluster-admin",
        with_values(of_group("iam.example.com", binding()), {"roleRef name": "cluster-admin"}),
    ),
    "a NetworkPolicy of Calico": (
        "net-ray-ports-closed",
        of_group("crd.projectcalico.org", network_policy("all", {}, ingress=[{}])),
    ),
    "a Namespace of another system": (
        "ns-psa-labels",
        with_values(of_group("tenancy.example.com", namespace()), {"metadata labels": {}}),
    ),
    "a Deployment of another system": (
        "ns-not-default",
        with_values(of_group("apps.example.com", deployment()), {"metadata namespace": "default"}),
    ),
    "a NetworkPolicy of other pods": (
        "net-ray-ports-closed",
        network_policy("web", {"matchLabels": {"app": "web"}}, ingress=[{}]),
    ),
    "a newer kind in a beta version": (
        "api-not-deprecated",
        body("storage.k8s.io/v1beta1", "VolumeAttributesClass", None),
    ),
    "a binding of a newer kind in a beta version": (
        "api-not-deprecated",
        body("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBinding", None),
    ),
    "a RoleBinding to edit": ("rbac-no-cluster-admin", with_values(binding(), {"roleRef name": "edit"})),
    "rules of egress without ingress": (
        "net-ray-ports-closed",
        network_policy("out", {}, policyTypes=["Egress"], ingress=[{}], egress=[]),
    ),
}

TOGETHER: dict[str, tuple[str, list[Body]]] = {
    "a Service of one pod of a StatefulSet": (
        "net-service-selects",
        [service(selector={"statefulset.kubernetes.io/pod-name": "it-0"}), redis()],
    ),
    "a budget of all pods": ("redis-pdb", [with_values(budget(), {"spec selector": {}}), redis()]),
    "a budget with an expression": (
        "redis-pdb",
        [
            with_values(
                budget(),
                {"spec selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["redis"]}]}},
            ),
            redis(),
        ],
    ),
}


def work(cluster: str) -> Body:
    """A Namespace on another cluster."""
    return {
        **body("work.open-cluster-management.io/v1", "ManifestWork", cluster),
        "spec": {"workload": {"manifests": [namespace()]}},
    }


TOGETHER["the same object on two clusters"] = ("unique-objects", [work("one"), work("two")])


@pytest.mark.parametrize(
    ("rule", "made"),
    [*((rule, [made]) for rule, made in NONE.values()), *TOGETHER.values()],
    ids=[*NONE, *TOGETHER],
)
def test_it_is_no_violation(rule: str, made: list[Body]) -> None:
    findings = Judge(Configuration(), "prod").report([Object(each, "a.yaml") for each in made]).findings
    assert [each.message for each in findings if each.rule.id == rule and each.known] == []


def test_an_operator_of_others_is_no_object_of_kuberay() -> None:
    made = {**ray_cluster(), "apiVersion": "cluster.ray.io/v1"}
    assert Object(made).kind == "RayCluster.cluster.ray.io"
    findings = Judge(Configuration(), "prod").report([Object(made)]).findings
    assert "ray-spec-valid" not in {each.rule.id for each in findings if each.level is Level.MANDATORY}
