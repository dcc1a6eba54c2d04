"""`python -m stacks schema`."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from stacks.commands.schema import reference
from stacks.commands.schema import stack_file as schema
from stacks.commands.schema.command import schema as command

pytestmark = pytest.mark.unit


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
