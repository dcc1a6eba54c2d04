"""`ray-platform import`: the stack file that it writes, its messages, and its exit codes."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from core.stack_file import stack_file as read_stack_file
from core.yaml_writer import go_yaml
from stacks.commands.importing import file as module
from stacks.commands.importing.command import import_
from stacks.commands.importing.file import import_file
from stacks.commands.importing.manifests import _to_delete
from stacks.commands.importing.writing import stack_file
from stacks.launcher_files.reader import Answers, Imported, Note
from stacks.load import load, settings_of
from stacks.objects.ray_clusters import with_tenant_values
from tests.unit.importing.test_manifests import PLAIN

HERE = Path(__file__).parent
AWS = HERE / "launcher_files" / "aws_gpus.yaml"

MIXED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: code}
---
apiVersion: v1
kind: List
items:
  - apiVersion: ray.io/v1
    kind: RayCluster
    metadata: {name: one, namespace: research}
    spec:
      rayVersion: 2.60.0
      headGroupSpec:
        rayStartParams: {}
        template: {spec: {containers: [{name: ray-head, image: "rayproject/ray:2.60.0"}]}}
  - apiVersion: ray.io/v1
    kind: RayJob
    metadata: {name: two, namespace: research}
    spec: {entrypoint: python train.py, clusterSelector: {ray.io/cluster: one}}
"""


def run(*arguments: object) -> Result:
    app = typer.Typer()
    app.command()(import_)
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_it_writes_a_stack_file_that_passes_the_check_and_notes_with_file_and_line(tmp_path: Path) -> None:
    output = tmp_path / "Pulumi.test.yaml"
    assert run(AWS, "-o", output).exit_code == 0
    [tenant] = load(output).tenants
    assert [cluster.name for cluster in tenant.clusters] == ["vision-training"]
    result = run(AWS)
    assert f"{AWS}:53: setup_commands[0]: a pod starts from a finished image" in result.stderr
    assert result.stdout.startswith("# yaml-language-server: ")


def test_an_existing_file_is_only_overwritten_with_force(tmp_path: Path) -> None:
    output = tmp_path / "Pulumi.test.yaml"
    output.write_text("mine")
    result = run(AWS, "-o", output)
    assert (result.exit_code, output.read_text()) == (2, "mine")
    assert "exists already: set another file, or add --force" in result.stderr
    assert run(AWS, "-o", output, "--force").exit_code == 0


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "Pulumi.test.yaml"
    output.write_text("mine")

    def full(fresh: Path, *_: object, **__: object) -> None:
        fresh.open("w").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = run(AWS, "-o", output, "--force")
    assert (result.exit_code, output.read_text()) == (2, "mine")
    assert result.stderr.endswith(f"{output} cannot be written: No space left on device\n")


