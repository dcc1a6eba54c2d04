"""`configuration`: a launcher file that a stack file names or contains is the cluster that `import` writes of it."""

import os
import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from core.problems import StackFileError
from core.stack_file import LARGEST_FILE, as_yaml, stack_file
from stacks.commands.check.findings import check, show
from stacks.commands.impact.sources import git
from stacks.commands.importing.file import import_file
from stacks.commands.review.reviewed import Touched, change
from stacks.launcher_files.configuration import with_launcher_files
from stacks.launcher_files.reader import Answers
from stacks.load import load, parse, plain_values
from stacks.program.config import running_stack
from stacks.settings import StackSettings
from testbed.commands import stacks
from tests.unit.importing.test_launcher import launcher_files
from tests.unit.review.story import commit
from tests.unit.stacks.test_extends import pulumi_passes

OURS = sorted((Path(__file__).parents[1] / "importing" / "launcher_files").glob("*.yaml"))

LAUNCHER = """\
cluster_name: default
max_workers: 4
idle_timeout_minutes: 5
docker:
  image: rayproject/ray:2.60.0
provider: {type: aws, region: us-west-2}
head_node_type: head
available_node_types:
  head: {resources: {CPU: 4, memory: 17179869184}}
  gpu:
    max_workers: 3
    resources: {CPU: 8, GPU: 1, memory: 68719476736}
head_start_ray_commands: [aws configure set aws_secret_access_key hunter2, ray start --head]
"""

