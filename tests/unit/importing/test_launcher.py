"""Files of Ray's cluster launcher, of the operators before KubeRay, and of ray-serve-cai become clusters."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.yaml_reader.document import document as read
from stacks.commands.importing.file import import_file
from stacks.commands.importing.other_formats import from_first_operator, from_proposal
from stacks.launcher_files.launcher import from_launcher
from stacks.launcher_files.reader import Answers, Imported, RefusedError
from stacks.load import load


def imported(name: str) -> Imported:
    return from_launcher(document(name))


def document(name: str) -> Any:
    return yaml.safe_load((Path(__file__).parent / "launcher_files" / f"{name}.yaml").read_text())


def notes(result: Imported) -> dict[str, str]:
    return {str(note).partition(": ")[0]: str(note).partition(": ")[2] for note in result.notes}


def test_node_types_become_worker_groups() -> None:
    cluster = imported("aws_gpus").cluster
    gpu, spot = cluster["workerGroups"]
    assert gpu == {
        "groupName": "gpu-worker",
        "minReplicas": 1,
        "maxReplicas": 4,
        "cpu": "8",
        "gpus": 2,
        "memory": "64Gi",
        "image": "example.com/vision-gpu:2.60.0",
        "labels": {"zone": "a", "accelerator": "a10g"},
        "idleTimeout": "10m",
        "rayStartParams": {
            "object-manager-port": "8077",
            "object-store-memory": "4000000000",
            "resources": r'"{\"camera\": 1}"',
        },
    }
    assert (spot["groupName"], spot["maxReplicas"], spot["image"]) == ("spot-worker", 8, "example.com/vision:2.60.0")


def test_the_file_as_a_whole_becomes_the_cluster() -> None:
    cluster = imported("aws_gpus").cluster
    del cluster["workerGroups"]
    assert cluster == {
        "name": "vision-training",
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0-py311-gpu",
        "imagePullPolicy": "Always",
        "idleTimeout": "150s",
        "autoScalingMode": "conservative",
        "env": {"HF_HOME": "/models"},
        "head": {
            "cpu": "4",
            "memory": "16Gi",
            "env": {"RAY_LOG_TO_STDERR": "1", "ROLE": "head"},
            "rayStartParams": {"object-manager-port": "8076", "num-cpus": "0"},
        },
    }


def test_parts_without_a_counterpart_and_unknown_ones_are_listed() -> None:
    found_notes = notes(imported("aws_gpus"))
    assert found_notes["setup_commands[0]"].endswith("do it when the image is built, or in runtime_env")
    assert found_notes["docker.run_options[2]"] == "--volume is an option of docker run; use volumes and volumeMounts"
    assert (
        "describe the machines under nodes" in found_notes["available_node_types.gpu-worker.node_config.InstanceType"]
    )
    assert "add up to 12" in found_notes["max_workers"]
    result = imported("aws_gpus")
    assert [note.instead for note in result.notes if note.at == ("workerGroups", "spot-worker", "cpu")] == [
        "set cpu, memory and gpus of a worker"
    ]
    assert notes(imported("head_that_works"))["something_new"].startswith("the import does not know it")


def test_a_legacy_file_has_one_worker_group() -> None:
    cluster = imported("gcp_legacy").cluster
    assert cluster["workerGroups"] == [
        {"groupName": "workers", "minReplicas": 1, "maxReplicas": 3, "cpu": "8", "memory": "32Gi", "replicas": 2}
    ]
    assert (cluster["targetUtilization"], cluster["head"]["rayStartParams"]) == (80, {"dashboard-host": "0.0.0.0"})  # noqa: S104


def test_pods_of_the_kubernetes_provider_become_pod_templates() -> None:
    result = imported("kubernetes_pods")
    assert result.namespace == "research"
    assert result.cluster["head"]["podTemplate"]["spec"]["volumes"] == [
        {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    ]
    [worker] = result.cluster["workerGroups"]
    assert (worker["cpu"], worker["memory"], worker["gpus"], worker["env"]) == ("3", "6Gi", 1, {"MODE": "fast"})
    assert worker["podTemplate"]["spec"] == {
        "nodeSelector": {"disk": "ssd"},
        "containers": [
            {
                "name": "ray-worker",
                "env": [{"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}}],
            },
            {"name": "sidecar", "image": "fluent-bit"},
        ],
    }


def test_pods_of_other_providers_are_pods_too() -> None:
    body = document("kubernetes_pods")
    external = {**body["provider"], "type": "external", "module": "sky.provision.kubernetes"}
    assert from_launcher({**body, "provider": external}).cluster == imported("kubernetes_pods").cluster


def test_machines_of_ones_own_are_counted_and_a_type_of_head_and_workers_becomes_both() -> None:
    [group] = imported("local_machines").cluster["workerGroups"]
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 3)
    cluster = imported("head_that_works").cluster
    assert cluster["head"]["rayStartParams"] == {"num-gpus": "1", "num-cpus": "2"}
    assert [group["groupName"] for group in cluster["workerGroups"]] == ["node"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"docker": {"image": "rayproject/ray:latest"}},
            "docker: the tag of image 'rayproject/ray:latest' has no version of Ray",
        ),
        (
            {"docker": {}},
            "docker: no image is set, so the version of Ray is unknown; set the version, for example --ray",
        ),
        ({"max_workers": "two"}, "max_workers: 'two' is not a whole number of at least 0; correct it"),
        ({"max_workers": -1}, "max_workers: -1 is not a whole number"),
        ({"upscaling_speed": float("nan")}, "upscaling_speed: nan is not a number of at least 0"),
        ({"provider": []}, None),
        ({"provider": "aws"}, "provider: 'aws' is not a mapping"),
        ({"head_node_type": "hed"}, "head_node_type: 'hed' is not in available_node_types; name one of node"),
        ({"available_node_types": ["node"]}, "available_node_types: ['node'] is not a mapping"),
        ({"head_start_ray_commands": "ray start"}, "head_start_ray_commands: 'ray start' is not a list"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(change: dict[str, Any], expected: str | None) -> None:
    wrong = {**document("head_that_works"), **change}
    if expected is None:
        assert from_launcher(wrong).cluster
        return
    with pytest.raises(RefusedError, match=r"^") as refused:
        from_launcher(wrong)
    assert str(refused.value).startswith(expected)


TYPES = {"head": {"resources": {"CPU": 4, "memory": 2**34}}, "gpu": {"resources": {"CPU": 8, "memory": 2**36}}}


def with_types(**changed: dict[str, Any]) -> Imported:
    """A file with a head and workers; `changed`: keys of their types."""
    types = {name: {**body, **changed.get(name, {})} for name, body in TYPES.items()}
    docker = {"image": "rayproject/ray:2.60.0"}
    first = {"cluster_name": "x", "provider": {"type": "aws"}, "docker": docker, "head_node_type": "head"}
    return from_launcher({**first, "available_node_types": types})


def decisions(result: Imported) -> list[tuple[Any, str]]:
    return [(note.path[-1], f"{note.at}: {note.instead}") for note in result.notes if note.is_decision]


@pytest.mark.parametrize(
    ("machine", "key", "decision"),
    [
        ({"IamInstanceProfile": {"Arn": "arn:x"}}, "IamInstanceProfile", "('serviceAccount',): set serviceAccount"),
        ({"serviceAccounts": [{"email": "a@b"}]}, "serviceAccounts", "('serviceAccount',): set serviceAccount to an"),
        *(
            (machine, *machine, "('workerGroups', 'gpu', 'pool'): describe the spot nodes as a pool with its taint")
            for machine in (
                {"InstanceMarketOptions": {"MarketType": "spot"}},
                {"scheduling": [{"preemptible": True}]},
                {"scheduling": {"provisioningModel": "SPOT"}},
            )
        ),
        ({"azure_arm_parameters": {"priority": "Spot"}}, "priority", "('workerGroups', 'gpu', 'pool'): describe the"),
        ({"scheduling": [{"onHostMaintenance": "TERMINATE", "preemptible": False}]}, "scheduling", None),
        ({"InstanceType": "m5.large"}, "InstanceType", None),
    ],
)
def test_a_machine_with_rights_or_of_a_spot_market_is_a_decision(
    machine: dict[str, Any], key: str, decision: str | None
) -> None:
    result = with_types(gpu={"node_config": machine})
    found = [said for last, said in decisions(result) if last == key]
    assert len(found) == (1 if decision else 0)
    assert all(said.startswith(decision or "") for said in found)
    assert [note.path[-1] for note in result.notes if "node_config" in note.path] == [key]


def test_a_head_without_resources_has_the_defaults_and_a_decision() -> None:
    result = with_types(head={"resources": {}})
    assert result.cluster["head"] == {"cpu": "2", "memory": "16Gi"}
    said = "('head', 'cpu'): it has the default here (cpu 2 and memory 16Gi); set cpu and memory of the head"
    assert ("node_config", said) in decisions(result)
    only_memory = with_types(head={"resources": {"CPU": 4}})
    assert only_memory.cluster["head"]["memory"] == "16Gi"
    assert any("(memory 16Gi); set memory of the head" in note.instead for note in only_memory.notes)


def test_options_of_docker_that_pods_need_not_set_are_not_noted() -> None:
    options = ["--shm-size=10gb", "--network host", "--net=host", "-p 8265:8265", "--rm", "--volume=/a:/a"]
    docker = {"image": "rayproject/ray:2.60.0", "run_options": options}
    result = from_launcher({**document("local_machines"), "docker": docker})
    noted = [note.path for note in result.notes if note.path[:1] == ("docker",)]
    assert noted == [("docker", "run_options", 5)]


def test_the_version_can_be_set() -> None:
    cluster = from_launcher({"cluster_name": "x", "provider": {"type": "aws"}}, Answers(ray_version="2.60.0")).cluster
    assert (cluster["rayVersion"], cluster["image"]) == ("2.60.0", "rayproject/ray:2.60.0")


@pytest.mark.parametrize(
    "change",
    [
        {"head_start_ray_commands": ["export WANDB_API_KEY=a1b2c3; ray start --head"]},
        {"docker": {"image": "rayproject/ray:2.60.0", "run_options": ["-e WANDB_API_KEY=a1b2c3"]}},
        {"head_start_ray_commands": ["ray start --head --redis-password=a1b2c3"]},
        {"head_start_ray_commands": ["aws configure set aws_secret_access_key a1b2c3"]},
        *(
            {"docker": {"image": "rayproject/ray:2.60.0", "run_options": options}}
            for options in (
                ["-e", "WANDB_API_KEY=a1b2c3"],
                ["-eWANDB_API_KEY=a1b2c3"],
                ["--gpus all --env=WANDB_API_KEY=a1b2c3"],
                ["--env WANDB_API_KEY='a1b2c3'"],
                ["--label token=a1b2c3"],
            )
        ),
    ],
)
def test_a_secret_is_listed_without_its_value(change: dict[str, Any]) -> None:
    result = from_launcher({**document("local_machines"), **change})
    assert any(note.path[0] in change for note in result.notes)
    assert "a1b2c3" not in str(result)


def test_each_form_of_a_variable_is_read() -> None:
    options = ["--gpus all -e A=1", "-e", "B=2", "-eC=3", "--env=D=4 --env E='5 6'", "-e HOST", "--env F=$X", "--init"]
    docker = {"image": "rayproject/ray:2.60.0", "run_options": options}
    result = from_launcher({**document("local_machines"), "docker": docker})
    assert result.cluster["env"] == {"A": "1", "B": "2", "C": "3", "D": "4", "E": "5 6"}
    noted = [str(note) for note in result.notes if note.path[:1] == ("docker",)]
    assert [each.partition(";")[0] for each in noted] == [
        "docker.run_options[0]: --gpus is an option of docker run",
        "docker.run_options[5]: HOST gets its value on the machine where the launcher runs",
        "docker.run_options[6]: F gets its value on the machine where the launcher runs",
        "docker.run_options[7]: --init is an option of docker run",
    ]


def test_pods_with_a_part_of_a_cpu_and_variables_that_are_no_texts() -> None:
    words = {"EMPTY": "", "ON": "true", "MODE": "0022", "N": "'1'"}
    env = yaml_document("".join(f"- {{name: {name}, value: {word}}}\n" for name, word in words.items()))
    container = {"name": "ray", "resources": {"limits": {"cpu": "500m"}}, "env": env}
    node = {"node_config": {"spec": {"containers": [container]}}, "min_workers": 0, "max_workers": 1}
    [worker] = from_launcher(
        {
            "cluster_name": "x",
            "provider": {"type": "kubernetes"},
            "docker": {"image": "rayproject/ray:2.60.0"},
            "available_node_types": {"head": {}, "small": node},
            "head_node_type": "head",
        }
    ).cluster["workerGroups"]
    assert (worker["cpu"], worker["memory"]) == ("500m", "2Gi")
    assert worker["env"] == {"EMPTY": "", "ON": "true", "MODE": "0022", "N": "1"}


def yaml_document(text: str) -> Any:
    found = read(text)
    assert found
    return found.value


def launcher_files() -> list[Path]:
    """Ray's own files. The package is not imported, because that starts much that is not needed here."""
    found = find_spec("ray")
    folders = found.submodule_search_locations if found else None
    assert folders, "the ray package is not installed: it is in requirements-dev.in"
    return sorted(path for folder in folders for path in (Path(folder) / "autoscaler").rglob("*.yaml"))


