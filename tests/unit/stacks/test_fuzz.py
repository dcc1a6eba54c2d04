"""Unusual stack files: each is valid or has findings, and nothing else ever happens."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.problems import Finding, StackFileError
from core.stack_file import stack_file
from core.yaml_reader.document import document
from stacks.load import settings_of

GOOD = sorted((Path(__file__).parents[2] / "stack_files" / "good").glob("*.yaml"))
TEXTS = [file.read_text() for file in GOOD]
VALUES = [found.value for text in TEXTS if (found := document(text))]

EXTREME: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, 10**9, 2**31, 2**63, 2**64, 10**400, 1e308, -0.0),
    *("", " ", "\n", "a b", "a" * 300, "Ä", "🚀", "\u202e", "\x07", "$(reboot)", "`id`", "'; --", "%s", "{}", "{0}"),
    *("0", "-1", "1e9", "4GB", "4Gi", "NaN", "null", "true", "latest", "2.60.0", "5m", "a100", "training", "[key]"),
    *([], {}, [[]], [{}], {"": None}, {"secure": "x"}, {"$patch": "delete"}, {"name": "training"}, [None], [1, "a"]),
    json.loads("[" * 45 + "]" * 45),
]
KEYS = ["", "secure", "name", "rayVersion", "idleTimout", "$patch", "groupName", "a\nb", "[key]", "Ä", "0", "overrides"]


def findings(text: str) -> tuple[Finding, ...]:
    try:
        settings_of(stack_file("Pulumi.fuzz.yaml", text))
    except StackFileError as error:
        return error.findings
    return ()


def assert_usable(text: str) -> None:
    """Findings are readable lines, at places that exist in the file."""
    lines = len(text.splitlines()) + 1
    for finding in findings(text):
        line = finding.in_file("Pulumi.fuzz.yaml")
        assert line.isprintable(), line
        assert len(line) < 2_000
        assert finding.message
        assert finding.line is None or 1 <= finding.line <= lines
        assert (finding.line is None) == (finding.column is None)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all leaves of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (*path, step)
        yield from places(item, (*path, step))


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid file with one to four of its parts dropped, doubled, renamed or replaced."""
    value = copy.deepcopy(draw(st.sampled_from(VALUES)))
    for _ in range(draw(st.integers(1, 4))):
        paths = list(places(value))
        if not paths:
            break
        *above, step = draw(st.sampled_from(paths))
        holder = value
        for each in above:
            holder = holder[each]
        match draw(st.sampled_from(["drop", "double", "rename", "add", "replace", "replace"])):
            case "drop":
                del holder[step]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[step]))
            case "rename" if isinstance(holder, dict):
                holder[draw(st.sampled_from(KEYS))] = holder.pop(step)
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(EXTREME)))
            case _:
                holder[step] = copy.deepcopy(draw(st.sampled_from(EXTREME)))
    return value


@given(mutated())
def test_good_files_with_other_values(value: Any) -> None:
    assert_usable(json.dumps(value))


@given(
    st.sampled_from(TEXTS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.text(max_size=5)), max_size=4)
)
def test_good_files_with_other_characters(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, length, inserted in edits:
        at = int(where * len(text))
        text = text[:at] + inserted + text[at + length :]
    assert_usable(text.encode(errors="replace").decode())


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,?.\\~<0123e_x\n\t \ufeff\u2028", max_size=80))
def test_text_of_yamls_own_characters(text: str) -> None:
    assert_usable(text)
    assert_usable(f"config:\n  ray-platform:operator:\n    env: {text}")


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(alphabet="abcß ☃\n'\"#:-", max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@given(VALUE.filter(lambda value: value is not None), st.booleans())
def test_a_written_value_is_read_back(value: Any, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    found = document(text)
    assert found is not None
    assert found.value == value
    lines = text.splitlines()
    for path in places(value):
        assert found.span(path).line <= len(lines)
