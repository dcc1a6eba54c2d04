"""Which suites run in full, as a small share, or not at all, and what is recorded."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import paths
from tests import suites, tiers
from tests.conftest import WAITING, ByFile
from tests.imported import imported, imports_of
from tests.suite_inputs import SUITES, Suite
from tests.suite_inputs.of_stacks import OF_STACKS
from tests.suites import Decision, decide, digests, record, record_pass

pytestmark = pytest.mark.thorough

NAME = "stack files"

SHARE = SUITES[NAME].share


@pytest.fixture(autouse=True)
def new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is recorded."""
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", SUITES)
def test_every_input_of_a_suite_exists(name: str) -> None:
    assert set(SUITES[name].files) < digests(SUITES[name]).keys()


@pytest.mark.parametrize("name", SUITES)
def test_every_file_of_a_suite_carries_its_marker(name: str) -> None:
    """That no other file does is checked when tests are collected."""
    for file in SUITES[name].files:
        text = (paths.ROOT / file).read_text()
        assert f'pytest.mark.suite("{name}")' in text


def test_what_a_test_its_fixtures_and_its_helpers_import_is_an_input(tmp_path: Path) -> None:
    for name, text in {
        "tests/engine/test_a.py": "def test() -> None:\n    from testbed.helper import help",
        "tests/conftest.py": "import pytest\nfrom core import nodes",
        "tests/engine/conftest.py": "from local.rehearsal import Rehearsal",
        "tests/engine/test_b.py": "",
        "testbed/helper.py": "from .more import *",
        "testbed/more.py": "from core.names import NAME",
        "core/nodes.py": "from core.unused import X",
        "core/names.py": "",
        "core/unused.py": "",
        "local/rehearsal.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {str(file.relative_to(tmp_path)) for file in imported(["tests/engine/test_a.py"], tmp_path)}
    assert found == {
        *("tests/engine/test_a.py", "tests/conftest.py", "tests/engine/conftest.py"),
        *("testbed/helper.py", "testbed/more.py", "core/nodes.py", "core/names.py", "local/rehearsal.py"),
    }


@pytest.mark.parametrize("name", OF_STACKS)
def test_all_that_the_program_imports_is_an_input_of_a_suite_that_updates_stacks(name: str) -> None:
    waiting, found = {paths.ROOT / "__main__.py"}, set[Path]()
    while waiting:
        found.add(file := waiting.pop())
        waiting |= imports_of(file, paths.ROOT) - found
    assert {str(file.relative_to(paths.ROOT)) for file in found} <= digests(OF_STACKS[name]).keys()


def test_the_tests_of_a_skipped_suite_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(suites.MODE, "auto")
    folder = ["tests/rollout", "tests/redis"]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "engine", "--collect-only", *folder]
    before = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    record_pass("Redis", digests(SUITES["Redis"]))
    after = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert ("tests/redis/" in before, "tests/redis/" in after) == (True, False)
    assert "tests/rollout/" in after


def test_a_suite_runs_in_full_on_a_new_machine() -> None:
    assert decide(NAME, {"a.py": "1"}, "auto") == Decision(1.0, "it has not passed on this machine yet")


def test_a_small_share_runs_when_nothing_has_changed_since_it_passed() -> None:
    record_pass(NAME, {"a.py": "1"})
    decided = decide(NAME, {"a.py": "1"}, "auto")
    assert decided.share == SHARE
    assert decided.reason.startswith("no input has changed since all of it passed on 20")


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ({"a.py": "2"}, "a.py changed"),
        ({"a.py": "1", "b.py": "1"}, "b.py changed"),
        ({}, "a.py changed"),
        ({f"{letter}.py": "1" for letter in "bcdef"}, "a.py, b.py, c.py and 3 more changed"),
    ],
    ids=["edited", "added", "removed", "many"],
)
def test_a_suite_runs_in_full_when_an_input_has_changed_and_the_reason_names_it(
    now: dict[str, str], named: str
) -> None:
    record_pass(NAME, {"a.py": "1"})
    assert decide(NAME, now, "auto") == Decision(1.0, f"{named} since it last passed")


@pytest.mark.parametrize(("days", "share"), [(6.9, SHARE), (7.1, 1.0)])
def test_a_suite_runs_in_full_once_a_week(monkeypatch: pytest.MonkeyPatch, days: float, share: float) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - days * 24 * 3600)
    record_pass(NAME, {"a.py": "1"})
    monkeypatch.setattr(time, "time", lambda: now)
    decided = decide(NAME, {"a.py": "1"}, "auto")
    assert decided.share == share
    assert ("a week ago" in decided.reason) == decided.full


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"at": 1}', '{"inputs": {"a.py": "1"}}', '{"at": "x", "inputs": {"a.py": "1"}}', "null"],
)
def test_an_unreadable_record_is_ignored(text: str) -> None:
    record(NAME).parent.mkdir(parents=True)
    record(NAME).write_text(text)
    decided = decide(NAME, {"a.py": "1"}, "auto")
    assert decided.full
    assert "cannot be read" in decided.reason


def test_a_record_of_bytes_or_a_folder_is_ignored() -> None:
    record(NAME).mkdir(parents=True)
    assert decide(NAME, {"a.py": "1"}, "auto").full
    record(NAME).rmdir()
    record(NAME).write_bytes(bytes(range(256)))
    assert decide(NAME, {"a.py": "1"}, "auto").full


def test_the_mode_decides_if_it_is_full_or_share() -> None:
    assert decide(NAME, {}, "share").share == SHARE
    record_pass(NAME, {})
    assert decide(NAME, {}, "full").full


