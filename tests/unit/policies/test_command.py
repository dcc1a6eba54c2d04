"""`ray-platform policies`: its input, its output, and its exit codes."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from policies import formats
from policies.rules import RULES
from stacks.__main__ import app
from testbed.policies.bodies import deployment, ray_cluster
from testbed.policies.wrappers import listed

ROOT = Path(__file__).parents[3]


def policies(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["policies", *arguments], input=stdin)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with an empty document, and a Deployment that violates one rule."""
    made = deployment()
    made["spec"]["template"]["spec"]["hostNetwork"] = True
    (tmp_path / "app.yaml").write_text(f"---\n# nothing\n---\n{yaml.safe_dump(made)}")
    (tmp_path / "exceptions.yaml").write_text(
        "exceptions:\n- {rule: pod-no-host, object: Deployment/team-a/it, reason: speaks to a device, owner: ops, "
        "expires: 2999-01-31}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line_of(file: Path, text: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line)


def test_a_violation_is_reported_with_place_line_and_fix(folder: Path) -> None:
    result = policies("app.yaml")
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert "app.yaml: Deployment/team-a/it" in output
    assert "mandatory critical spec.template.spec.hostNetwork shares it with the node [pod-no-host]" in output
    assert f"line {line_of(folder / 'app.yaml', 'hostNetwork')}" in output
    assert "Remove hostNetwork, hostPID and hostIPC." in output
    assert "1 object: 1 mandatory, 0 advisory" in output


def test_advice_does_not_fail(folder: Path) -> None:
    (folder / "levels.yaml").write_text("environments: {dev: {level: advisory}}")
    assert policies("app.yaml", "--config", "levels.yaml", "--environment", "dev").exit_code == 0
    assert policies("app.yaml", "--config", "levels.yaml", "--environment", "prod").exit_code == 1


def test_a_stack_file_overrides_levels_of_the_configuration(folder: Path) -> None:
    (folder / "levels.yaml").write_text("environments: {dev: {level: disabled}}")
    (folder / "Pulumi.dev.yaml").write_text(
        "config: {'ray-platform:policies': {rules: {pod-no-host: mandatory, pod-no-privileged: advisory}}}"
    )
    result = policies("app.yaml", "--config", "levels.yaml", "--stack-file", "Pulumi.dev.yaml", "--format", "json")
    assert result.exit_code == 1
    assert [each["rule"] for each in json.loads(result.output)["findings"]] == ["pod-no-host"]
    (folder / "Pulumi.dev.yaml").write_text("config: {'ray-platform:policies': {rules: {pod-no-host: hard}}}")
    result = policies("app.yaml", "--stack-file", "Pulumi.dev.yaml")
    assert result.exit_code == 2
    assert "Pulumi.dev.yaml:1:" in result.output
    assert "'hard' is not allowed" in result.output


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_exceptions_are_in_every_report(output: str) -> None:
    result = policies("app.yaml", "--config", "exceptions.yaml", "--format", output)
    assert result.exit_code == 0
    assert "speaks to a device" in result.output
    assert "ops" in result.output


def test_json_has_every_finding() -> None:
    report = json.loads(policies("app.yaml", "--format", "json").output)
    [finding] = [each for each in report["findings"] if each["blocks"]]
    assert finding["rule"] == "pod-no-host"
    assert finding["path"] == ["spec", "template", "spec", "hostNetwork"]
    assert report["blocked"] is True


def test_sarif_names_rule_file_and_line(folder: Path) -> None:
    (folder / "app.yaml").rename(folder / "our äpp.yaml")
    sarif = json.loads(policies("our äpp.yaml", "--format", "sarif").output)
    [run] = sarif["runs"]
    assert sarif["version"] == "2.1.0"
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [rule.id for rule in RULES]
    [result] = [each for each in run["results"] if each["ruleId"] == "pod-no-host"]
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "our%20%C3%A4pp.yaml"
    assert place["region"]["startLine"] == line_of(folder / "our äpp.yaml", "hostNetwork")


def test_a_place_in_a_serve_config_has_its_line_and_a_boolean_is_said_as_written(folder: Path) -> None:
    config = "    proxy_location: no\n    applications:\n    - import_path: a:b\n"
    head = "{template: {spec: {containers: [{name: h, image: i, env: [{name: A, value: off}]}]}}}"
    text = f"spec:\n  serveConfigV2: |\n{config}  rayClusterConfig: {{headGroupSpec: {head}}}\n"
    (folder / "s.yaml").write_text(f"apiVersion: ray.io/v1\nkind: RayService\nmetadata: {{name: s}}\n{text}")
    found = json.loads(policies("s.yaml", "--format", "json").stdout)["findings"]
    [place] = [each for each in found if each["place"] == "spec.serveConfigV2.proxy_location"]
    assert place["line"] == line_of(folder / "s.yaml", "proxy_location")
    assert any('write it in quotes, "off"' in each["message"] for each in found)


def test_github_gets_an_annotation_at_the_line(folder: Path) -> None:
    line = line_of(folder / "app.yaml", "hostNetwork")
    result = policies("app.yaml", "--format", "github")
    assert f"::error file=app.yaml,line={line},title=pod-no-host::Deployment/team-a/it" in result.output


def test_standard_input_folders_and_lists_are_read(folder: Path) -> None:
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [ray_cluster(), deployment()]})
    result = policies("-", "--format", "json", stdin=listed)
    assert json.loads(result.output)["objects"] == 2
    (folder / "exceptions.yaml").unlink()
    assert json.loads(policies(str(folder), "--format", "json").output)["objects"] == 1