def test_each_becomes_a_stack_file_with_a_version_of_ray_and_is_refused_without(tmp_path: Path) -> None:
    assert {"aws", "azure", "gcp", "local", "spark", "vsphere"} <= {file.parent.name for file in launcher_files()}
    for file in launcher_files():
        result = import_file(file, Answers(ray_version="2.60.0"))
        assert result.text, f"{file}: {result.lines}"
        stack_file = tmp_path / "Pulumi.test.yaml"
        stack_file.write_text(result.text)
        [tenant] = load(stack_file).tenants
        assert len(tenant.clusters) == 1
        refused = import_file(file, Answers())
        assert (refused.text, len(refused.lines)) == ("", 1)
        assert "; set the version, for example --ray-version 2.60.0" in refused.lines[0]


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


def converted(folder: Path, text: str, answers: Answers = VERSION) -> tuple[str, tuple[str, ...]]:
    file = folder / "my_cluster.yaml"
    file.write_text(text)
    result = import_file(file, answers)
    return result.text, tuple(line.removeprefix(f"{file}:") for line in result.lines)


def test_the_example_of_its_guide_is_imported_without_its_key(tmp_path: Path) -> None:
    text, lines = converted(tmp_path, EXAMPLE)
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
    text, lines = converted(tmp_path, f"{short}ray: {{port: 6380, dashboard_port: 8266}}\n")
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
        ("cai: {host: 'http://ml.example.com', project_id: p}\n", VERSION, " in the resulting stack file: "),
        (f"{EXAMPLE}---\nkind: Pod\n", VERSION, " has several documents, and one of them has cai"),
    ],
)
def test_what_cannot_be_imported_is_refused(tmp_path: Path, text: str, answers: Answers, reason: str) -> None:
    found, lines = converted(tmp_path, text, answers)
    assert found == ""
    assert lines[0].startswith(reason)
