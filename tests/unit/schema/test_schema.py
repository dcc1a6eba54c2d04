"""The JSON Schema of stack files: editors complete and check by it."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from core.yaml_reader.document import document as yaml_document
from stacks.commands.schema.stack_file import FILE, schema_text

ROOT = FILE.parent

EXAMPLES = ROOT / "tests" / "stack_files"
GOOD = sorted((EXAMPLES / "good").glob("*.yaml"))
OF_WRONG_TYPES = sorted((EXAMPLES / "bad" / "types").glob("*.yaml"))

Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def schema() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads(FILE.read_text()))


@pytest.fixture
def document() -> dict[str, Any]:
    """The dev stack's file."""
    return copy.deepcopy(yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text()))


def read(file: Path) -> Any:
    found = yaml_document(file.read_text())
    assert found
    return found.value


def cluster(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["config"]["ray-platform:tenants"][0]["clusters"][0]
    return found


def test_the_committed_schema_of_draft_7_is_generated_from_the_models() -> None:
    assert FILE.read_text() == schema_text(), "run `ray-platform schema --write`"
    schema = json.loads(FILE.read_text())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema_rs.meta.validate(schema)


def test_a_stack_file_names_the_schema_in_its_first_line_and_is_valid(
    document: dict[str, Any], schema: jsonschema_rs.Validator
) -> None:
    first, *_ = (ROOT / "Pulumi.dev.yaml").read_text().splitlines()
    assert first == f"# yaml-language-server: $schema=./{FILE.name}"
    schema.validate(document)


def override_containers(document: dict[str, Any], *containers: dict[str, Any]) -> None:
    head = {"template": {"spec": {"containers": list(containers)}}}
    cluster(document).update(overrides={"headGroupSpec": head})


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_it_accepts_every_stack_file_that_check_accepts(file: Path, schema: jsonschema_rs.Validator) -> None:
    schema.validate(json.loads(json.dumps(read(file))))  # as plain numbers


@pytest.mark.parametrize("file", OF_WRONG_TYPES, ids=lambda file: file.stem)
def test_it_refuses_every_wrong_type(file: Path, schema: jsonschema_rs.Validator) -> None:
    assert not schema.is_valid(json.loads(json.dumps(read(file))))  # as plain numbers


RIGHT: dict[str, Edit] = {
    "one pool of workers as a mapping": lambda each: cluster(each).update(workers={"pool": "a100"}),
    "several pools of workers as a list": lambda each: cluster(each).update(workers=[{"pool": "a100"}]),
    "an amount as a number": lambda each: cluster(each).update(head={"cpu": 4, "memory": "16Gi"}),
    "what Pulumi keeps of secrets": lambda each: each.update(encryptionsalt="v1:abc", secretsprovider="passphrase"),
    "another program's key": lambda each: each["config"].update({"kubernetes:namespace": {"secure": "v1:abc"}}),
    "environment variables": lambda each: cluster(each).update(env={"HF_HOME": "/cache", "THREADS": 1}),
    "a field that is taken away": lambda each: cluster(each).update(
        overrides={"headGroupSpec": {"enableIngress": None}}
    ),
    "a field of a later KubeRay": lambda each: cluster(each).update(overrides={"tlsOptions": {"enabled": True}}),
    "a container that is taken away": lambda each: override_containers(each, {"name": "proxy", "$patch": "delete"}),
}

WRONG: dict[str, tuple[Edit, str]] = {
    "an unknown key of the program": (
        lambda each: each["config"].update({"ray-platform:node": []}),
        "ray-platform:node",
    ),
    "an unknown key at the top": (lambda each: each.update(settings={}), "settings"),
    "an unknown key of a cluster": (lambda each: cluster(each).update(wokers={}), "wokers"),
    "no image": (lambda each: cluster(each).pop("image"), "image"),
    "a number of nodes below one": (lambda each: each["config"]["ray-platform:nodes"][0].update(count=0), "minimum"),
    "a quantity of another unit": (lambda each: cluster(each).update(head={"memory": "16GB"}), "16GB"),
    "a version of two numbers": (lambda each: cluster(each).update(rayVersion="2.60"), "2.60"),
    "a version as a number": (lambda each: cluster(each).update(rayVersion=2.6), "2.6"),
    "a duration without a unit": (lambda each: cluster(each).update(idleTimeout="5"), "5"),
    "a name with capitals": (lambda each: cluster(each).update(name="Training"), "Training"),
    "a mode that KubeRay does not have": (lambda each: cluster(each).update(authOptions={"mode": "Token"}), "Token"),
    "a wrong type inside a pod": (lambda each: override_containers(each, {"name": "ray-head", "tty": "yes"}), "yes"),
    "a label key with a blank": (lambda each: cluster(each).update(labels={"my team": "a"}), "my team"),
}


@pytest.mark.parametrize("edit", RIGHT.values(), ids=RIGHT)
def test_it_accepts(edit: Edit, document: dict[str, Any], schema: jsonschema_rs.Validator) -> None:
    edit(document)
    schema.validate(document)


@pytest.mark.parametrize(("edit", "shown"), WRONG.values(), ids=WRONG)
def test_it_refuses(edit: Edit, shown: str, document: dict[str, Any], schema: jsonschema_rs.Validator) -> None:
    edit(document)
    with pytest.raises(jsonschema_rs.ValidationError) as refused:
        schema.validate(document)
    assert shown in str(refused.value)


def test_every_key_is_described() -> None:
    """What an editor shows beside a key."""
    definitions = json.loads(FILE.read_text())["definitions"]
    silent = [
        f"{name}.{key}"
        for name, model in definitions.items()
        for key, value in model.get("properties", {}).items()
        if not name.startswith(("KubeRay.", "Part")) and "description" not in value and "$ref" not in value
    ]
    assert silent == []
