"""`ray-platform:extends`: how files merge, and that all who read a stack file read its bases."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pulumi
import pytest
import yaml

from core.problems import StackFileError
from core.yaml_reader.document import PATCHES
from policies import read
from policies.read import of_config, of_stack_file
from stacks.commands.check.findings import as_annotations, check
from stacks.commands.impact.sources import git
from stacks.commands.schema.stack_file import BASE_FILE, FILE, base_schema_text
from stacks.load import load, plain_values
from stacks.program.config import running_stack
from stacks.settings import StackSettings
from testbed.commands import stacks
from tests.unit.review.story import commit

FILES = Path(__file__).parents[2] / "stack_files" / "good"
GOOD = [each for each in sorted(FILES.glob("*.yaml")) if "secure:" not in each.read_text()]

BASE = """\
config:
  ray-platform:nodes:
    - {pool: a100, count: 2, cpu: 64, memory: 1000Gi, gpus: 8}
  ray-platform:policies: {level: advisory}
  ray-platform:tenants:
    - name: team-a
      clusters:
        - {name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {pool: a100}, idleTimeout: 5m}
"""

STACK = """\
config:
  ray-platform:extends: bases/common.yaml
  ray-platform:nodes:
    - {pool: a100, count: 3}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack file and its base, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "prod")
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "common.yaml").write_text(BASE)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def merged(base: Any, over: Any) -> Any:
    """The value of a key of a stack file and of its base, merged."""
    Path("base.yaml").write_text(json.dumps({"config": {"ray-platform:x": base}}))
    stack = {"ray-platform:extends": "base.yaml", "ray-platform:x": over}
    Path("Pulumi.merged.yaml").write_text(json.dumps({"config": stack}))
    return plain_values(Path("Pulumi.merged.yaml"))["config"].get("ray-platform:x")


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        pytest.param({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}, id="mappings"),
        pytest.param({"a": 1, "b": 2}, {"b": None}, {"a": 1}, id="null removes"),
        pytest.param({}, {"b": None}, {"b": None}, id="null without a base stays"),
        pytest.param({"a": 1}, None, None, id="null removes a whole key"),
        pytest.param([1, 2], [3], [3], id="lists of scalars are replaced"),
        pytest.param({"a": 1}, [3], [3], id="another type replaces"),
        pytest.param(
            [{"name": "a", "x": 1}, {"name": "b"}],
            [{"name": "c"}, {"name": "a", "y": 2}],
            [{"name": "a", "x": 1, "y": 2}, {"name": "b"}, {"name": "c"}],
            id="items with names merge in the base's order, then new ones",
        ),
        pytest.param([{"pool": "a", "count": 1}], [{"pool": "a", "count": 2}], [{"pool": "a", "count": 2}], id="pools"),
        pytest.param([{"groupName": "a"}], [{"groupName": "b"}], [{"groupName": "a"}, {"groupName": "b"}], id="groups"),
        pytest.param([{"name": "a"}], [], [], id="an empty list replaces"),
        pytest.param([{"name": "a"}], [{"$patch": "replace"}, {"name": "b"}], [{"name": "b"}], id="$patch: replace"),
        pytest.param([{"name": "a"}, {"name": "b"}], [{"name": "a", "$patch": "delete"}], [{"name": "b"}], id="delete"),
        pytest.param([{"name": "a"}], [{"name": "b"}, {"name": "b"}], [{"name": "b"}, {"name": "b"}], id="no names"),
        pytest.param(
            {"overrides": {"a": 1, "b": 2}},
            {"overrides": {"a": None, "c": {"$patch": "replace"}}},
            {"overrides": {"a": None, "b": 2, "c": {"$patch": "replace"}}},
            id="null and $patch stay in patches",
        ),
        pytest.param(
            {"podTemplate": {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/a", "name": "x"}]}]}},
            {"podTemplate": {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/b", "name": "x"}]}]}},
            {"podTemplate": {"containers": [{"name": "a", "volumeMounts": [
                {"mountPath": "/a", "name": "x"}, {"mountPath": "/b", "name": "x"}]}]}},
            id="lists of patches merge by the keys of Kubernetes",
        ),
    ],
)  # fmt: skip
def test_how_values_merge(base: Any, over: Any, expected: Any) -> None:
    assert merged(base, over) == expected


def keys(schema: Any) -> Iterator[str]:
    """The keys of all settings in a JSON schema."""
    for name, part in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if name == "properties":
            yield from part
        if isinstance(part, dict | list):
            yield from keys(part)


def test_every_pod_template_is_a_patch() -> None:
    templates = {key for key in keys(StackSettings.model_json_schema()) if key.lower().endswith("podtemplate")}
    assert templates == {"podTemplate", "submitterPodTemplate"}
    assert templates < PATCHES


def test_numbers_stay_as_they_are_written(folder: Path) -> None:
    (folder / "bases" / "common.yaml").write_text("config:\n  ray-platform:operator: {version: 1.10}\n")
    with pytest.raises(StackFileError, match=r"common.yaml:2:36: .*'1.10' is not a version"):
        load(folder / "Pulumi.prod.yaml")


def test_many_bases_are_refused(folder: Path) -> None:
    for number in range(30):
        text = f"config:\n  ray-platform:extends: {number + 1}.yaml\n"
        (folder / f"{number}.yaml").write_text(text if number < 29 else "config: {}\n")
    (folder / "Pulumi.many.yaml").write_text("config:\n  ray-platform:extends: 0.yaml\n")
    with pytest.raises(StackFileError, match=r"19.yaml:2:25: .*'20.yaml' is one base too many"):
        load(folder / "Pulumi.many.yaml")


def pulumi_passes(monkeypatch: pytest.MonkeyPatch, file: Path, **more: Any) -> None:
    config = {**yaml.safe_load(file.read_text())["config"], **more}
    passed = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(passed))


@pytest.mark.parametrize("changed", [{}, {"ray-platform:priorityClasses": {}}], ids=["the file", "not the file"])
def test_the_running_program_reads_the_bases(
    folder: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    pulumi_passes(monkeypatch, folder / "Pulumi.prod.yaml", **changed)
    found = running_stack()
    assert (found.nodes[0].count, [each.name for each in found.tenants]) == (3, ["team-a"])
    assert found.model_copy(update={"kubernetes": found.kubernetes}) == load(folder / "Pulumi.prod.yaml")


@pytest.mark.parametrize("changed", [{}, {"ray-platform:priorityClasses": {}}], ids=["the file", "not the file"])
def test_an_error_of_the_running_program_has_the_place_in_the_base(
    folder: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    (folder / "bases" / "common.yaml").write_text("config:\n  ray-platform:operator: {replicas: 9}\n")
    (folder / "Pulumi.prod.yaml").write_text("config:\n  ray-platform:extends: bases/common.yaml\n")
    pulumi_passes(monkeypatch, folder / "Pulumi.prod.yaml", **changed)
    with pytest.raises(StackFileError, match=r"^bases/common.yaml:2:37: ray-platform:operator.replicas: 9 is not"):
        running_stack()


def test_the_running_program_reads_a_configuration_with_any_character(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = {"name": "team-b", "storage": [{"name": "x", "size": "1Gi", "storageClass": "\U0001f600"}]}
    pulumi_passes(monkeypatch, folder / "Pulumi.prod.yaml", **{"ray-platform:tenants": [storage]})
    with pytest.raises(StackFileError, match=r"tenants.*storageClass"):
        running_stack()


def test_the_policy_pack_reads_the_bases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "PROGRAM", folder)
    passed = {"ray-platform:extends": "bases/common.yaml"}
    assert of_config(passed) == of_stack_file(folder / "Pulumi.prod.yaml")
    assert of_config(passed).level == "advisory"


def test_an_error_of_a_base_is_annotated_once_for_all_that_extend_it(folder: Path) -> None:
    (folder / "bases" / "common.yaml").write_text("config:\n  ray-platform:operator: {replicas: 9}\n")
    (folder / "Pulumi.dev.yaml").write_text(STACK)
    found = as_annotations(check(Path(file.name)) for file in folder.glob("Pulumi.*.yaml"))
    [one] = [each for each in found if "replicas" in each]
    assert "file=bases/common.yaml,line=2,col=37" in one


def test_impact_reads_the_bases_of_the_revision_also_above_its_folder(folder: Path) -> None:
    (folder / "envs").mkdir()
    (folder / "envs" / "Pulumi.up.yaml").write_text(STACK.replace("bases/", "../bases/"))
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    assert "The edit affects nothing" in stacks("impact", "--to", "prod").stdout
    assert "The edit affects nothing" in stacks("impact", "--to", "envs/Pulumi.up.yaml").stdout
    (folder / "bases" / "common.yaml").rename(folder / "bases" / "other.yaml")
    (folder / "envs" / "Pulumi.up.yaml").write_text(STACK.replace("bases/common", "../bases/other"))
    assert "The edit affects nothing" in stacks("impact", "--to", "envs/Pulumi.up.yaml").stdout
    (folder / "bases" / "common.yaml").write_text(BASE.replace("5m", "6m"))
    assert "the autoscaler applies the new idle timeout" in stacks("impact", "--to", "prod").stdout


def test_a_base_without_keys_removes_nothing(folder: Path) -> None:
    (folder / "empty.yaml").write_text("config:\n  # nothing yet\n")
    text = STACK.replace("bases/common.yaml", "[bases/common.yaml, empty.yaml]")
    (folder / "Pulumi.prod.yaml").write_text(text)
    assert [each.name for each in load(folder / "Pulumi.prod.yaml").tenants] == ["team-a"]


def test_the_schema_lets_required_keys_be_in_a_base() -> None:
    schema = jsonschema_rs.validator_for(json.loads(FILE.read_text()))
    nodes = {"ray-platform:nodes": [{"pool": "a100", "count": 3}]}
    extended = {"ray-platform:extends": "base.yaml"}
    assert not schema.is_valid({"config": nodes})
    assert schema.is_valid({"config": {**nodes, **extended, "shop:key": 1}})
    assert schema.is_valid({"config": {"ray-platform:tenants": [{"name": "a", "$patch": "delete"}], **extended}})
    assert schema.is_valid({"config": {"ray-platform:tenants": [{"name": "a", "quota": None}], **extended}})
    assert not schema.is_valid({"config": {"ray-platform:nodes": [{"pol": "a100"}], **extended}})


def test_the_schema_of_bases() -> None:
    assert BASE_FILE.read_text() == base_schema_text(), "run `ray-platform schema --write`"
    whole = json.loads(FILE.read_text())
    target = json.loads(BASE_FILE.read_text())["$ref"].partition("#")[2]
    schema = jsonschema_rs.validator_for({**whole, "if": True, "then": {"$ref": f"#{target}"}, "else": True})
    assert schema.is_valid({"config": {"ray-platform:nodes": [{"pool": "a100"}]}})
    assert not schema.is_valid({"config": {"shop:key": 1}})
    assert not schema.is_valid({"config": {}, "encryptionsalt": "v1:abc"})


def test_null_is_refused_where_no_base_has_the_key_and_it_may_not_be_empty(folder: Path) -> None:
    tenant = "config:\n  ray-platform:tenants: [{name: a%s}]\n"
    (folder / "base.yaml").write_text(tenant % ", podSecurity: baseline")
    (folder / "Pulumi.over.yaml").write_text(
        "config:\n  ray-platform:extends: base.yaml\n" + (tenant % ", podSecurity: null").removeprefix("config:\n")
    )
    (folder / "Pulumi.alone.yaml").write_text(tenant % ", podSecurity: null")
    assert load(folder / "Pulumi.over.yaml").tenants[0].pod_security == "restricted"
    with pytest.raises(StackFileError, match="podSecurity: is empty"):
        load(folder / "Pulumi.alone.yaml")
