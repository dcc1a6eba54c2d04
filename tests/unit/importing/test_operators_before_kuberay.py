"""Objects of the operators before KubeRay become clusters; each note keeps its place in the object."""

from typing import Any

import pytest
import yaml

from stacks.commands.importing.other_formats import from_first_operator, from_proposal
from stacks.commands.importing.reader import Answers, Imported, RefusedError

WITH_CONFIGURATION = """
apiVersion: ray.k8s.io/v1alpha1
kind: Ray
metadata:
  name: ray-sample
  namespace: ray
spec:
  configuration: |-
    # An unique identifier for the head node and workers of this cluster.
    cluster_name: default
    min_workers: 0
    max_workers: 2
    docker: {image: rayproject/ray:2.60.0}
    provider:
        type: kubernetes
    setup_commands: [pip install numpy]
"""

WITH_FIELDS = """
apiVersion: ray.k8s.io/v1alpha1
kind: Ray
metadata: {name: ray-sample, namespace: ray}
spec:
  minWorkers: 1
  maxWorkers: 2
  initialWorkers: 1
  autoScalingMode: default
  idleTimeoutMinutes: 60
  head:
    spec: {containers: [{name: ray, image: "rayproject/ray:2.60.0", resources: {limits: {cpu: 2, memory: 8Gi}}}]}
  worker:
    spec: {containers: [{name: ray, image: "rayproject/ray:2.60.0", resources: {limits: {cpu: 4, memory: 16Gi}}}]}
"""

FIRST_OPERATOR = """
apiVersion: cluster.ray.io/v1
kind: RayCluster
metadata: {name: example-cluster}
spec:
  maxWorkers: 3
  upscalingSpeed: 1.0
  idleTimeoutMinutes: 5
  headPodType: head-node
  podTypes:
    - name: head-node
      podConfig:
        spec: {containers: [{name: ray, image: "rayproject/ray:1.13.0", resources: {limits: {cpu: 1, memory: 2Gi}}}]}
    - name: worker-nodes
      minWorkers: 2
      maxWorkers: 3
      rayResources: {Custom1: 1}
      podConfig:
        metadata: {generateName: worker-}
        spec: {containers: [{name: ray, image: "rayproject/ray:1.13.0", resources: {limits: {cpu: 2, memory: 4Gi}}}]}
  headStartRayCommands: [ray stop, "ulimit -n 65536; ray start --head --no-monitor --dashboard-host 0.0.0.0"]
"""


def lines(result: Imported) -> list[str]:
    return [str(note) for note in result.notes]


def proposal(text: str, **answers: Any) -> Imported:
    return from_proposal(yaml.safe_load(text), Answers(**answers))


def test_the_configuration_of_a_ray_object_is_a_launcher_file() -> None:
    result = proposal(WITH_CONFIGURATION)
    assert (result.cluster["name"], result.namespace) == ("ray-sample", "ray")
    assert [group["maxReplicas"] for group in result.cluster["workerGroups"]] == [2]


def test_notes_on_a_configuration_are_at_their_place_in_the_object() -> None:
    assert "spec.configuration.setup_commands[0]: a pod starts from a finished image" in " ".join(
        lines(proposal(WITH_CONFIGURATION))
    )


def test_the_fields_of_the_proposal_stay_as_they_are() -> None:
    cluster = proposal(WITH_FIELDS).cluster
    assert cluster == {
        "name": "ray-sample",
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0",
        "head": {"cpu": "2", "memory": "8Gi"},
        "minWorkers": 1,
        "maxWorkers": 2,
        "initialWorkers": 1,
        "autoScalingMode": "default",
        "idleTimeoutMinutes": 60,
        "workerGroups": [{"groupName": "workers", "cpu": "4", "memory": "16Gi"}],
    }


@pytest.mark.parametrize(
    ("mode", "kept"),
    [("default", "targetUtilization"), ("aggressive", "autoScalingMode")],
    ids=["default", "aggressive"],
)
def test_of_two_settings_of_the_scaling_speed_only_the_effective_one_stays(mode: str, kept: str) -> None:
    text = WITH_FIELDS.replace("autoScalingMode: default", f"autoScalingMode: {mode}\n  targetUtilization: 80")
    assert set(proposal(text).cluster) & {"autoScalingMode", "targetUtilization"} == {kept}


def test_pod_types_become_worker_groups() -> None:
    result = from_first_operator(yaml.safe_load(FIRST_OPERATOR), Answers())
    assert result.cluster["workerGroups"] == [
        {
            "groupName": "worker-nodes",
            "minReplicas": 2,
            "maxReplicas": 3,
            "cpu": "2",
            "memory": "4Gi",
            "rayStartParams": {"resources": r'"{\"Custom1\": 1}"'},
        }
    ]
    assert "spec.podTypes[1].podConfig.metadata.generateName: KubeRay names its pods itself" in " ".join(lines(result))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spec: {configuration: 'a: ['}", "spec.configuration: its line 2: "),
        ("spec: {configuration: just text}", "spec.configuration: it is not a mapping"),
        ("spec: {configuration: 'provider: {type: aws}'}", "spec.configuration.docker: no image is set"),
        ("spec: {}", "spec.head: no image is set"),
        ("spec: 3", "spec: 3 is not a mapping"),
    ],
)
def test_an_object_that_cannot_be_read_is_refused(text: str, expected: str) -> None:
    with pytest.raises(RefusedError) as refused:
        proposal(text)
    assert str(refused.value).startswith(expected)
