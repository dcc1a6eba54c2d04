"""A rehearsal's copy of a stack file means the same to Pulumi as the file."""

import json
from pathlib import Path

import pytest

from core.stack_file import plain_values, read, stack_file

pytestmark = pytest.mark.unit

FILE = 'config:\n  ray-platform:a: {BYTES: "7e10", TIME: 12:30, ANSWER: yes, MODE: "0022", NUMBER: 0x1F}\n'


def test_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.a.yaml"
    file.write_text(FILE)
    values = plain_values(file)
    copy = tmp_path / "Pulumi.b.yaml"
    copy.write_text(json.dumps(values))
    again = stack_file(copy, read(copy)).document.value
    expected = {"BYTES": "7e10", "TIME": "12:30", "ANSWER": "yes", "MODE": "0022", "NUMBER": 31}
    assert again == values == {"config": {"ray-platform:a": expected}}
