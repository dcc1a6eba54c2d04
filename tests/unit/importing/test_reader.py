"""Documents are read with the line numbers of their parts, and a reader records what was used of each part."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.launcher_files.reader import Reader, RefusedError, documents
from tests.unit.importing.values import leaves

DOCUMENT = {"used": 1, "noted": {"deep": [1, 2]}, "left": {"a": 1, "b": {"c": 2}}, "empty": {}, "off": False}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def unknown(document: Any, reader: Reader) -> list[tuple[str | int, ...]]:
    return [note.path for note in reader.log.finish(document)]


def test_a_part_that_is_neither_used_nor_noted_is_noted_at_the_end() -> None:
    reader = Reader(DOCUMENT)
    reader.whole("used")
    reader.at("noted").note("has no counterpart", "remove it")
    assert unknown(DOCUMENT, reader) == [("noted",), ("left",)]
    reader = Reader(DOCUMENT)
    reader.mapping("left").whole("a")
    assert unknown(DOCUMENT, reader) == [("used",), ("noted",), ("left", "b")]
    assert unknown({"a": None, "b": "", "c": [], "d": {"e": {}}}, Reader({})) == []


@given(VALUES, st.data())
@settings(derandomize=True, max_examples=300)
def test_every_leaf_is_used_or_noted(document: Any, data: st.DataObject) -> None:
    reader = Reader(document)
    found = list(leaves(document))
    used = data.draw(st.lists(st.sampled_from(found), max_size=3)) if found else []
    for path in used:
        reader.log.use(path)
    noted = unknown(document, reader)
    for leaf in found:
        assert leaf in used or any(leaf[: len(path)] == path for path in noted)


TWO = """\
kind: ConfigMap
---
# a comment
kind: Ray
spec:
  configuration: |-
    # of its own
    cluster_name: default
    setup_commands:
      - pip install numpy
  groups:
    - {name: a}
    - name: b
      size: 3
---
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("kind",), 4),
        (("spec", "groups", 1, "size"), 14),
        (("spec", "groups", 0, "name"), 12),
        # A part of YAML in a text has its line in the file, and a missing one that of its parent.
        (("spec", "configuration", "cluster_name"), 8),
        (("spec", "configuration", "setup_commands", 0), 10),
        (("spec", "groups", 7, "size"), 11),
    ],
)
def test_each_part_has_its_line(path: tuple[str | int, ...], line: int, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    first, second = documents(file)
    assert (first.line(()), first.line(("kind",)), second.line(path)) == (1, 1, line)


@pytest.mark.parametrize(
    "text",
    ["a: [", "\t- a", "a: 1\na: *b", "\x00", "[" * 100_000, "a: !!python/object:os.system {}"],
    ids=["open", "tab", "alias", "null", "deep", "tag"],
)
def test_invalid_yaml_and_what_is_no_text_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(RefusedError) as refused:
        documents(file)
    assert refused.value.notes[0].line
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RefusedError, match="it is not text in UTF-8"):
        documents(file)


def test_a_file_of_100_mb_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "great.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(100 * 2**20)
    with pytest.raises(RefusedError, match="it has more than"):
        documents(file)
