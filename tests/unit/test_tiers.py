"""Which process runs which test, where the tests of a tier are, and the seed of generated cases."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from local import paths
from tests.conftest import WAITING, ByFile

CASES = """
from hypothesis import given, strategies as st

drawn = []

@given(st.integers())
def draw(number):
    drawn.append(number)

def test_cases():
    draw()
    print("drawn:", len(drawn), hash(tuple(drawn)))

def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", [metafunc.config.getoption("hypothesis_seed")])

def test_seed(seed):
    pass
"""


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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder whose tests have our settings, and a test of generated cases."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom tests.conftest import *\ndef pytest_itemcollected(item):\n    item.add_marker('unit')\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = unit: x\n")
    (tmp_path / "test_cases.py").write_text(CASES)
    return tmp_path


def output(project: Path, *arguments: str) -> str:
    """What a run prints."""
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "--rootdir", str(project), *arguments]
    done = subprocess.run(
        [*command, str(project)], cwd=paths.ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def ran(project: Path, *arguments: str) -> tuple[str, str]:
    """The cases of a run, and the seed that it names."""
    shown = output(project, *arguments)
    [drawn], [seed] = re.findall(r"drawn: (.*)", shown), re.findall(r"--hypothesis-seed=(\d+)", shown)
    return drawn, seed


@pytest.mark.thorough
def test_each_run_draws_other_cases_and_its_seed_draws_them_again(project: Path) -> None:
    first, seed = ran(project)
    assert first.startswith("200 ")
    assert ran(project, f"--hypothesis-seed={seed}") == (first, seed)
    many, another = ran(project, "--hypothesis-profile=many")
    assert many.startswith("3000 ")
    assert another != seed


@pytest.mark.thorough
def test_all_processes_have_the_seed_that_the_summary_names(project: Path) -> None:
    shown = output(project, "--verbose", "--numprocesses=2")
    assert set(re.findall(r"test_seed\[(\d+)\]", shown)) == set(re.findall(r"--hypothesis-seed=(\d+)", shown))
