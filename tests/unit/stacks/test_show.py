"""`ray-platform show`: a stack file merged over its bases, with the place of each value."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stacks.load import load, plain_values
from testbed.commands import stacks
from tests.unit.stacks.test_extends import GOOD, folder

__all__ = ["folder"]

ALONE = [
    each
    for each in GOOD
    if (yaml.safe_load(each.read_text()) or {}).get("config")
    and not re.search(r"extends:|configuration:", each.read_text())
]
"""Those that name no file."""


def test_show_prints_the_merged_file_with_the_place_of_each_value(folder: Path) -> None:
    lines = stacks("show", "prod", "--origin").stdout.splitlines()
    assert [" ".join(each.split()) for each in lines[:5]] == [
        "config:",
        "ray-platform:nodes:",
        "- pool: a100 # Pulumi.prod.yaml:4",
        "count: 3 # Pulumi.prod.yaml:4",
        "cpu: 64 # bases/common.yaml:3",
    ]
    (folder / "Pulumi.whole.yaml").write_text(stacks("show", "prod").stdout)
    assert load(folder / "Pulumi.whole.yaml") == load(folder / "Pulumi.prod.yaml").model_copy(update={"extends": ()})


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_what_show_prints_is_the_same_stack_file(file: Path, folder: Path) -> None:
    shown = folder / "Pulumi.shown.yaml"
    shown.write_text(stacks("show", str(file)).stdout)
    assert (plain_values(shown)["config"] or {}) == (plain_values(file).get("config") or {})


def scalars(node: yaml.Node | None, *path: object) -> Iterator[tuple[tuple[object, ...], int]]:
    """The path and the line of each scalar, by PyYAML."""
    assert node
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            yield from scalars(child, *path, key.value)
    elif isinstance(node, yaml.SequenceNode):
        for number, child in enumerate(node.value):
            yield from scalars(child, *path, number)
    else:
        yield path, node.start_mark.line


@pytest.mark.parametrize("file", ALONE, ids=lambda file: file.stem)
def test_show_has_the_place_at_which_pyyaml_finds_each_value(file: Path, folder: Path) -> None:
    """Every other setting of a good stack file is in a base."""
    settings = yaml.safe_load(file.read_text())["config"]
    of_stack = dict(list(settings.items())[::2])
    of_base = {key: value for key, value in settings.items() if key not in of_stack}
    files = {
        "bases/common.yaml": of_base,
        "Pulumi.prod.yaml": {"ray-platform:extends": "bases/common.yaml", **of_stack},
    }
    expected: dict[tuple[object, ...], str] = {}
    for name, config in files.items():
        (folder / name).write_text(text := yaml.safe_dump({"config": config}, default_flow_style=None))
        expected |= {path: f"{name}:{line + 1}" for path, line in scalars(yaml.compose(text))}
    del expected["config", "ray-platform:extends"]
    shown = stacks("show", "prod", "--origin").stdout
    lines = shown.splitlines()
    found = {path: lines[line].rpartition("  # ")[2] for path, line in scalars(yaml.compose(shown))}
    assert {path: found.get(path) for path in expected} == expected


def test_show_hides_secrets(folder: Path) -> None:
    text = "config:\n  ray-platform:kubernetes:\n    context: {secure: v1:hunter2}\n    password: hunter2\n"
    (folder / "Pulumi.secret.yaml").write_text(f"{text}  other:url: https://me:hunter2@example.com\n")
    shown = stacks("show", "secret").stdout
    assert shown.count('"***"') == 3
    assert "hunter2" not in shown


def test_show_hides_what_may_be_a_secret_of_another_program_and_numbers(folder: Path) -> None:
    text = "config:\n  ray-platform:kubernetes: {context: prod}\n  shop:apiKey: hunter2\n"
    (folder / "Pulumi.secret.yaml").write_text(text)
    assert "hunter2" not in stacks("show", "secret").stdout
    (folder / "Pulumi.secret.yaml").write_text("config:\n  ray-platform:cmlApiKey: 471100815\n")
    assert "471100815" not in stacks("show", "secret").stdout


def test_show_escapes_what_yaml_would_refuse_or_fold(folder: Path) -> None:
    text = "a\u2028b\u0085c\x7fd\U0001f600 e"
    escaped = r'"a\u2028b\x85c\x7fd\U0001f600 e"'
    (folder / "Pulumi.odd.yaml").write_text(f"config:\n  ray-platform:x: {escaped}\n")
    (folder / "Pulumi.shown.yaml").write_text(stacks("show", "odd").stdout)
    assert plain_values(folder / "Pulumi.shown.yaml")["config"]["ray-platform:x"] == text


def test_show_reports_a_base_that_cannot_be_read(folder: Path) -> None:
    (folder / "bases" / "common.yaml").unlink()
    done = stacks("show", "prod")
    assert done.exit_code == 2
    assert (
        "Pulumi.prod.yaml:2:25: ray-platform:extends: 'bases/common.yaml' cannot be read: No such file" in done.stderr
    )
