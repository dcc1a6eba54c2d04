"""Files are read with the line numbers of their parts, and invalid YAML is refused."""

from pathlib import Path

import pytest

from stacks.commands.importing.reader import RefusedError, documents

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


def test_each_part_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    first, second = documents(file)
    assert (first.line(()), first.line(("kind",)), second.line(("kind",))) == (1, 1, 4)
    assert (second.line(("spec", "groups", 1, "size")), second.line(("spec", "groups", 0, "name"))) == (14, 12)


def test_a_part_of_yaml_in_a_text_has_its_line_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    second = documents(file)[1]
    assert second.line(("spec", "configuration", "cluster_name")) == 8
    assert second.line(("spec", "configuration", "setup_commands", 0)) == 10


def test_a_missing_part_has_the_line_of_its_parent(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    assert documents(file)[1].line(("spec", "groups", 7, "size")) == 11


@pytest.mark.parametrize(
    "text",
    ["a: [", "\t- a", "a: 1\na: *b", "\x00", "[" * 100_000, "a: !!python/object:os.system {}"],
    ids=["open", "tab", "alias", "null", "deep", "tag"],
)
def test_invalid_yaml_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(RefusedError) as refused:
        documents(file)
    assert refused.value.notes[0].line


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RefusedError, match="it is not text in UTF-8"):
        documents(file)


def test_a_file_of_100_mb_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "great.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(100 * 2**20)
    with pytest.raises(RefusedError, match="it has more than"):
        documents(file)
