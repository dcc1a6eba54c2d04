"""The wheel has what the code reads, and a program outside the checkout makes the same resources with it."""

import email
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stacks.load import load
from stacks.program.build import build
from testbed.recorder import record

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]

PARTS = ("ray_platform", "components", "core", "kuberay", "policies", "stacks")

PROGRAM = ROOT / "examples" / "python" / "ray_on_kubernetes.py"


def run(arguments: list[str], installed: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder with the package, and without the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "500", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as content:
        [name] = [each for each in content.namelist() if each.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(content.read(name))


def test_it_has_every_file_of_its_parts_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        inside = {name for name in content.namelist() if ".dist-info/" not in name}
    files = {
        str(file.relative_to(ROOT))
        for part in PARTS
        for file in (ROOT / part).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert inside == files
    assert {f"{part}/py.typed" for part in PARTS} <= inside
    assert {
        "kuberay/schemas/1.6.json",
        "components/payloads/redis/redis.sh",
        "stacks/commands/page/page.html.jinja",
    } <= inside


def test_version_and_packages_are_those_of_the_project(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata(wheel)["Version"] == project["version"]
    needed = {each.name: each for each in map(Requirement, metadata(wheel).get_all("Requires-Dist") or [])}
    listed = [line for line in (ROOT / "requirements.in").read_text().splitlines() if not line.startswith("#")]
    assert sorted(needed) == sorted(listed)
    pins = dict(
        line.split()[0].split("==") for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line
    )
    assert all(each.specifier.contains(pins[canonicalize_name(name)]) for name, each in needed.items())


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with the example program and what runs it."""
    folder = tmp_path / "program"
    folder.mkdir()
    for file in (PROGRAM, ROOT / "testbed" / "recorder.py", Path(__file__).with_name("elsewhere.py")):
        shutil.copy(file, folder)
    return folder


def registered_here() -> dict[str, Any]:
    """What the checkout's own program registers for the stack of the example."""
    recorder = record(lambda: build(load(ROOT / "Pulumi.dev.yaml")), stack="dev")
    return {name: vars(each) for name, each in recorder.registered.items()}


def without_waits(registered: dict[str, Any]) -> dict[str, Any]:
    """The same resources without dependencies on waits: the recorder takes a dependency on a RayCluster for one on its
    children so far, and a guard may be registered before or after the wait."""
    return {
        name: {**each, "dependencies": [other for other in each["dependencies"] if not other.endswith("-ready")]}
        for name, each in registered.items()
    }


@pytest.mark.usefixtures("kubectl_that_renders")
def test_the_example_makes_what_the_checkout_makes(installed: Path, elsewhere: Path) -> None:
    done = run(["elsewhere.py", PROGRAM.name], installed, elsewhere)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {Path(place).is_relative_to(installed) for place in found["places"]} == {True}
    made = without_waits(found["registered"])
    assert made.pop("ray")["type"] == "ray-platform:index:RayPlatform"
    here = without_waits(json.loads(json.dumps(registered_here(), default=sorted)))
    at_the_top = {name for name, each in here.items() if not each["parent"]}
    assert {"cluster", "platform"} <= at_the_top
    assert made == {name: {**each, "parent": "ray"} if name in at_the_top else each for name, each in here.items()}
    assert {"clusters", "operator", "tenants", "dashboard"} <= set(found["exported"])


def test_a_folder_of_the_same_name_is_reported(installed: Path, elsewhere: Path) -> None:
    (elsewhere / "components").mkdir()
    (elsewhere / "components" / "__init__.py").touch()
    done = run([PROGRAM.name], installed, elsewhere)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert f"Python would import components from {elsewhere}: rename" in last


def test_stack_files_are_checked_without_a_checkout_and_a_command_that_needs_one_reports_it(
    installed: Path, tmp_path: Path
) -> None:
    for stack in ("dev", "prod"):
        shutil.copy(ROOT / f"Pulumi.{stack}.yaml", tmp_path)
    done = run(["-m", "stacks", "check", "prod"], installed, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(["-m", "stacks", "preview", "dev"], installed, tmp_path)
    assert done.returncode != 0
    assert "this command runs ray-platform's own program" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_its_script_is_the_command(wheel: Path, installed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        [name] = [each for each in content.namelist() if each.endswith(".dist-info/entry_points.txt")]
        assert content.read(name).decode().split() == ["[console_scripts]", "ray-platform", "=", "stacks.__main__:main"]
    called = "import sys; from stacks.__main__ import main; sys.argv = ['/bin/ray-platform', 'check', '--help']; main()"
    shown = run(["-c", called], installed, tmp_path)
    assert (shown.returncode, "Usage: ray-platform check" in shown.stdout) == (0, True), shown.stderr
