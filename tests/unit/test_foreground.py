"""Commands that a terminal sends Ctrl-C to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.foreground import captured, foreground
from local import paths

SLOW = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.6)
    pathlib.Path(sys.argv[1], "written").touch()
    sys.exit(3)
signal.signal(signal.SIGINT, end)
pathlib.Path(sys.argv[1], "started").touch()
time.sleep(60)
"""
"""It takes some time to end, as Pulumi does."""

FOREGROUND = "import sys; from core.foreground import foreground; sys.exit(foreground(sys.argv[1:]))"
CAPTURED = """
import os, pathlib, sys
from core.foreground import captured
try:
    captured(sys.argv[1:], pathlib.Path.cwd(), os.environ, "typed")
except KeyboardInterrupt:
    sys.exit(3)
"""


@pytest.mark.parametrize("ours", [FOREGROUND, CAPTURED], ids=["foreground", "captured"])
def test_after_ctrl_c_a_command_ends_by_itself(tmp_path: Path, ours: str) -> None:
    command = [sys.executable, "-c", SLOW, str(tmp_path)]
    with subprocess.Popen([sys.executable, "-c", ours, *command], cwd=paths.ROOT, process_group=0) as process:
        until = time.monotonic() + 20
        while not (tmp_path / "started").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        # As a terminal does it: to the whole group, which has no other processes.
        assert os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 3
    assert (tmp_path / "written").exists()


def test_a_command_has_its_folder_and_environment(tmp_path: Path) -> None:
    code = "import os; open('made', 'w').write(os.environ['MINE'])"
    assert foreground([sys.executable, "-c", code], tmp_path, {"MINE": "value"}) == 0
    assert (tmp_path / "made").read_text() == "value"


def test_an_output_is_captured(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.environ['MINE']); sys.exit('no')"
    done = captured([sys.executable, "-c", code], tmp_path, {"MINE": "value"}, "typed")
    assert (done.returncode, done.stdout, done.stderr) == (1, "typed value\n", "no\n")
