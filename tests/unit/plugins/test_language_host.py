"""The language host as the engine starts it: a separate process with a gRPC server."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from local.plugins.language import processes as language_processes
from local.plugins.language.processes import Processes, ending, output
from local.plugins.selection import STAND_IN

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(60)]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[language_pb2_grpc.LanguageRuntimeStub]:
    """A running language host without an engine. It prints its port, and answers every client."""
    with subprocess.Popen(
        [STAND_IN / "pulumi-language-python", "-v=9", "--logtostderr"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "python")},
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield language_pb2_grpc.LanguageRuntimeStub(channel)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0


def program(folder: Path, code: str) -> language_pb2.ProgramInfo:
    (folder / "__main__.py").write_text(code)
    options = struct_pb2.Struct()
    options.update({"virtualenv": sys.prefix})
    return language_pb2.ProgramInfo(
        root_directory=str(folder), program_directory=str(folder), entry_point=".", options=options
    )


def run_plugin(
    host: language_pb2_grpc.LanguageRuntimeStub, folder: Path, code: str, *arguments: str
) -> tuple[bytes, bytes, int]:
    """Runs a plugin; returns its standard output, standard error and exit code."""
    request = language_pb2.RunPluginRequest(
        pwd=str(folder),
        info=program(folder, code),
        args=arguments,
        env=[f"{key}={value}" for key, value in {**os.environ, "SET_BY_ENGINE": "by the engine"}.items()],
        kind="resource",
    )
    parts = list(host.RunPlugin(request))
    return b"".join(p.stdout for p in parts), b"".join(p.stderr for p in parts), parts[-1].exitcode


def test_a_plugin_gets_its_arguments_and_environment_and_its_output_comes_back(
    host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    code = (
        "import os, sys; print(sys.argv[1:], os.environ['SET_BY_ENGINE']); print('oops', file=sys.stderr); sys.exit(3)"
    )
    assert run_plugin(host, tmp_path, code, "a", "b") == (b"['a', 'b'] by the engine\n", b"oops\n", 3)


def test_a_folder_without_code_is_no_plugin(host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path) -> None:
    info = program(tmp_path, "")
    (tmp_path / "__main__.py").unlink()
    with pytest.raises(grpc.RpcError, match=r"has neither a __main__.py nor a pyproject.toml with a name"):
        list(host.RunPlugin(language_pb2.RunPluginRequest(pwd=str(tmp_path), info=info, kind="resource")))


def test_a_cancel_interrupts_running_processes(host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    request = language_pb2.RunPluginRequest(pwd=str(tmp_path), info=program(tmp_path, code), kind="resource")
    answers = iter(host.RunPlugin(request))
    assert next(answers).stdout == b"ready\n"
    host.Cancel(empty_pb2.Empty())
    assert list(answers)[-1].exitcode == -signal.SIGINT


def test_pulumi_about_gets_the_interpreter(host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path) -> None:
    about = host.About(language_pb2.AboutRequest(info=program(tmp_path, "")))
    assert about.executable == sys.executable
    assert sys.version.startswith(about.version)


def test_the_engine_learns_which_plugins_the_program_needs_also_those_on_the_users_pythonpath(
    host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    request = language_pb2.GetRequiredPackagesRequest(info=program(tmp_path, ""))
    assert [package.name for package in host.GetRequiredPackages(request).packages] == ["kubernetes"]
    metadata = tmp_path / "python" / "pulumi_random-1.2.3.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: pulumi_random\nVersion: 1.2.3\n")
    assert {package.name for package in host.GetRequiredPackages(request).packages} == {"kubernetes", "random"}


def test_the_error_for_an_unsupported_call_names_the_alternative(
    host: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        host.GenerateProgram(language_pb2.GenerateProgramRequest())
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "use Pulumi's own" in str(failure.value.details())


def test_a_process_that_ignores_the_interrupt_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_processes, "GRACE_SECONDS", 0.2)
    processes = Processes()
    code = "import signal, time; signal.signal(2, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    with processes.running([sys.executable, "-c", code], cwd=tmp_path, environment={}, capture=True) as process:
        for _, chunk in output(process):
            assert chunk == b"deaf\n"
            processes.cancel()
    assert ending(process.returncode) == "was ended by signal SIGKILL"


def test_after_a_cancel_no_process_starts(tmp_path: Path) -> None:
    processes = Processes()
    processes.cancel()
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with processes.running(command, cwd=tmp_path, environment={}) as process:
        pass
    assert process.returncode != 0
