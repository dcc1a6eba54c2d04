"""The language host's calls, as the engine makes them (`proto/pulumi/language.proto` in pulumi/pulumi)."""

import json
import os
import platform
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from local.plugins.language import packages
from local.plugins.language.errors import HostError, reported
from local.plugins.language.policy_pack import PolicyPack
from local.plugins.language.processes import Processes, Stream, ending, output
from local.plugins.language.toolchain import Toolchain, resolve

PROGRAM = Path(__file__).with_name("program.py")
"""Runs with the project's interpreter, so it is a separate file and never imported here."""

REPORTED = 32
"""The program's exit code after it has shown the user an error message (as in Pulumi's own host)."""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs Python programs and plugins for one engine."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        """The engine's address; empty until Handshake when an engine attaches (PULUMI_DEBUG_LANGUAGES)."""
        self.processes = Processes()

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Sets the address of an engine that did not start this host but attached to it."""
        self.engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """The version of the SDK that this host is made with."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def About(self, request: language_pb2.AboutRequest, context: grpc.ServicerContext) -> language_pb2.AboutResponse:
        """The interpreter, for `pulumi about` and the environment recorded with each update."""
        with reported(context):
            toolchain = resolve(request.info)
            if not toolchain.exists():
                return language_pb2.AboutResponse(version=platform.python_version())
            asked = "import platform, sys; print(sys.executable); print(platform.python_version())"
            answer = subprocess.run([toolchain.python(), "-c", asked], capture_output=True, text=True, check=False)
            executable, python_version = answer.stdout.splitlines()
            return language_pb2.AboutResponse(
                executable=executable, version=python_version, metadata={"toolchain": toolchain.name}
            )

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """The plugins of the Pulumi packages in the project's environment, which is created if it is missing."""
        with reported(context):
            toolchain = resolve(request.info)
            if not toolchain.exists():
                for command in toolchain.install_commands():
                    self._finish(command, toolchain)
            found = packages.required_plugins(packages.installed(toolchain.python(), toolchain.environment(os.environ)))
            return language_pb2.GetRequiredPackagesResponse(packages=found)

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        """The installed packages, for `pulumi about`."""
        with reported(context):
            toolchain = resolve(request.info)
            found = packages.installed(toolchain.python(), toolchain.environment(os.environ))
            if not request.transitiveDependencies:
                found = packages.top_level(found)
            return language_pb2.GetProgramDependenciesResponse(dependencies=packages.dependencies(found))

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """`pulumi install`: creates the environment and installs the project's dependencies."""
        with reported(context):
            toolchain = resolve(request.info, plugin=request.is_plugin)
            for command in toolchain.install_commands():
                yield language_pb2.InstallDependenciesResponse(stdout=f"{' '.join(command)}\n".encode())
                with self.processes.running(
                    command, cwd=toolchain.directory, environment=os.environ, capture=True
                ) as process:
                    for stream, chunk in output(process):
                        yield language_pb2.InstallDependenciesResponse(**{stream: chunk})
                if process.returncode:
                    raise HostError(f"`{' '.join(command)}` {ending(process.returncode)}")

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:
        """Runs the program and reports how it ended; its output is written to the engine's log."""
        if request.attach_debugger:
            return language_pb2.RunResponse(
                error="the stand-in language host attaches no debugger; use Pulumi's own (docs/tools.md)"
            )
        with reported(context):
            toolchain = resolve(request.info)
            if toolchain.typechecker:
                self._finish([toolchain.python(), "-m", toolchain.typechecker, "."], toolchain)
            environment = toolchain.environment(os.environ) | {
                "PULUMI_CONFIG": json.dumps(dict(request.config)),
                "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
            }
            command = [toolchain.python(), str(PROGRAM), *self._arguments(request)]
            with self.processes.running(command, cwd=Path(request.pwd), environment=environment) as process:
                # The call ends early when the engine cancels it.
                context.add_callback(lambda: self.processes.interrupt(process))
                code = process.wait()
        if code == REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"program {ending(code)}" if code else "")

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Runs a plugin written in Python: a provider (PulumiPlugin.yaml) or a policy pack (PulumiPolicy.yaml)."""
        with reported(context):
            run = self._run_policy_pack if request.kind == "analyzer" else self._run_provider
            yield from run(request, context)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Interrupts all running processes."""
        self.processes.cancel()
        return empty_pb2.Empty()

    def _not_done(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(
            grpc.StatusCode.UNIMPLEMENTED,
            "the stand-in language host makes no projects, packages or code; use Pulumi's own (docs/tools.md)",
        )

    Template = RuntimeOptionsPrompts = GenerateProgram = GenerateProject = GeneratePackage = Pack = Link = _not_done

    def _run_provider(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        toolchain = resolve(request.info, plugin=True)
        command = [toolchain.python(), *_plugin_command(toolchain.directory, list(request.args))]
        environment = toolchain.environment(_variables(request))
        with self.processes.running(command, cwd=Path(request.pwd), environment=environment, capture=True) as process:
            context.add_callback(lambda: self.processes.interrupt(process))
            for stream, chunk in output(process):
                yield _written(stream, chunk)
        yield language_pb2.RunPluginResponse(exitcode=process.returncode)

    def _run_policy_pack(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        toolchain = resolve(request.info)
        folder = request.info.program_directory
        command = [toolchain.python(), "-u", "-m", "pulumi.policy", *request.args, folder]
        with closing(PolicyPack()) as pack:
            yield _written("stdout", f"{pack.port}\n".encode())
            environment = toolchain.environment(_variables(request)) | pack.await_environment(context)
            with self.processes.running(command, cwd=Path(folder), environment=environment, capture=True) as process:
                context.add_callback(lambda: self.processes.interrupt(process))
                for stream, chunk in output(process):
                    yield _written(stream, pack.attach(chunk) if stream == "stdout" else chunk)
        yield language_pb2.RunPluginResponse(exitcode=process.returncode)

    def _arguments(self, request: language_pb2.RunRequest) -> list[str]:
        """The command line of program.py."""
        return [
            f"--monitor={request.monitor_address}",
            f"--engine={self.engine}",
            f"--project={request.project}",
            f"--root_directory={request.info.root_directory}",
            f"--stack={request.stack}",
            f"--organization={request.organization}",
            f"--pwd={request.pwd}",
            *(["--dry_run"] if request.dryRun else []),
            f"--parallel={request.parallel}",
            request.info.entry_point,
            *request.args,
        ]

    def _finish(self, command: list[str], toolchain: Toolchain) -> None:
        """Runs a command in the program's folder, with its output in the engine's log.

        Raises:
            HostError: it failed.
        """
        with self.processes.running(
            command, cwd=toolchain.directory, environment=toolchain.environment(os.environ)
        ) as process:
            pass
        if process.returncode:
            raise HostError(f"`{' '.join(command)}` {ending(process.returncode)}")


def _variables(request: language_pb2.RunPluginRequest) -> dict[str, str]:
    return dict(variable.split("=", 1) for variable in request.env)


def _written(stream: Stream, chunk: bytes) -> language_pb2.RunPluginResponse:
    if stream == "stdout":
        return language_pb2.RunPluginResponse(stdout=chunk)
    return language_pb2.RunPluginResponse(stderr=chunk)


def _plugin_command(directory: Path, arguments: list[str]) -> list[str]:
    """The command for the plugin in a folder: its `__main__.py`, or the package in its pyproject.toml."""
    if (directory / "__main__.py").is_file():
        return [str(directory), *arguments]
    try:
        name = tomllib.loads((directory / "pyproject.toml").read_text())["project"]["name"]
    except (OSError, KeyError) as error:
        raise HostError(
            f"the plugin in {directory} cannot be run: it has neither a __main__.py nor a pyproject.toml with a name"
        ) from error
    return ["-m", "pulumi.run.plugin", name, *arguments]