def test_objects_of_other_kinds_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(MIXED)
    result = run(file)
    assert result.exit_code == 0
    assert f"{file}:2: ConfigMap 'code' is not imported; keep applying it as a manifest" in result.stderr
    assert f"{file}:17: items[1]: RayJob 'two' is not imported; keep applying it as a manifest" in result.stderr


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (
            "",
            1,
            "wrong.yaml: has no cluster; import reads files of `ray up` and of ray-serve-cai (start-cai), manifests",
        ),
        ("kind: ConfigMap", 1, "has no cluster"),
        ("a: 1\na: 2", 1, "wrong.yaml:2: "),
        ("just text", 1, "of KubeRay, and values of its Helm chart ray-cluster"),
        ("kind: A\nmetadata: {name: a}\nkind: A", 1, "line 1: keep one; if another object begins here, put `---`"),
        ("kind: A\nmetadata: {name: a, name: b}", 1, "key 'name' is already set in line 2: keep one\n"),
        ("provider: {type: aws}\nmax_workers: many", 1, ":2: max_workers: 'many' is not a whole number"),
        ("provider: {type: aws, namespace: kube-system}", 1, "the version of Ray is unknown"),
        ("items: 3\nkind: List", 1, "has no cluster"),
    ],
)
def test_a_file_that_cannot_be_imported_is_reported(text: str, code: int, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    result = run(file)
    assert (result.exit_code, result.stdout) == (code, "")
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == (2 if "ConfigMap" in text else 1)


def test_notes_on_the_network_say_what_pods_may_reach_and_who_may_connect() -> None:
    lines = run(AWS).stderr.splitlines()[-2:]
    assert lines[0].startswith(
        f"{AWS}: tenant imported: the file does not say what the pods may reach, so they may reach"
    )
    assert lines[1] == (
        f"{AWS}: tenant imported: the file does not say who may connect, so nobody outside the namespace may; set "
        "network.dashboardFrom, clientFrom, serveFrom"
    )


def test_a_missing_file_is_wrong_use_and_a_namespace_that_is_not_a_tenants_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "is not a file: set the file to import" in result.stderr
    result = run(AWS, "--namespace", "kube-system")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "in the resulting stack file: " in result.stderr


@pytest.mark.parametrize("version", ["abc", "2.60", "latest", "2.60.0-gpu", "v2.60.0"])
def test_a_version_that_is_none_is_wrong_use(version: str) -> None:
    result = run(AWS, "--ray-version", version)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"--ray-version {version!r} is not a release: write for example 2.60.0\n"


def test_a_folder_that_is_missing_and_one_as_a_file_are_wrong_use(tmp_path: Path) -> None:
    for output, expected in (
        (tmp_path / "none" / "a.yaml", "is not a folder: create it"),
        (tmp_path, "exists already"),
    ):
        result = run(AWS, "-o", output)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
        assert expected in result.stderr
    result = run(AWS, "-o", tmp_path, "--force")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"{tmp_path} cannot be written: Is a directory\n")


OF_AN_APPLICATION = """
cluster_name: vision
provider: {type: aws}
docker: {image: "acme/trainer:1.4.2"}
"""


def test_the_tag_of_an_application_is_not_the_version_of_ray(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(OF_AN_APPLICATION)
    result = run(file)
    assert result.exit_code == 1
    assert f"{file}:4: docker: the tag of image 'acme/trainer:1.4.2' is the version of an application" in result.stderr
    assert "set the version, for example --ray-version 2.60.0" in result.stderr
    output = tmp_path / "Pulumi.app.yaml"
    assert run(file, "--ray-version", "2.60.0", "-o", output).exit_code == 0
    assert not load(output).tenants[0].clusters[0].verify_image_tag


WITH_REFERENCES = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, namespace: research}
spec:
  rayVersion: 2.60.0
  gcsFaultToleranceOptions: {redisAddress: ADDRESS}
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        serviceAccountName: trainer
        imagePullSecrets: [{name: pull}]
        volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
        containers:
          - name: ray-head
            image: rayproject/ray:2.60.0
            env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}]
            volumeMounts: [{name: data, mountPath: /data}]
  workerGroupSpecs:
    - groupName: GPU-Group
      maxReplicas: 3
      template: {spec: {containers: [{name: ray-worker, image: "acme/trainer:1.4.2"}]}}
