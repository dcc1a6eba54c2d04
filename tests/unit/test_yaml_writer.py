"""What is written as YAML is read as the same values."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from core.yaml_reader.document import document
from core.yaml_reader.scalars import resolve_of_kubernetes
from core.yaml_writer import FastFileDumper, FileDumper, GoDumper

pytestmark = pytest.mark.thorough

DUMPERS = [GoDumper, FileDumper, FastFileDumper]

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(" \t\n\r-:#'\"|>ab1e.\x85\u2028\u2029\ufeff", max_size=12),
    st.from_regex(r"[-+]?[0-9][0-9_]{0,5}(\.[0-9_]{0,4})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["y", "N", "on", "12:30", "0o17", "2026-01-01", "2026-1-5", ".inf", "~", "null", "<<", "=", ""]),
)


@pytest.mark.parametrize("dumper", DUMPERS)
@given(text=TEXTS)
@example(text="1234567e1")
@example(text="a\u2028b\nc")
@example(text="\n  a\n")
@example(text="a \n")
def test_a_text_stays_the_same_text(dumper: type[yaml.SafeDumper], text: str) -> None:
    value = {"key": text, "list": [{text: text}]}
    written = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=40)
    for read in (document(written), document(written, resolve_of_kubernetes)):
        assert read is not None
        assert read.value == value
    assert yaml.safe_load(written) == value
