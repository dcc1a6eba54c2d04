"""A warm process does what a new one does."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from local import paths

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(60)]

REPORT = """
import json, os, sys, time
if "wait" in sys.argv:
    print(os.getpid(), flush=True)
    while True:  # Python sleeps to the end if a signal comes just before the call of the kernel
        time.sleep(0.1)
elif "bytes" in sys.argv:
    sys.stdout.buffer.write(b"8080\\n")
    time.sleep(60)
elif "fail" in sys.argv:
    raise RuntimeError("this program fails")
else:
    seen = {"argv": sys.argv, "path": sys.path, "folder": os.getcwd(), "name": __name__, "variables": dict(os.environ)}
    seen |= {"executable": sys.executable, "prefix": sys.prefix, "input": sys.stdin.read()}
    if "whose" in sys.argv:
        import components
        seen["code"] = components.__file__
    seen |= {"main": vars(sys.modules["__main__"]) is globals(), "open": sorted(os.listdir("/proc/self/fd"))}
    print(json.dumps(seen), flush=True)
    if "pulumi" in sys.modules:
        print("warm", file=sys.stderr)
    sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file that runs warm, because of its name."""
    file = tmp_path / "local/plugins/language/program.py"
    file.parent.mkdir(parents=True)
    file.write_text(REPORT)
    return file


def run(program: Path, *arguments: str, options: tuple[str, ...] = (), **variables: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, *options, str(program), *arguments],
        cwd=program.parents[1],
        env={**os.environ, "COLOUR": "blue", **variables},
        input="text",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def is_gone(copy: psutil.Process) -> bool:
    """Whether a copy ends within ten seconds, and the server has noticed."""
    ended = time.monotonic() + 10
    while copy.is_running() and time.monotonic() < ended:
        time.sleep(0.01)
    return not copy.is_running()


@pytest.mark.parametrize("options", [(), ("-u",), ("-P",)])
def test_a_program_sees_what_a_new_process_sees(program: Path, options: tuple[str, ...]) -> None:
    code, output, errors = run(program, "a", "b c", options=options)
    cold_code, cold_output, cold_errors = run(program, "a", "b c", options=options, RAY_PLATFORM_WARM_PYTHON="")
    assert (errors, cold_errors) == ("warm\n", "")
    assert code == cold_code == 7
    warm, cold = json.loads(output), json.loads(cold_output)
    for seen in (warm, cold):
        del seen["variables"]["RAY_PLATFORM_WARM_PYTHON"]
    assert warm == cold


def test_it_has_the_code_that_a_new_process_would_import(program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "components" / "__init__.py"
    copy.parent.mkdir(parents=True)
    copy.touch()
    for own in (paths.ROOT / "components" / "__init__.py", copy):
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(own.parents[1])])
        code, output, errors = run(program, "whose", PYTHONPATH=path)
        assert (code, json.loads(output)["code"], errors) == (7, str(own), "warm\n")


@pytest.mark.parametrize("options", [("-u",), ()])
def test_bytes_are_written_at_once_without_a_buffer(program: Path, options: tuple[str, ...]) -> None:
    variables = {**os.environ, "PYTHONUNBUFFERED": "" if options else "1"}
    command = [sys.executable, *options, str(program), "bytes"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == b"8080\n"
        it.kill()


def test_an_error_ends_it_as_it_ends_a_new_process(program: Path) -> None:
    code, output, errors = run(program, "fail")
    assert (code, output) == (1, "")
    assert errors.endswith("RuntimeError: this program fails\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_gets_the_signals_and_ends_with_the_process_that_was_started(program: Path, number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, str(program), "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout is not None
        copy = psutil.Process(int(it.stdout.readline()))
        assert copy.pid != it.pid
        it.send_signal(number)
        it.communicate()
        assert is_gone(copy)
    assert it.returncode == -number


def test_a_signal_that_comes_when_its_copy_has_ended_is_not_reported(program: Path) -> None:
    with subprocess.Popen([sys.executable, str(program), "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout is not None
        copy = psutil.Process(int(it.stdout.readline()))
        it.send_signal(signal.SIGSTOP)
        copy.terminate()
        assert is_gone(copy)
        it.send_signal(signal.SIGTERM)
        it.send_signal(signal.SIGCONT)
        _, errors = it.communicate()
    assert (it.returncode, errors) == (-signal.SIGTERM, b"")


@pytest.mark.parametrize("sent", [b"", b"\0\0\1\0", b"\0\0\1\0{"])
def test_a_process_that_is_killed_while_it_asks_stops_no_other(
    program: Path, warm: Mapping[str, str], sent: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(warm["RAY_PLATFORM_WARM_PYTHON"])
        client.sendall(sent)
    assert run(program)[::2] == (7, "warm\n")


def test_other_commands_and_those_without_a_server_run_as_ever(program: Path, warm: Mapping[str, str]) -> None:
    other = program.with_name("other.py")
    other.write_text(REPORT)
    assert "warm" not in run(other)[2]
    assert "warm" not in run(program, RAY_PLATFORM_WARM_PYTHON=f"/gone{warm['RAY_PLATFORM_WARM_PYTHON']}")[2]


def test_a_process_in_a_network_of_its_own_keeps_it(program: Path) -> None:
    done = subprocess.run(
        ["unshare", "--net", "--map-root-user", sys.executable, program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")
