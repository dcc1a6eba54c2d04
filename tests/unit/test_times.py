"""The page of how long tests take, from pytest's own report."""

from pathlib import Path

from tests.times import page, runs

REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0"
failures="0" skipped="0" tests="2" time="90.5" timestamp="2026-11-23T12:00:00.5+00:00" hostname="a">
<testcase classname="tests.unit.test_a" name="test_one[a|b]" time="1.25" />
<testcase classname="tests.unit.test_a" name="test_two" time="60.0" /></testsuite></testsuites>"""


def test_each_tier_has_a_line_and_the_slowest_test_is_first(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text(REPORT)
    lines = page(list(runs(tmp_path))).splitlines()
    assert "| unit | 2 | 1.5 | 2026-11-23T12:00 |" in lines
    assert "| 61 | 2 | `unit.test_a` |" in lines
    assert lines[-2:] == ["| 60.0 | `unit.test_a` test_two |", r"| 1.2 | `unit.test_a` test_one[a\|b] |"]


def test_without_a_run_there_is_no_page(tmp_path: Path) -> None:
    assert list(runs(tmp_path)) == []
