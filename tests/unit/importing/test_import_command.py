"""`python -m stacks import`: its output, its messages, and its exit codes."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from stacks.importing.command import import_
from stacks.load import load

pytestmark = pytest.mark.unit

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


def test_it_writes_a_stack_file_that_passes_the_check(tmp_path: Path) -> None:
    output = tmp_path / "Pulumi.test.yaml"
    assert run(AWS, "-o", output).exit_code == 0
    [tenant] = load(output).tenants
    assert [cluster.name for cluster in tenant.clusters] == ["vision-training"]


def test_notes_are_on_standard_error_with_file_and_line() -> None:
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
        ("", 1, "has no cluster; use a cluster launcher file or KubeRay's manifests"),
        ("kind: ConfigMap", 1, "has no cluster"),
        ("a: 1\na: 2", 1, "wrong.yaml:2: "),
        ("just text", 1, "it is neither a cluster launcher file nor a manifest"),
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


def test_a_missing_file_is_wrong_use(tmp_path: Path) -> None:
    result = run(tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "is not a file: set the file to import" in result.stderr


def test_a_namespace_that_is_not_a_tenants_is_refused(tmp_path: Path) -> None:
    result = run(AWS, "--namespace", "kube-system")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the resulting stack file is invalid" in result.stderr
