"""A reader records what was used of each part of a document."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.commands.importing.reader import Reader, leaves

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


def test_a_partly_used_part_has_notes_for_the_rest() -> None:
    reader = Reader(DOCUMENT)
    reader.mapping("left").whole("a")
    assert unknown(DOCUMENT, reader) == [("used",), ("noted",), ("left", "b")]


def test_an_empty_value_needs_no_note() -> None:
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