@pytest.mark.parametrize(("text", "expected"), [("", "full"), ("auto", "auto"), ("fresh", "fresh"), ("share", "share")])
def test_the_environment_sets_the_mode(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITES", text)
    assert suites.mode() == expected


def test_the_error_for_another_mode_names_the_allowed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITES", "some")
    with pytest.raises(ValueError, match=r"SUITES is 'some': use auto, full, fresh or share"):
        suites.mode()


def test_a_file_a_version_and_the_plugins_are_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*suites.PINS, "code/a.py", "test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    suite = Suite(("code/**/*",), ("test_a.py",), 0.0)
    before = digests(suite, tmp_path)
    assert before.keys() >= {"Python", "PLUGINS", "code/a.py", "test_a.py", "requirements.txt"}
    (tmp_path / "code" / "__pycache__").mkdir()
    (tmp_path / "code" / "__pycache__" / "a.pyc").write_text("1")
    assert digests(suite, tmp_path) == before
    monkeypatch.setenv("PLUGINS", "real")
    assert digests(suite, tmp_path) != before


def test_a_missing_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no file matches 'code/\*', an input of a suite of tests"):
        digests(Suite(("code/*",), (), 0.0), tmp_path)


def drawn(monkeypatch: pytest.MonkeyPatch, decided: Decision, seed: str, mode: str = "auto") -> list[int]:
    """The numbers that a test of the suite gets."""
    monkeypatch.setenv("SUITES", mode)
    monkeypatch.setattr(suites, "decision", lambda _name: decided)
    monkeypatch.setenv("SEED", seed)
    numbers = []

    @suites.cases(NAME, 1000)
    @given(st.integers())
    def test(number: int) -> None:
        numbers.append(number)

    test()
    return numbers


def test_a_full_run_always_has_the_same_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Decision(1.0, "")
    assert len(drawn(monkeypatch, full, "1")) == 1000
    assert drawn(monkeypatch, full, "1") == drawn(monkeypatch, full, "2")


def test_a_full_run_with_fresh_cases_depends_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Decision(1.0, "")
    assert len(drawn(monkeypatch, fresh, "1", "fresh")) == 1000
    assert drawn(monkeypatch, fresh, "1", "fresh") == drawn(monkeypatch, fresh, "1", "fresh")
    assert drawn(monkeypatch, fresh, "1", "fresh") != drawn(monkeypatch, fresh, "2", "fresh")


def test_a_small_share_depends_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    share = Decision(0.05, "")
    assert len(drawn(monkeypatch, share, "1")) == 50
    assert drawn(monkeypatch, share, "1") == drawn(monkeypatch, share, "1")
    assert drawn(monkeypatch, share, "1") != drawn(monkeypatch, share, "2")


def started(monkeypatch: pytest.MonkeyPatch, names: list[str], code: int = 0) -> tuple[int, list[str]]:
    """The exit code of `run`, and the tiers that it ran."""
    ran: list[str] = []

    def run_tier(name: str, *_: object) -> int:
        ran.append(name)
        return code

    monkeypatch.setattr(tiers, "run_tier", run_tier)
    return tiers.run(names), ran


def test_a_tier_without_a_change_is_skipped_and_the_reason_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tiers, "decision", lambda name: Decision(SUITES[name].share, "no input has changed"))
    monkeypatch.setenv("CI", "true")
    assert started(monkeypatch, ["unit", "stand-ins", "pods"]) == (0, ["unit", "pods"])
    shown = capsys.readouterr().out
    assert "suite stack files: 5% of its cases: no input has changed" in shown
    assert shown.count("stand-ins  skipped: no input has changed") == 2
    assert "suite outages: skipped: no input has changed" in shown
    assert re.search(r"are drawn with SEED=\d+", shown)


@pytest.mark.parametrize(("ci", "ran"), [("", []), ("true", ["pods"])])
def test_real_pods_are_skipped_where_they_cannot_run_except_in_continuous_integration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, ran: list[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(tiers, "unmet", lambda: ["root is needed"])
    assert started(monkeypatch, ["pods"]) == (0, ran)
    assert ("pods       skipped: root is needed" in capsys.readouterr().out) == (not ran)


def test_unit_tests_are_where_their_tier_looks_for_them() -> None:
    tests = paths.ROOT / "tests"
    marked = [file for file in tests.rglob("*.py") if ("pytest.mark" + ".unit") in file.read_text()]
    assert marked == [tests / "unit" / "conftest.py"]


def test_one_process_runs_all_tests_that_mostly_wait() -> None:
    scope = ByFile.__new__(ByFile)._split_scope
    for folder in WAITING:
        assert list((paths.ROOT / folder).glob("test_*.py"))
        assert scope(f"{folder}test_a.py::test_b") == "waiting"
    assert scope("tests/engine/test_a.py::test_b[a::b]") == "tests/engine/test_a.py"


def test_no_tier_runs_after_one_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tiers, "decision", lambda _name: Decision(1.0, "SUITES=full"))
    assert started(monkeypatch, ["unit", "engine"], code=1) == (1, ["unit"])
    shown = capsys.readouterr().out
    assert re.search(r"unit +0\.0 min, failed\nengine +did not run", shown)


def test_a_record_has_the_time_and_the_digests() -> None:
    record_pass(NAME, {"a.py": "1"})
    kept = json.loads(record(NAME).read_text())
    assert kept["inputs"] == {"a.py": "1"}
    assert [file.name for file in record(NAME).parent.iterdir()] == ["stack-files.json"]
