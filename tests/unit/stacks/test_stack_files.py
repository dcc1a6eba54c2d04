"""Every stack file under tests/stack_files is checked as a user would.

`bad` has tables of good settings with what a case changes of them and what is found then (bad_tables.py), and files
whose text matters: each begins with a line for each finding, its place and the beginning of its message.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from core.stack_file import PROJECT
from stacks.commands.check import findings
from stacks.commands.check.findings import Checked, as_annotations, as_json, show
from stacks.load import load
from stacks.settings import StackSettings
from tests.unit.stacks.bad_tables import Case, cases, places

FILES = Path(__file__).parents[2] / "stack_files"
GOOD = sorted((FILES / "good").rglob("*.yaml"))
TABLES = sorted((FILES / "bad").glob("*.yaml"))
CASES = [case for table in TABLES for case in cases(table)]
BAD = sorted((FILES / "bad").glob("*/*.yaml"))
EXPECT = re.compile(r"# expect: (\d+):(\d+) (.*)")


@functools.cache
def check(file: Path) -> Checked:
    """Each file is checked once, and shown in three formats."""
    return findings.check(file)


def check_case(case: Case, folder: Path) -> Checked:
    file = folder / f"{case.name.replace('/', '.')}.yaml"
    file.write_text(case.text)
    return check(file)


def name(file: Path) -> str:
    return str(file.relative_to(FILES).with_suffix(""))


@pytest.mark.parametrize("file", GOOD, ids=name)
def test_a_good_file_has_no_findings(file: Path) -> None:
    assert check(file).findings == ()


@pytest.mark.parametrize("file", BAD, ids=name)
def test_each_error_of_a_bad_file_is_found_at_its_place(file: Path) -> None:
    expected = [(int(line), int(column), text) for line, column, text in EXPECT.findall(file.read_text())]
    found = [(finding.line, finding.column, str(finding)) for finding in check(file).findings]
    starts = [text[: len(start)] for (_, _, text), (_, _, start) in zip(found, expected, strict=False)]
    assert [(line, column) for line, column, _ in found] == [(line, column) for line, column, _ in expected]
    assert starts == [start for _, _, start in expected]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_error_of_a_case_is_found_at_the_value_or_key_that_it_names(case: Case, tmp_path: Path) -> None:
    found = check_case(case, tmp_path).findings
    texts = sorted(str(finding).removeprefix(f"{PROJECT}:") for finding in found)
    starts = sorted(case.finds)
    assert [text[: len(start)] for text, start in zip(texts, starts, strict=False)] == starts
    assert len(texts) == len(starts)
    for finding in found:
        assert (finding.line, finding.column) in places(case.text, finding.path)


def test_every_bad_file_has_its_expected_findings() -> None:
    assert [name(file) for file in BAD if not EXPECT.match(file.read_text())] == []


def test_no_finding_shows_a_secret(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secrets = ["hunter2", "hf_abcdefgh", "wJalrXUtnFEMI"]
    found = [*map(check, BAD), *(check_case(case, tmp_path) for case in CASES)]
    show(found)
    for shown in (capsys.readouterr().out, as_json(found), "\n".join(as_annotations(found))):
        assert len(shown) > 10_000
        assert [secret for secret in secrets if secret in shown] == []


def test_every_rule_has_a_unique_name_and_one_line(tmp_path: Path) -> None:
    for finding in json.loads(as_json([*map(check, BAD), *(check_case(case, tmp_path) for case in CASES)])):
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", finding["rule"])
        assert "\n" not in finding["message"]
        assert finding["message"][-1] != "."


def fields(model: type[BaseModel]) -> Iterator[tuple[type[BaseModel], str]]:
    """All settings of a model and of the models in it."""
    for key, field in model.model_fields.items():
        yield model, key
        for inner in models_in(field.annotation):
            yield from fields(inner)


def configured(settings: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """All settings that are set, and those in them."""
    if isinstance(settings, tuple | dict):
        items = settings.values() if isinstance(settings, dict) else settings
        yield from (each for item in items for each in configured(item))
    elif isinstance(settings, BaseModel):
        for key in settings.model_fields_set:
            yield from ((each, key) for each in type(settings).__mro__ if key in getattr(each, "model_fields", ()))
            yield from configured(getattr(settings, key))


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


CONVERTED = {"configuration"}
"""Keys that are read before the others, and become others: of launcher-files.yaml."""


def test_every_key_of_the_models_is_in_a_good_file() -> None:
    """A new key comes with a valid example."""
    shown = {each for file in GOOD for each in configured(load(file))}
    shown |= {(model, key) for model, key in fields(StackSettings) if key in CONVERTED}
    missing = {f"{model.__name__}.{key}" for model, key in set(fields(StackSettings)) - shown}
    assert missing == set(), "add them to a file of tests/stack_files/good, such as every-setting.yaml"
