"""Objects of the operators before KubeRay, and files of ray-serve-cai, become clusters."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.commands.importing.file import import_file
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


# The example of its guide (CAI-Based Ray Cluster Guide, Create Configuration File).
EXAMPLE = """\
cai:
  # CML instance URL
  host: https://ml.example.cloudera.site

  # API key (or set CML_API_KEY env var)
  api_key: your-api-key-here

  # Project ID
  project_id: project-abc123

  # Number of worker nodes
  num_workers: 2

  # Worker node resources (GPUs allocated here)
  resources:
    cpu: 16
    memory: 64
    num_gpus: 1  # GPUs for worker nodes only

  # Optional: Head node resources (no GPUs)
  # Defaults to same as workers if not specified
  head_resources:
    cpu: 8
    memory: 32
"""

VERSION = Answers(ray_version="2.60.0")


def imported(folder: Path, text: str, answers: Answers = VERSION) -> tuple[str, tuple[str, ...]]:
    file = folder / "my_cluster.yaml"
    file.write_text(text)
    result = import_file(file, answers)
    return result.text, tuple(line.removeprefix(f"{file}:") for line in result.lines)


def test_the_example_of_its_guide_is_imported_without_its_key(tmp_path: Path) -> None:
    text, lines = imported(tmp_path, EXAMPLE)
    assert yaml.safe_load(text)["config"]["ray-platform:cml"] == {
        "host": "https://ml.example.cloudera.site",
        "clusters": [
            {
                "name": "ray-cluster",
                "project": "project-abc123",
                "rayVersion": "2.60.0",
                "numWorkers": 2,
                "resources": {"cpu": 16, "memory": 64, "gpus": 1},
                "headResources": {"cpu": 8, "memory": 32},
            }
        ],
    }
    [line] = lines
    assert line.startswith("6: cai.api_key: a stack file is plain text, so the key is not copied; run `pulumi config")
    assert "your-api-key-here" not in text + line


def test_its_defaults_are_kept_and_the_rest_is_noted(tmp_path: Path) -> None:
    short = (
        "cai: {host: https://ml.example.com/, project_id: p, verbose: true, head_resources: {cpu: 2, num_gpus: 1}}\n"
    )
    text, lines = imported(tmp_path, f"{short}ray: {{port: 6380, dashboard_port: 8266}}\n")
    [cluster] = yaml.safe_load(text)["config"]["ray-platform:cml"]["clusters"]
    assert (cluster["numWorkers"], cluster["resources"]) == (1, {"cpu": 16, "memory": 64})
    assert cluster["headResources"] == {"cpu": 2, "memory": 64}
    assert (cluster["port"], cluster["dashboardPort"]) == (6380, 8266)
    assert [line.partition("; ")[0] for line in lines] == [
        "1: cai.head_resources.num_gpus: a head has no GPUs",
        "1: cai.verbose: the import does not know it",
    ]


@pytest.mark.parametrize(
    ("text", "answers", "reason"),
    [
        (EXAMPLE, Answers(), "1: cai: the file has no version of Ray; set --ray-version, as in the runtime"),
        ("cai: {project_id: p}\n", VERSION, "1: cai.host: it is not set; set it"),
        ("cai: {host: 'http://ml.example.com', project_id: p}\n", VERSION, " the resulting stack file is invalid: "),
        (f"{EXAMPLE}---\nkind: Pod\n", VERSION, " has several documents, and one of them has cai"),
    ],
)
def test_what_cannot_be_imported_is_refused(tmp_path: Path, text: str, answers: Answers, reason: str) -> None:
    found, lines = imported(tmp_path, text, answers)
    assert found == ""
    assert lines[0].startswith(reason)
