"""The reference page of the stack file."""

import re

import pytest

from stacks.commands.schema.reference import FILE, reference_text
from stacks.commands.schema.stack_file import stack_file_schema

pytestmark = pytest.mark.unit


def test_the_committed_page_is_generated_from_the_models() -> None:
    assert FILE.read_text() == reference_text(), "run `python -m stacks schema --write`"


def test_every_link_leads_somewhere() -> None:
    page = FILE.read_text()
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= anchors
    assert all((FILE.parent / path).exists() for path in re.findall(r"\((\.\.[^)#]+)\)", page))


def test_every_key_of_the_schema_is_on_the_page() -> None:
    definitions = stack_file_schema()["definitions"]
    models = {name: each for name, each in definitions.items() if not name.startswith(("KubeRay.", "Part"))}
    keys = {key for model in models.values() for key in model.get("properties", {})}
    assert {key for key in keys if f"`{key}`" not in FILE.read_text()} == set()


def test_a_row_has_type_default_and_meaning() -> None:
    assert (
        '| <a id="reserve-cpu"></a>`cpu` | [quantity or zero](#formats) |  | '
        "Default: a sixteenth of the node's CPUs. |" in FILE.read_text()
    )
