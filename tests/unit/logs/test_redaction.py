"""Which secrets are masked. tests/engine/test_logs.py has the collector itself mask the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.logs.collector import MASK, REDACTIONS, Redaction, redactions
from testbed.logged_secrets import KEYS, ONE_LINE, WITHOUT, Logged


def masked(text: str, *further: str) -> str:
    for each in redactions(further):
        if each.has and not any(part in text.upper().lower() for part in each.has):
            continue
        text = re.sub(each.pattern, each.replacement_of_python, text)
    return text


@pytest.mark.parametrize("logged", ONE_LINE, ids=lambda logged: logged.masked)
def test_a_secret_is_masked_and_the_rest_stays(logged: Logged) -> None:
    assert logged.secret in logged.text
    assert masked(logged.text) == logged.masked


@pytest.mark.parametrize("key", KEYS, ids=["RSA", "elliptic curve", "OpenSSH"])
def test_a_private_key_is_masked_as_a_whole(key: str) -> None:
    assert masked(f"before\n{key}\nafter") == f"before\n{MASK}\nafter"


@pytest.mark.parametrize("text", WITHOUT)
def test_other_texts_stay(text: str) -> None:
    assert masked(text) == text


def test_a_key_without_its_end_is_masked_too() -> None:
    begin, *lines, _ = KEYS[0].splitlines()
    assert masked("\n".join([begin, *lines[:5]])) == MASK


def test_expressions_of_the_stack_file_are_masked() -> None:
    assert masked("of EMP-123456", r"EMP-\d+") == f"of {MASK}"


@pytest.mark.parametrize("redaction", [each for each in REDACTIONS if each.has], ids=lambda each: each.name)
def test_each_match_has_one_of_the_texts_without_which_the_pattern_is_not_tried(redaction: Redaction) -> None:
    @given(st.from_regex(redaction.pattern))
    def judge(text: str) -> None:
        assert any(part in text.upper().lower() for part in redaction.has)

    judge()