"""


def reached(address: str, folder: Path) -> tuple[dict[str, object], str]:
    """The network of the tenant whose cluster has its Redis at an address, and the notes."""
    file = folder / "cluster.yaml"
    file.write_text(WITH_REFERENCES.replace("ADDRESS", f"'{address}'"))
    result = run(file)
    assert result.exit_code == 0, result.stderr
    [tenant] = yaml.safe_load(result.stdout)["config"]["ray-platform:tenants"]
    return tenant["network"], result.stderr


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("redis:6379", {"namespace": "research", "ports": [6379]}),
        ("redis://redis.databases:6380", {"namespace": "databases", "ports": [6380]}),
        ("redis.databases.svc.cluster.local:6379", {"namespace": "databases", "ports": [6379]}),
        ("rediss://10.1.2.3:6379", {"cidr": "10.1.2.3/32", "ports": [6379]}),
        ("redis.example.com:6379", {"internet": True, "ports": [6379]}),
        ("rediss://[fd00::1]:6380", {"cidr": "fd00::1/128", "ports": [6380]}),
    ],
)
def test_pods_reach_what_they_reached_before(address: str, target: dict[str, object], tmp_path: Path) -> None:
    network, _ = reached(address, tmp_path)
    assert network == {"egress": [{"internet": True}, target]}


@pytest.mark.parametrize("address", ["redis://[::1", "$(HOST).$(NS).svc:6379", "redis:$(PORT)", "redis:70000"])
def test_an_address_whose_target_is_not_known_is_noted(address: str, tmp_path: Path) -> None:
    network, notes = reached(address, tmp_path)
    assert network == {"egress": [{"internet": True}]}
    assert f"tenant research: what its pods reach at {address!r} is not known; add their Redis" in notes


def test_notes_name_what_the_pods_need(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    volumes = (
        "[{name: keys, csi: {driver: keys.example.com, nodePublishSecretRef: {name: keys}}}, "
        "{name: both, projected: {sources: [{secret: {name: part}}]}}, "
    )
    text = WITH_REFERENCES.replace("ADDRESS", "redis:6379").replace("volumes: [", f"volumes: {volumes}")
    file.write_text(text.replace("[{name: pull}]", "[{name: pull}, {}]"))
    text = run(file).stderr
    secrets = "Secret hf, Secret keys, Secret part, Secret pull"
    assert f"its pods need PersistentVolumeClaim data, {secrets}, ServiceAccount trainer" in text
    assert "podSecurity is baseline, because the pods do not meet restricted" in text
    assert f"{file}:21: spec.workerGroupSpecs[0].groupName: 'GPU-Group' is not a name of a worker group" in text
    assert "the tag of image 'acme/trainer:1.4.2' is not 2.60.0" in text


def imported(name: str, namespace: str | None, *notes: Note, **more: Any) -> Imported:
    return Imported({"name": name, **more}, namespace, notes)


def test_clusters_are_under_a_tenant_for_each_namespace_which_keeps_a_long_name() -> None:
    text = stack_file([imported("a", "red"), imported("b", "blue"), imported("c", "red")], Answers())
    assert text.startswith("# yaml-language-server: $schema=./stack-file.schema.json\n")
    assert yaml.safe_load(text)["config"]["ray-platform:tenants"] == [
        {"name": "red", "network": {"egress": [{"internet": True}]}, "clusters": [{"name": "a"}, {"name": "c"}]},
        {"name": "blue", "network": {"egress": [{"internet": True}]}, "clusters": [{"name": "b"}]},
    ]
    namespace = "a-namespace-of-more-than-forty-characters-in-all"
    [tenant] = yaml.safe_load(stack_file([imported("a", namespace)], Answers()))["config"]["ray-platform:tenants"]
    assert (tenant["name"], tenant["namespace"]) == ("a-namespace-of-more-than-forty-character", namespace)


def test_a_decision_for_a_person_is_a_comment_above_the_setting() -> None:
    note = Note((), "the file does not set it", "set cpu", at=("workerGroups", "small", "cpu"))
    image = Note((), "no image is set", "use your own", at=("image",))
    groups = [{"groupName": "large", "cpu": "8"}, {"groupName": "small", "cpu": "1"}]
    text = stack_file([imported("a", None, note, image, image="x", workerGroups=groups)], Answers())
    assert text.partition("\n")[2] == textwrap.dedent("""\
        config:
          # decide: add ray-platform:nodes, your pools of nodes, or `ray-platform plan` knows no node
          ray-platform:tenants:
          # decide: the namespace of these clusters; the imported file sets none
          - name: imported
            # decide: delete targets that pods do not need; add who may connect: dashboardFrom, clientFrom, serveFrom
            network:
              egress:
              - internet: true
            clusters:
            - name: a
              # decide: use your own (no image is set)
              image: x
              workerGroups:
              - groupName: large
                cpu: '8'
              - groupName: small
                # decide: set cpu (the file does not set it)
                cpu: '1'
        """)


def test_a_missing_setting_has_its_comment_at_the_nearest_existing_one() -> None:
    note = Note((), "nobody asks for a token", "remove it", at=("overrides", "authOptions"))
    assert "    # decide: remove it" in stack_file([imported("a", "red", note, overrides={"suspend": True})], Answers())


def test_a_text_that_looks_like_a_number_stays_a_text(tmp_path: Path) -> None:
    container = {
        "name": "ray-head",
        "image": "rayproject/ray:2.60.0",
        "args": ["7e10"],
        "env": [{"name": "LR", "value": "1e-4"}, {"name": "NOTE", "value": "a\u2028b"}],
        "resources": {"limits": {"cpu": "1", "memory": "4Gi"}},
    }
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [container], "nodeSelector": {"pool": "1e3"}}}}
    metadata = {"name": "a", "namespace": "red", "labels": {"commit": "1234567e1"}}
    file = tmp_path / "a.yaml"
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": {"headGroupSpec": head}}
    file.write_text(go_yaml(body))
    result = import_file(file, Answers())
    [tenant] = settings_of(read_stack_file("Pulumi.any.yaml", result.text)).tenants
    [cluster] = tenant.clusters
    assert cluster.labels == {"commit": "1234567e1"}
    assert cluster.head.env == {"LR": "1e-4", "NOTE": "a\u2028b"}


def test_a_stack_file_with_other_values_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("cluster_name: small\nprovider: {type: aws}\ndocker: {image: 'rayproject/ray:2.60.0'}\n")
    monkeypatch.setattr(
        module,
        "stack_file",
        lambda *_: stack_file([imported("b", "red", rayVersion="2.60.0", image="rayproject/ray:2.60.0")], Answers()),
    )
    result = import_file(file, Answers())
    assert (result.text, len(result.lines)) == ("", 1)
    assert result.lines[0].startswith(f"{file}: the resulting stack file would have other values")


@pytest.mark.parametrize(
    ("options", "line", "manifest"),
    [
        ({}, "version: null", "does not set the version"),
        ({"version": "v1"}, "version: v1", "sets version v1"),
        (None, "autoscalerOptions: null", "does not set the version"),
        ({"version": "v2"}, None, None),
    ],
    ids=str,
)
def test_a_line_that_keeps_another_autoscaler_is_named_where_it_is(
    options: dict[str, Any] | None, line: str | None, manifest: str | None, tmp_path: Path
) -> None:
    """Deleting it, and nothing else, sets v2."""
    spec = {**PLAIN["spec"], "enableInTreeAutoscaling": True, "autoscalerOptions": options}
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump({**PLAIN, "spec": spec}))
    lines = import_file(file, Answers()).text.splitlines()
    found = [at for at, each in enumerate(lines) if "of Ray's autoscaler" in each]
    if line is None:
        assert found == []
        return
    [at] = found
    said = f"# decide: delete `{line}` to set v2, the stack's default (the manifest {manifest} of Ray's autoscaler)"
    assert (lines[at].strip(), lines[at + 1].strip()) == (said, line)
    stack = settings_of(read_stack_file("Pulumi.any.yaml", "\n".join([*lines[: at + 1], *lines[at + 2 :]])))
    made = with_tenant_values(stack.tenants[0], stack.tenants[0].clusters[0])
    assert made["spec"]["autoscalerOptions"]["version"] == "v2"


def test_what_would_be_empty_without_a_line_goes_with_it() -> None:
    entry = {"overrides": {"autoscalerOptions": {"version": None}}}
    assert _to_delete(entry, ("overrides", "autoscalerOptions", "version")) == ("`overrides`", ("overrides",))
