"""`ray-platform schema`, and the reference page of the stack file that it writes."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from stacks.commands.schema import reference
from stacks.commands.schema import stack_file as schema
from stacks.commands.schema.command import schema as command
from stacks.commands.schema.reference import FILE, reference_text
from stacks.commands.schema.stack_file import stack_file_schema


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(command)
    return made


def test_it_prints_the_schema(app: typer.Typer) -> None:
    assert CliRunner().invoke(app).stdout == schema.schema_text()


def test_it_writes_schema_and_reference(app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "FILE", tmp_path / "schema.json")
    monkeypatch.setattr(schema, "BASE_FILE", tmp_path / "base.json")
    monkeypatch.setattr(reference, "FILE", tmp_path / "docs" / "stack-file.md")
    assert CliRunner().invoke(app, ["--write"]).exit_code == 0
    assert (tmp_path / "schema.json").read_text() == schema.schema_text()
    assert (tmp_path / "base.json").read_text() == schema.base_schema_text()
    assert (tmp_path / "docs" / "stack-file.md").read_text() == reference.reference_text()


def test_the_committed_page_is_generated_from_the_models_with_every_key_of_the_schema() -> None:
    page = FILE.read_text()
    assert page == reference_text(), "run `ray-platform schema --write`"
    definitions = stack_file_schema()["definitions"]
    models = {name: each for name, each in definitions.items() if not name.startswith(("KubeRay.", "Part"))}
    keys = {key for model in models.values() for key in model.get("properties", {})}
    assert {key for key in keys if f"`{key}`" not in page} == set()
    row = '| <a id="reserve-cpu"></a>`cpu` | [quantity or zero](#formats) |  | '
    assert f"{row}Default: a sixteenth of the node's CPUs. |" in page
    assert "| number, above 0, at most 1024 | **required** | CPUs: `16`. |" in page


def test_every_link_leads_somewhere() -> None:
    page = FILE.read_text()
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= anchors
    assert all((FILE.parent / path).exists() for path in re.findall(r"\((\.\.[^)#]+)\)", page))