STACK = """\
config:
  ray-platform:tenants:
    - name: team-a
      clusters:
        - name: training
          configuration: launcher/cluster.yaml
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack file and its launcher file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "prod")
    (tmp_path / "launcher").mkdir()
    (tmp_path / "launcher" / "cluster.yaml").write_text(LAUNCHER)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def cluster(stack: StackSettings) -> dict[str, Any]:
    """The settings of the only RayCluster, as far as they are set."""
    [tenant] = stack.tenants
    [found] = tenant.clusters
    return found.model_dump(by_alias=True, exclude_unset=True)


def beside(**keys: Any) -> Path:
    """The stack file with further keys of the cluster."""
    file = Path("Pulumi.prod.yaml")
    values = yaml.safe_load(STACK)
    values["config"]["ray-platform:tenants"][0]["clusters"][0] |= keys
    file.write_text(yaml.safe_dump(values))
    return file


@pytest.mark.parametrize("file", [*OURS, *launcher_files()], ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_it_is_the_cluster_that_import_writes(file: Path, folder: Path) -> None:
    text = _OLD_RAY.sub(":2.60.0", file.read_text())
    named = folder / "launcher.yaml"
    named.write_text(text)
    stack = yaml.safe_load(import_file(named, Answers(ray_version="2.60.0")).text)
    [tenant] = stack["config"]["ray-platform:tenants"]
    [imported] = tenant["clusters"]
    expected = cluster(parse({"tenants": [tenant]}))
    for written in ("launcher.yaml", text, yaml.safe_load(text)):
        tenant["clusters"] = [{"name": imported["name"], "rayVersion": "2.60.0", "configuration": written}]
        (folder / "Pulumi.test.yaml").write_text(yaml.safe_dump(stack))
        assert cluster(load(folder / "Pulumi.test.yaml")) == expected


_OLD_RAY = re.compile(r"(?<=rayproject/ray):[12]\.[0-9]\d?\.0\b")
"""Tags of releases that KubeRay does not run any more."""


def test_an_edit_of_the_file_is_an_edit_of_the_cluster(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    assert "The edit affects nothing" in stacks("impact", "--to", "prod").stdout
    (folder / "launcher" / "cluster.yaml").write_text(LAUNCHER.replace("minutes: 5", "minutes: 6"))
    assert "the autoscaler applies the new idle timeout" in stacks("impact", "--to", "prod").stdout
    [touched] = change("main", Path()).stacks
    assert touched == Touched(Path("Pulumi.prod.yaml"), bases=("launcher/cluster.yaml",))
    (folder / "launcher" / "cluster.yaml").unlink()
    assert "'launcher/cluster.yaml' cannot be read" in stacks("impact", "--to", "prod").stderr


def test_keys_beside_it_are_merged_over_the_cluster_of_the_file() -> None:
    file = beside(
        idleTimeout=None,
        faultTolerance=False,
        head={"serviceType": "NodePort"},
        workerGroups=[{"groupName": "gpu", "maxReplicas": 2}],
    )
    found = cluster(load(file))
    assert (found["name"], found["faultTolerance"], "idleTimeout" in found) == ("training", False, False)
    assert found["head"]["serviceType"] == "NodePort"
    assert (found["head"]["cpu"], found["head"]["memory"]) == ("4", "16Gi")
    [group] = found["workerGroups"]
    assert (group["maxReplicas"], group["gpus"]) == (2, 1)


def test_an_image_beside_it_has_its_own_tag(folder: Path) -> None:
    (folder / "launcher" / "cluster.yaml").write_text(LAUNCHER.replace("ray:2.60.0", "ray-ml:latest"))
    found = cluster(load(beside(rayVersion="2.60.0")))
    assert (found["image"], found["verifyImageTag"]) == ("rayproject/ray-ml:latest", False)
    found = cluster(load(beside(rayVersion="2.60.0", image="rayproject/ray:2.60.0")))
    assert (found["image"], "verifyImageTag" in found) == ("rayproject/ray:2.60.0", False)


def test_findings_are_at_the_lines_of_the_file(folder: Path) -> None:
    [found] = check(beside(rayVersion="2.59.0")).findings
    place = "launcher/cluster.yaml:5:10: ray-platform:tenants[0].clusters[0].image: rayVersion is '2.59.0' but image"
    assert found.in_file("Pulumi.prod.yaml").startswith(place)
    text = LAUNCHER.replace("max_workers: 4", "max_workers: 200000").replace("max_workers: 3", "min_workers: 200000")
    (folder / "launcher" / "cluster.yaml").write_text(text)
    most, least = (each.in_file("Pulumi.prod.yaml") for each in check(Path("Pulumi.prod.yaml")).findings)
    group = "ray-platform:tenants[0].clusters[0].workerGroups[0]"
    assert most.startswith(f"launcher/cluster.yaml:10:3: {group}.maxReplicas: 200000 is not allowed: give at most")
    assert least.startswith(f"launcher/cluster.yaml:11:18: {group}.minReplicas: 200000 is not allowed: give at most")


def test_what_a_pod_cannot_have_of_the_file_is_advice_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    checked = check(Path("Pulumi.prod.yaml"))
    assert checked.findings == ()
    show([checked])
    shown = capsys.readouterr().out
    key = "ray-platform:tenants[0].clusters[0].configuration"
    listing = "`ray-platform import launcher/cluster.yaml`"
    others = f"2 parts of launcher/cluster.yaml have no counterpart in pods: list them with {listing}"
    assert f"Pulumi.prod.yaml:6: {key}: advice: {others} [launcher-file]\n" in shown
    assert f"launcher/cluster.yaml:9: {key}.available_node_types.head: advice: tasks run on the head, as" in shown
    assert "[launcher-file] (part of Pulumi.prod.yaml)" in shown
    assert "hunter2" not in shown
    assert "cluster_name" not in shown


def advice(file: Path) -> list[str]:
    return [str(each).partition("configuration.")[2] for each in check(file).advice]


def test_what_is_set_beside_the_file_is_no_advice(folder: Path) -> None:
    (folder / "launcher" / "cluster.yaml").write_text("cluster_name: x\nprovider: {type: kubernetes, namespace: ray}\n")
    assert sorted(each.partition(":")[0] for each in advice(beside(rayVersion="2.60.0"))) == [
        *("docker", "head_node", "head_node", "provider.namespace", "worker_nodes"),
    ]
    groups = [{"groupName": "workers", "cpu": 4, "memory": "8Gi"}]
    head = {"cpu": 4, "memory": "8Gi", "rayStartParams": {"num-cpus": "0"}}
    file = beside(rayVersion="2.60.0", image="rayproject/ray:2.60.0", workerGroups=groups, head=head)
    assert advice(file) == ["provider.namespace: 'ray' is not used: the tenant's namespace is 'team-a'"]


DECIDED = """\
cluster_name: x
max_workers: 4
upscaling_speed: 3.5
provider: {type: aws, msi_name: reader}
docker: {image: "acme/app:1.4.2", run_options: [-e HOST]}
head_node_type: head
available_node_types:
  head: {resources: {CPU: 4, memory: 17179869184}}
  gpu: {max_workers: 3, resources: {CPU: 8, memory: 17179869184, TPU: 4}, node_config: {M: {MarketType: spot}}}
  cpu: {max_workers: 3, resources: {CPU: 8}}
