"""Values of KubeRay's chart ray-cluster: what import makes of them equals what it makes of what the chart renders."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.commands.importing.file import import_file
from stacks.launcher_files.reader import Answers

ADO = """\
image: {repository: rayproject/ray, tag: 2.60.0}
fullnameOverride: ado-ray
head:
  serviceAccountName: ray-deployer
  enableInTreeAutoscaling: true
  resources: {limits: {cpu: 2, memory: 8Gi}, requests: {cpu: 2, memory: 8Gi}}
worker: {disabled: true}
additionalWorkerGroups:
  two-gpus:
    maxReplicas: 2
    rayStartParams: {block: true, num-gpus: 2}
    containerEnv: [{name: OMP_NUM_THREADS, value: "1"}]
    lifecycle: {preStop: {exec: {command: [/bin/sh, -c, ray stop]}}}
    resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}, requests: {cpu: 8, memory: 64Gi}}
    tolerations: [{key: gpu, operator: Exists}]
    sidecarContainers: [{name: side, image: "busybox:1.36"}]
"""
"""In the format of ado's guide."""

LOGS = {"volumes": [{"name": "log-volume", "emptyDir": {}}]}


def imported(folder: Path, text: str, **answers: str) -> tuple[list[dict[str, Any]], str]:
    """The tenants, and what the command says."""
    file = folder / "values.yaml"
    file.write_text(text)
    result = import_file(file, Answers(**answers))
    config = yaml.safe_load(result.text or "{}").get("config", {})
    return config.get("ray-platform:tenants", []), "\n".join(result.lines).replace(f"{folder}/", "")


def container(name: str, **fields: Any) -> dict[str, Any]:
    image = {"image": "rayproject/ray:2.60.0", "imagePullPolicy": "IfNotPresent"}
    return {"name": name, **image, **fields}


def test_values_become_what_the_chart_renders_of_them(tmp_path: Path) -> None:
    head = {"limits": {"cpu": 2, "memory": "8Gi"}, "requests": {"cpu": 2, "memory": "8Gi"}}
    worker = {"cpu": 8, "memory": "64Gi"}
    group = {
        "groupName": "two-gpus",
        "minReplicas": 0,
        "maxReplicas": 2,
        "numOfHosts": 1,
        "rayStartParams": {"block": "true", "num-gpus": "2"},
        "template": {
            "spec": {
                "containers": [
                    container(
                        "ray-worker",
                        env=[{"name": "OMP_NUM_THREADS", "value": "1"}],
                        lifecycle={"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
                        resources={"limits": {**worker, "nvidia.com/gpu": 2}, "requests": worker},
                    ),
                    {"name": "side", "image": "busybox:1.36"},
                ],
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
            }
        },
    }
    mounts = [{"mountPath": "/tmp/ray", "name": "log-volume"}]  # noqa: S108 - the chart's default
    pod = {
        "serviceAccountName": "ray-deployer",
        "containers": [container("ray-head", resources=head, volumeMounts=mounts)],
        **LOGS,
    }
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ado-ray"},
        "spec": {
            "enableInTreeAutoscaling": True,
            "headGroupSpec": {"serviceType": "ClusterIP", "rayStartParams": {}, "template": {"spec": pod}},
            "workerGroupSpecs": [group],
        },
    }
    expected, _ = imported(tmp_path, yaml.safe_dump(manifest))
    assert expected
    assert imported(tmp_path, ADO)[0] == expected


@pytest.mark.parametrize(
    ("chart", "ray", "memory", "most"), [("1.3.0", "2.41.0", "2G", 3), ("1.7.0", "2.52.0", "5Gi", 5)]
)
def test_defaults_are_those_of_the_release_of_the_chart(
    chart: str, ray: str, memory: str, most: int, tmp_path: Path
) -> None:
    tenants, said = imported(tmp_path, "head: {labels: {a: b}}\nworker: {replicas: 2}\n", chart_version=chart)
    [cluster] = tenants[0]["clusters"]
    assert (cluster["name"], cluster["rayVersion"], cluster["head"]["memory"]) == ("raycluster-kuberay", ray, memory)
    assert cluster["workerGroups"][0]["maxReplicas"] == most
    assert "values.yaml:1: these are values of KubeRay's Helm chart ray-cluster" in said
    assert f"is its default of {chart}; --chart-version sets another" in said


@pytest.mark.parametrize(("chart", "ray"), [("1.2.0", "2.34.0"), ("1.2.2", "2.9.0")])
def test_the_default_image_is_that_of_the_patch_release(chart: str, ray: str, tmp_path: Path) -> None:
    _, said = imported(tmp_path, "head: {labels: {a: b}}\n", chart_version=chart)
    assert f"does not support Ray {ray}:" in said


