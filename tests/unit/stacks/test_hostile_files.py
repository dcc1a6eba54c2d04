"""Files that are built to crash their reader, make it hang or fill the memory: they are refused, and soon."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.yaml_reader.document import DEEPEST, LARGEST
from stacks.commands.check.findings import check, show

pytestmark = pytest.mark.thorough

SECONDS = 10
"""CPU seconds. Far more than any of these files takes, and far less than a reader takes that follows them."""


def aliases(width: int) -> str:
    """Ten levels of lists that each repeat the one before: width to the power of ten values."""
    levels = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    levels += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * width)}]" for n in range(10)]
    return "\n".join(levels)


HOSTILE = {
    "brackets in each other": ("[" * 100_000, "more than 50 mappings and lists"),
    "braces in each other": ("{a: " * 100_000, "more than 50 mappings and lists"),
    "dashes in each other": ("- " * 100_000, "more than 50 mappings and lists"),
    "keys in each other": ("? " * 100_000, "a key that is a mapping or a list"),
    "indented mappings in each other": ("\n".join(" " * n + "a:" for n in range(2_000)), "more than 50 mappings"),
    "a billion laughs": (aliases(10), f"more than {LARGEST} values"),
    "two to the power of ten": (aliases(2), "this is not a stack file"),
    "a long text repeated": (f"a: &a {'y' * 1_000_000}\nb: [{'*a, ' * 100_000}]", f"more than {LARGEST} values"),
    "a mapping merged again and again": (
        f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1_000))}}}\nb: [{'{<<: *a}, ' * 10_000}]",
        f"more than {LARGEST} values",
    ),
    "an alias of itself": ("config: &a [*a]", "alias *a is inside the value that it repeats"),
    "an alias of itself by merging": ("config: &a\n  <<: *a", "alias *a is inside the value that it repeats"),
    "aliases that nest deeper than any text": (
        "\n".join(["a0: &a0 [1]", *(f"a{n + 1}: &a{n + 1} [*a{n}]" for n in range(DEEPEST))]),
        "more than 50 mappings and lists",
    ),
    "a number of very many digits": (
        f"config:\n  ray-platform:nodes: [{{pool: a, count: 1{'0' * 5_000}, cpu: 1, memory: 1Gi}}]",
        "'1000",
    ),
    "very many unknown keys": (
        "config:\n  ray-platform:operator:\n" + "".join(f"    replicaz{n}: 1\n" for n in range(90_000)),
        "unknown key 'replicaz",
    ),
    "very many tenants that are not mappings": (
        f"config:\n  ray-platform:tenants: [{'1, ' * 150_000}]",
        "1 is not allowed: a mapping",
    ),
    "very many colons": ("a: " * 500_000, "this is not YAML"),
    "very many tags": ("!!a " * 500_000, "tag !!a is not allowed"),
    "one very long key": (f"config:\n  ray-platform:{'k' * 3_000_000}: 1", "this is not YAML"),
    "one very long quoted key": (f"config:\n  ? 'ray-platform:{'k' * 3_000_000}'\n  : 1", "unknown key 'kkk"),
    "one very long name": (f"config:\n  ray-platform:tenants: [{{name: {'a' * 3_000_000}}}]", "'aaa"),
    "very many faults in one line": (
        f"config: {{ray-platform:nodes: [{'{pool: a, token: x}, ' * 20_000}]}}",
        "is required, but missing",
    ),
    "backtracking in an image": (
        "config:\n  ray-platform:tenants: [{name: a, clusters: [{name: a, rayVersion: 2.60.0, image: "
        f"{'a' * 400}:{'/' * 400}!, workers: {{pool: a}}}}]}}]",
        "'aaaa",
    ),
}


@pytest.mark.parametrize(("text", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_soon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    file = tmp_path / "Pulumi.hostile.yaml"
    file.write_text(text)
    started = time.process_time()
    checked = check(file)
    show([checked])
    shown = capsys.readouterr().out
    assert time.process_time() - started < SECONDS
    assert checked.findings
    assert expected in checked.findings[0].message
    assert checked.findings[0].message in shown
    assert all(len(str(finding)) < 1_000 for finding in checked.findings)


@pytest.fixture
def hundred_megabytes(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "Pulumi.great.yaml"
    with file.open("wb") as stream:
        for _ in itertools.repeat(None, 100):
            stream.write(b"# filler\n" * (1_000_000 // 9))
    yield file
    file.unlink()


def test_a_file_of_a_hundred_megabytes_is_not_read(hundred_megabytes: Path) -> None:
    started = time.process_time()
    [finding] = check(hundred_megabytes).findings
    assert time.process_time() - started < 1
    assert finding.rule == "file-size"


def test_a_file_without_an_end_is_not_read() -> None:
    [finding] = check(Path("/dev/zero")).findings
    assert finding.rule == "file-size"


def test_bytes_that_are_not_text_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.binary.yaml"
    file.write_bytes(bytes(range(256)) * 100)
    [finding] = check(file).findings
    assert (finding.rule, finding.line) == ("encoding", 2)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_a_mark_of_the_byte_order_does_not_matter(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "Pulumi.marked.yaml"
    file.write_text("config: {'ray-platform:operator': {replicas: 9}}", encoding=encoding)
    [finding] = check(file).findings
    assert (finding.line, finding.column) == (1, 46)