def test_a_file_that_is_no_manifest_does_not_hide_the_others(folder: Path) -> None:
    """All are judged, and the exit code is that of an incomplete run."""
    (folder / "a.yaml").write_text("a: [")
    (folder / "values.yaml").write_text("image: {tag: latest}\n---\napiVersion: v1\nkind: Secret\ndata: {a: Yg==}\n")
    (folder / "b.json").write_bytes(b"\xff")
    result = policies(".", "--format", "json")
    assert result.exit_code == 2
    assert {"pod-no-host", "no-plain-secrets"} <= {each["rule"] for each in json.loads(result.stdout)["findings"]}
    unreadable = (
        "a.yaml:2:1: this is not YAML",
        "b.json: it is not text in UTF-8: save it as UTF-8",
        "exceptions.yaml:1:",
        "values.yaml:1: ",
    )
    assert [each for each in unreadable if each not in result.stderr] == []
    annotated = policies(".", "--format", "github").output
    assert "::error file=values.yaml,line=1::this is not a Kubernetes object" in annotated


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "apiVersion: v1\nkind: List\nitems: []\n"])
def test_input_without_an_object_is_an_error(text: str, folder: Path) -> None:
    result = policies("-", stdin=text)
    assert (result.exit_code, result.stderr) == (2, "<stdin>: has no Kubernetes object: nothing was judged\n")
    (folder / "empty").mkdir()
    assert policies("empty").exit_code == 2


def test_lists_in_lists_are_read_and_their_items_have_their_lines(folder: Path) -> None:
    made = deployment()
    made["spec"]["template"]["spec"]["hostNetwork"] = True
    (folder / "list.yaml").write_text(yaml.safe_dump(listed(listed(made))))
    report = json.loads(policies("list.yaml", "--format", "json").stdout)
    [finding] = [each for each in report["findings"] if each["blocks"]]
    assert (report["objects"], finding["object"]) == (1, "Deployment/team-a/it")
    assert finding["line"] == line_of(folder / "list.yaml", "hostNetwork")


