"""The rehearsal's commands: their errors, their output, and the signals that end a rehearsal."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from kubernetes import client

from local import __main__ as local_main
from local import install, paths, runs
from local.__main__ import main
from local.errors import RehearsalError
from local.progress import console
from local.rehearsal import Rehearsal
from local.rehearse import signals
from local.supervision import Program, daemonize, of_module
from tests.unit.local.conftest import ApiServer


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command changes for its process, which ends with it."""
    monkeypatch.setattr(local_main, "corrections", lambda _: {})
    monkeypatch.setattr(console, "stderr", False)
    for name in ("NODES", "PLUGINS", "POLICIES", "MONITORING"):
        monkeypatch.delenv(name, raising=False)


def ran(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["local", *arguments])
    return main()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["rehearse", "--format", "xml"], "'xml' is not one of 'text', 'json', 'markdown'"),
        (["up", "--nodes", "fake"], "'fake' is not one of 'simulated', 'real'"),
        (["up", "--plugins", "x"], "'x' is not one of"),
        (["status", "--unknown"], "No such option: --unknown"),
        (["nothing"], "No such command 'nothing'"),
        ([], "a command is missing"),
    ],
)
def test_a_wrong_argument_is_one_message(
    arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, *arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert problem in line


def no_server() -> NoReturn:
    """Reads from an API server that does not run."""
    configuration = client.Configuration()
    configuration.host, configuration.proxy = "http://127.0.0.1:9", None
    client.CoreV1Api(client.ApiClient(configuration)).list_node()
    raise AssertionError


def server_starts() -> NoReturn:
    raise client.ApiException(status=500, reason="Internal Server Error")


def of_another_user() -> NoReturn:
    raise PermissionError(13, "Permission denied", "/checkout/.rehearsal/nodes")


def read_only() -> NoReturn:
    raise OSError(errno.EROFS, "Read-only file system", "/checkout/.rehearsal")


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        (read_only, "/checkout/.rehearsal: Read-only file system: copy the checkout to a folder of yours"),
        (no_server, "the rehearsal's API server does not answer: .*Connection refused.*make status"),
        (server_starts, "the rehearsal's API server does not answer: Internal Server Error"),
        (of_another_user, "/checkout/.rehearsal/nodes: Permission denied: run the command as the user whom"),
    ],
)
def test_what_is_not_an_error_of_the_program_is_one_message(
    happens: Any, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "stop", lambda _: happens())
    assert ran(monkeypatch, "down") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(f"error: {message}", line)


def test_an_error_of_the_program_has_a_traceback(monkeypatch: pytest.MonkeyPatch, api_server: ApiServer) -> None:
    def fails(_: bool) -> NoReturn:
        configuration = client.Configuration()
        configuration.host, configuration.proxy = api_server.url, None
        client.CoreV1Api(client.ApiClient(configuration)).read_node("absent")
        raise AssertionError

    monkeypatch.setattr(runs, "stop", fails)
    with pytest.raises(client.ApiException, match="not found"):
        ran(monkeypatch, "down")


def test_the_setting_for_a_mirror_is_alone_on_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(install, "install_missing", lambda: None)
    assert ran(monkeypatch, "mirror", str(tmp_path / "served")) == 0
    output, progress = capsys.readouterr()
    assert output.startswith(f"TOOLS={tmp_path}/served#sha256=")
    assert len(output.splitlines()) == 1
    assert "Not in the cache" in progress


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the folder of `make up` and one that `make rehearse` has left."""
    monkeypatch.setattr(paths, "RUN", tmp_path / ".rehearsal")
    for name in (".rehearsal", ".rehearsal-prod", "rehearsals"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_clean_removes_the_rehearsals_of_stacks_as_well(checkout: Path) -> None:
    runs.stop(clean=True)
    assert [entry.name for entry in checkout.iterdir()] == ["rehearsals"]


def test_a_rehearsal_of_a_stack_that_runs_is_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rehearsal = Rehearsal(checkout / ".rehearsal-prod")
    program = Program("etcd", ["sleep", "60"], {})
    try:
        rehearsal.supervisor.start([program], lambda command, variables: daemonize(command, variables, rehearsal.run))
        runs.stop(clean=False)
        assert "there runs: .rehearsal-prod" in capsys.readouterr().out
        runs.stop(clean=True)
        assert "there runs" not in capsys.readouterr().out
        assert not list(rehearsal.supervisor.strays())
    finally:
        rehearsal.supervisor.stop()


def test_programs_of_the_checkout_find_it_and_keep_the_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/site")
    program = of_module("tool", "this", "argument")
    assert [*program.command] == [sys.executable, "-m", "this", "argument"]
    assert program.environment == {"PYTHONPATH": f"{paths.ROOT}{os.pathsep}/opt/site"}
    monkeypatch.delenv("PYTHONPATH")
    assert of_module("tool", "this").environment == {"PYTHONPATH": str(paths.ROOT)}


STOPS = """
import pathlib, signal, sys, time
from local.rehearse.signals import end_as_after_ctrl_c
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which the tests may run under, ignores it
end_as_after_ctrl_c()
try:
    print("runs", flush=True)
    time.sleep(60)
finally:
    print("stops", flush=True)
    time.sleep(0.5)
    pathlib.Path(sys.argv[1]).touch()
"""


def test_a_rehearsal_prepares_for_these_signals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def called() -> NoReturn:
        raise RehearsalError("called")

    monkeypatch.setattr(signals, "end_as_after_ctrl_c", called)
    assert ran(monkeypatch, "rehearse") == 1
    assert capsys.readouterr().err == "error: called\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_a_rehearsal_stop_its_cluster(tmp_path: Path, number: signal.Signals) -> None:
    """A second one, which `make` may send, does not interrupt the stop."""
    command = [sys.executable, "-c", STOPS, str(tmp_path / "stopped")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=paths.ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        for line in ("runs\n", "stops\n"):
            assert process.stdout.readline() == line
            process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (tmp_path / "stopped").exists()
    assert errors.endswith("KeyboardInterrupt\n")