"""


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"head": {"rayStartParams": {"num-cpus": None}}}, "available_node_types.head"),
        ({"head": {"rayStartParams": None}}, "available_node_types.head"),
        ({"workerGroups": [{"groupName": "cpu", "maxReplicas": 1}]}, "max_workers"),
        ({"workerGroups": [{"groupName": "cpu", "memory": "64Gi"}]}, "available_node_types.cpu"),
        ({"workerGroups": [{"groupName": "cpu", "$patch": "delete"}]}, "available_node_types.cpu"),
        ({"workerGroups": [{"$patch": "replace"}, {"groupName": "a"}]}, "available_node_types.cpu"),
        ({"workerGroups": [{"groupName": "gpu", "podTemplate": {}}]}, "available_node_types.gpu.resources.TPU"),
        ({"workerGroups": [{"groupName": "gpu", "podTemplate": None}]}, "available_node_types.gpu.resources.TPU"),
        ({"workerGroups": [{"groupName": "gpu", "pool": "spot"}]}, "available_node_types.gpu.node_config.M"),
        ({"workerGroups": [{"groupName": "gpu", "podTemplate": {}}]}, "available_node_types.gpu.node_config.M"),
        ({"autoScalingMode": None}, "upscaling_speed"),
        ({"serviceAccount": "reader"}, "provider.msi_name"),
        ({"env": {"HOST": "a"}}, "docker.run_options[0]"),
        ({"verifyImageTag": False}, "docker"),
    ],
)
def test_a_key_beside_the_file_that_decides_or_removes_ends_the_advice(
    keys: dict[str, Any], place: str, folder: Path
) -> None:
    (folder / "launcher" / "cluster.yaml").write_text(DECIDED)

    def places(**more: Any) -> set[str]:
        found = load_advice(beside(rayVersion="2.60.0", **more))
        return {each.partition(":")[0] for each in found}

    before = places()
    assert place in before
    assert place not in places(**keys)


def load_advice(file: Path) -> list[str]:
    """As `advice`, also of a stack with findings."""
    found = with_launcher_files(stack_file(file, file.read_text())).advice
    return [str(each).partition("configuration.")[2] for each in found]


def test_what_only_lacks_a_counterpart_is_one_line_with_the_command_that_lists_it(
    folder: Path,
) -> None:
    written = folder / "launcher" / "cluster.yaml"
    written.write_text(LAUNCHER.replace("image: rayproject/ray:2.60.0", "image: acme/app:1.4.2"))
    [line] = [str(each) for each in check(beside(rayVersion="2.60.0")).advice if "counterpart" in each.message]
    [listing] = re.findall("`ray-platform (.*)`", line)
    result = stacks(*listing.split())
    assert result.exit_code == 0, result.output
    for part in ("provider.region", "head_start_ray_commands[0]"):
        assert f": {part}: " in result.stderr
    [line] = [str(each) for each in check(beside(configuration=LAUNCHER)).advice if "counterpart" in each.message]
    assert line.endswith(
        "2 parts of the launcher file have no counterpart in pods: save it as a file, and list them with "
        "`ray-platform import FILE`"
    )


def test_a_worker_group_that_the_file_does_not_have_is_advice() -> None:
    def added(*groups: dict[str, Any]) -> list[str]:
        found = check(beside(workerGroups=list(groups))).advice
        return [each.in_file("Pulumi.prod.yaml") for each in found if each.path[-1] == "groupName"]

    assert added({"groupName": "gpu", "maxReplicas": 2}) == []
    [found] = added({"groupName": "gpus", "cpu": 60}, {"groupName": "gpu", "maxReplicas": 2})
    assert found.startswith("Pulumi.prod.yaml:8: ray-platform:tenants[0].clusters[0].workerGroups[0].groupName: 'gpus'")
    assert "is not a worker group of launcher/cluster.yaml, which has gpu: it becomes a further group." in found
    assert added({"$patch": "replace"}, {"groupName": "gpus", "cpu": 60, "memory": "8Gi"}) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [", ":2:1: .*configuration: this is not YAML"),
        (b"\xff", "Pulumi.prod.yaml:6:26: .*'launcher/cluster.yaml' byte 0xff is not UTF-8: save the file"),
        (b"x" * (LARGEST_FILE + 1), "'launcher/cluster.yaml' the file is larger than 4194304 bytes"),
        (b"", "launcher/cluster.yaml:1:1: .*is not a file of Ray's cluster launcher"),
        (b"cluster_name: a\n---\ncluster_name: b\n", "launcher/cluster.yaml:3:1: .*a second document begins here"),
        (b"kind: RayCluster\n", "launcher/cluster.yaml:1:1: .*convert a manifest, or values of Helm"),
        (None, "'launcher/cluster.yaml' is a pipe, and nothing may ever be written to it"),
    ],
    ids=["not YAML", "not UTF-8", "too large", "empty", "two documents", "manifest", "pipe"],
)
def test_another_file_is_refused_once(content: bytes | None, said: str, folder: Path) -> None:
    file = folder / "launcher" / "cluster.yaml"
    file.unlink()
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    with pytest.raises(StackFileError, match=said) as refused:
        load(Path("Pulumi.prod.yaml"))
    assert len(refused.value.findings) == 1


def test_a_path_in_a_base_is_from_the_folder_of_the_base(folder: Path) -> None:
    (folder / "launcher" / "base.yaml").write_text(STACK.replace("launcher/", ""))
    file = folder / "Pulumi.over.yaml"
    file.write_text("config:\n  ray-platform:extends: launcher/base.yaml\n")
    assert cluster(load(file)) == cluster(load(Path("Pulumi.prod.yaml")))


@pytest.mark.parametrize("changed", [{}, {"ray-platform:priorityClasses": {}}], ids=["the file", "not the file"])
def test_the_running_program_reads_it(monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]) -> None:
    pulumi_passes(monkeypatch, Path("Pulumi.prod.yaml"), **changed)
    assert cluster(running_stack()) == cluster(load(Path("Pulumi.prod.yaml")))


def test_a_copy_in_another_folder_has_its_cluster(folder: Path) -> None:
    copy = folder / "launcher" / "Pulumi.copy.yaml"
    copy.write_text(as_yaml(plain_values(folder / "Pulumi.prod.yaml")))
    assert load(copy) == load(folder / "Pulumi.prod.yaml")


def test_values_without_a_file_are_refused() -> None:
    tenants = [
        {"name": "a", "clusters": [{"name": "b", "rayVersion": "2.60.0", "image": "x:2.60.0", "configuration": "c"}]}
    ]
    with pytest.raises(StackFileError, match="configuration: is only read in a stack file: load one, or write what"):
        parse({"tenants": tenants})