@pytest.mark.parametrize("items", ["5", "text", "{a: 1}", "[1]", "[[]]"])
def test_items_that_are_no_objects_are_reported(items: str) -> None:
    result = policies("-", stdin=f"apiVersion: v1\nkind: List\nitems: {items}\n")
    assert result.exit_code == 2
    message = "this is not a Kubernetes object" if items.startswith("[") else "items is not a list"
    assert result.stderr.startswith(f"<stdin>:3: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "bad.yaml:2:1: this is not YAML"),
        ("{{- if .Values.x }}\na: b", "bad.yaml:1:2: it is a template of Helm: pipe `helm template NAME CHART` into"),
        ("head: {}\nworker: {}", "Values of Helm are judged as what the chart renders: pipe `helm template NAME"),
        ("config: {}", "bad.yaml:1: this is not a Kubernetes object: it has no apiVersion and kind"),
        ("- 1", "this is not a Kubernetes object"),
        ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "pipe `kubectl kustomize FOLDER` into"),
    ],
)
def test_a_file_without_kubernetes_objects_is_refused(text: str, message: str, folder: Path) -> None:
    (folder / "bad.yaml").write_text(text)
    result = policies("bad.yaml")
    assert result.exit_code == 2
    assert message in result.output
    assert policies("missing.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("version", "kind", "instead"),
    [
        ("policy/v1beta1", "PodDisruptionBudget", "write policy/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "Pod Security replaces it"),
        ("extensions/v1beta1", "Ingress", "write networking.k8s.io/v1"),
        ("extensions/v1beta1", "DaemonSet", "write apps/v1"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "write autoscaling/v2"),
        ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "write flowcontrol.apiserver.k8s.io/v1"),
        ("storage.k8s.io/v1beta1", "CSIStorageCapacity", "write storage.k8s.io/v1"),
        ("resource.k8s.io/v1alpha2", "ResourceClaim", "write resource.k8s.io/v1"),
        ("coordination.k8s.io/v1beta1", "Lease", "write coordination.k8s.io/v1"),
        ("coordination.k8s.io/v1beta1", "LeaseCandidate", None),
        ("resource.k8s.io/v1beta1", "ResourceClaim", None),
    ],
)
def test_versions_that_are_gone_have_their_replacement(version: str, kind: str, instead: str | None) -> None:
    said = policies("-", stdin=f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: it, namespace: a}}\n").output
    assert (f"'{version}' is gone: {instead}" in said) if instead else ("is gone" not in said)


def test_a_placeholder_hides_no_fault_of_other_fields_and_groups() -> None:
    made = ray_cluster()
    [group] = made["spec"]["workerGroupSpecs"]
    unknown, known = copy.deepcopy(group), copy.deepcopy(group)
    unknown["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "${CPU}"}}
    known |= {"groupName": "known", "replicas": "${REPLICAS}"}
    known["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "lost", "mountPath": "/lost"}]
    made["spec"]["workerGroupSpecs"] = [unknown, known]
    report = policies("-", "--format", "json", stdin=yaml.safe_dump(made))
    [found] = [each for each in json.loads(report.stdout)["findings"] if each["rule"] == "ray-spec-valid"]
    assert found["place"] == "spec.workerGroupSpecs[1].template.spec.containers[0].volumeMounts[0].name"


def test_standard_input_in_another_encoding_is_refused() -> None:
    result = CliRunner().invoke(app, ["policies", "-"], input="kind: Müll".encode("latin-1"))
    assert (result.exit_code, result.stderr) == (2, "<stdin>: it is not text in UTF-8: save it as UTF-8\n")


def test_a_patch_is_told_from_an_object() -> None:
    patch = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: it}\nspec: {workerGroupSpecs: []}\n"
    assert "add it, or judge what `kubectl kustomize FOLDER` renders" in policies("-", stdin=patch).output
    misspelt = patch.replace("spec:", "spec: {headGrupSpec: {}}\n#")
    assert "kubectl kustomize" not in policies("-", stdin=misspelt).output


def test_wrong_use_ends_with_2() -> None:
    for arguments in (
        ["--write"],
        ["--format", "json"],
        ["--list", "--format", "sarif"],
        ["app.yaml", "--config", "no"],
    ):
        assert policies(*arguments).exit_code == 2


def test_rules_are_listed() -> None:
    assert f"{len(RULES)} rules" in policies("--list").output
    listed = json.loads(policies("--list", "--format", "json").output)
    assert [each["id"] for each in listed] == [rule.id for rule in RULES]
    [version] = [each for each in listed if each["id"] == "ray-min-version"]
    assert version["options"]["version"]["default"] == "2.54.0"


def test_the_reference_page_is_current() -> None:
    assert formats.REFERENCE.read_text() == formats.reference_text(), "run `ray-platform policies --list --write`"


def test_it_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stacks", "policies", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "ray-auth-token" in done.stdout