@pytest.mark.parametrize(
    ("chart", "names"), [("1.3.2", ["two-gpus", "workergroup"]), ("1.4.0", ["workergroup", "two-gpus"])]
)
def test_worker_groups_are_in_the_order_of_the_chart(chart: str, names: list[str], tmp_path: Path) -> None:
    tenants, _ = imported(tmp_path, ADO.replace("worker: {disabled: true}\n", ""), chart_version=chart)
    assert [group["groupName"] for group in tenants[0]["clusters"][0]["workerGroups"]] == names
    values = ADO.replace("worker: {disabled: true}", "worker: {rayStartParams: [a]}")
    assert "values.yaml:7: worker.rayStartParams: ['a'] is not a mapping" in imported(tmp_path, values)[1]


@pytest.mark.parametrize(
    "values",
    ["image: {repository: rayproject/ray, tag: 2.60.0}\n", "worker: {replicas: 2}\n", "service: {type: NodePort}\n"],
)
def test_values_need_no_head(values: str, tmp_path: Path) -> None:
    assert imported(tmp_path, values)[0] == imported(tmp_path, f"{values}head: {{labels: {{}}}}\n")[0] != []


def test_what_the_chart_leaves_out_is_left_out(tmp_path: Path) -> None:
    values = ADO.replace("head:\n", "head:\n  headService: {}\n").replace("block: true", "block: true, log-style: null")
    values = values.replace("fullnameOverride: ado-ray", "fullnameOverride: ado-ray-")
    assert imported(tmp_path, values)[0] == imported(tmp_path, ADO)[0]


def test_null_removes_a_default_of_the_chart(tmp_path: Path) -> None:
    tenants, _ = imported(tmp_path, ADO.replace("head:\n", "head:\n  volumes: null\n  volumeMounts: null\n"))
    assert "log-volume" not in str(tenants)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            "  disabled: false\n  groupName: x",
            "values.yaml:5: head.groupName: the chart has no such value, and ignores it",
        ),
        ("  containerEnv: [{name: API_TOKEN, value: sk-ab12cd34ef56}]", "values.yaml:4: head.containerEnv[0]"),
        ("  image: {tag: 2.60.0}", "values.yaml:4: head.image: it has no repository, and the chart takes none"),
        ("  rayStartParams: [a]", "values.yaml:4: head.rayStartParams: ['a'] is not a mapping"),
        (
            "  rayStartParams: {dashboard-port: 9000}",
            "values.yaml:4: head.rayStartParams.dashboard-port: workers, probes",
        ),
    ],
)
def test_messages_point_into_the_values(edit: str, said: str, tmp_path: Path) -> None:
    assert said in imported(tmp_path, ADO.replace("head:\n", f"head:\n{edit}\n"))[1]


def test_a_value_of_a_later_release_is_noted_and_left_out(tmp_path: Path) -> None:
    values = ADO.replace("head:\n", "head:\n  priorityClassName: high\n")
    tenants, said = imported(tmp_path, values, chart_version="1.1.0")
    assert "values.yaml:4: head.priorityClassName: the chart has it from 1.2 on, and 1.1.0 ignores it" in said
    assert "priorityClassName" not in str(tenants)
    assert "priorityClassName" in str(imported(tmp_path, values)[0])


def test_values_in_an_application_or_a_helm_release_are_found(tmp_path: Path) -> None:
    values = yaml.safe_load(ADO.replace("fullnameOverride: ado-ray\n", ""))
    source = {"chart": "ray-cluster", "targetRevision": "1.1.0"}
    application = {
        "kind": "Application",
        "metadata": {"name": "train"},
        "spec": {"destination": {"namespace": "ml"}, "source": {**source, "helm": {"values": yaml.safe_dump(values)}}},
    }
    release = {
        "kind": "HelmRelease",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"chart": {"spec": {"chart": "ray-cluster", "version": "1.x"}}, "values": values},
    }
    parameters = [{"name": "head.rayVersion", "value": "2.60.0"}]
    sources = [
        {"repoURL": "REPO", "ref": "values"},
        {**source, "helm": {"valuesObject": values, "parameters": parameters}},
    ]
    several = {**application, "spec": {"destination": {"namespace": "ml"}, "sources": sources}}
    for each in (application, several, release):
        [tenant], _ = imported(tmp_path, yaml.safe_dump(each))
        assert (tenant["name"], tenant["clusters"][0]["name"]) == ("ml", "train-kuberay")


def test_values_of_a_chart_that_depends_on_it_are_found(tmp_path: Path) -> None:
    below = "ray-cluster:\n" + textwrap.indent(ADO, "  ") + "other: {a: b}\n"
    assert imported(tmp_path, below)[0] == imported(tmp_path, ADO)[0]
    said = imported(tmp_path, below.replace("  head:\n", "  head:\n    rayStartParams: [a]\n"))[1]
    assert said.startswith("values.yaml:5: ray-cluster.head.rayStartParams: ['a'] is not a mapping")
