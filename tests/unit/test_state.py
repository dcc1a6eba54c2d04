"""What the program reads from its own state."""

import time
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components import state

HALF_WRITTEN = "invoke of pulumi:pulumi:readStackOutputs failed: failed to load checkpoint: EOF"


def engine(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """An engine that gives these answers, one after the other. Returns those that it has not given."""
    left = list(answers)

    def invoke(_function: str, _arguments: dict[str, str]) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(value=answer)

    monkeypatch.setattr(pulumi.runtime, "invoke", invoke)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    return left


def test_a_state_that_is_being_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, Exception(HALF_WRITTEN), Exception(HALF_WRITTEN), {"outputs": {"split": 3}})
    assert state.last_outputs() == {"split": 3}


def test_a_state_that_stays_unreadable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, *[Exception(HALF_WRITTEN)] * 5)
    with pytest.raises(Exception, match="failed to load checkpoint"):
        state.last_outputs()


def test_another_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    left = engine(monkeypatch, Exception("no stack named dev"), {})
    with pytest.raises(Exception, match="no stack named dev"):
        state.last_outputs()
    assert left == [{}]
