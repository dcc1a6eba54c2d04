"""What the applications of the local workspace run: their script in a process, or a simulated Ray."""

import itertools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from aiohttp import web

from local.control_plane import free_ports
from testbed.cml.workspace import App

MARK = "LOCAL_CML_APPLICATION"
"""Variable by which all processes of an application are found: Ray starts some in sessions of their own."""


class Processes:
    """Runs each script as Cloudera ML does: in the project's folder, with an address and a port of its own.

    Addresses are of the loopback network, which needs no rights. Each application has its own temporary folder, as in a
    container.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], runtimes: Mapping[str, Path]) -> None:
        """`environment`: further variables, such as the proxy by which the workspace is reached. `runtimes`: the Python
        of each runtime that is not this one."""
        self._folder, self._environment, self.runtimes = folder, dict(environment), dict(runtimes)
        self._numbers = itertools.count(2)
        # Ray's sockets have paths of at most 107 characters.
        self.short = Path(tempfile.mkdtemp(prefix="cml"))
        """The temporary folders of all applications."""

    def allow(self, environment: Mapping[str, str]) -> None:
        """Adds variables that are known later."""
        self._environment |= environment

    def holders(self, value: str) -> list[list[str]]:
        """The command lines of all processes of applications that have a value in their environment."""
        found = ((each, _environment(each)) for each in psutil.process_iter())
        return [each.cmdline() for each, environment in found if MARK in environment and value in environment.values()]

    def log(self, app: App) -> Path:
        """Its output."""
        return self._folder / f"{app.id}.log"

    def start(self, app: App, files: Mapping[str, bytes], ended: Callable[[int], None]) -> None:
        number = next(self._numbers)
        home, temporary = self._folder / app.project, self.short / str(number)
        temporary.mkdir(parents=True)
        script = home / app.body["script"]
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_bytes(files[app.body["script"]])
        app.body["port"], app.body["address"] = next(free_ports()), f"127.0.0.{number}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "RAY_TMPDIR": str(temporary),
            MARK: app.id,
            "CDSW_IP_ADDRESS": app.body["address"],
            "CDSW_APP_PORT": str(app.body["port"]),
            **self._environment,
            **app.environment,
        }
        python = self.runtimes.get(app.body["runtime_identifier"], Path(sys.executable))
        with self.log(app).open("wb") as output:
            process = subprocess.Popen(
                [str(python), str(script)], cwd=home, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

        def wait() -> None:
            ended(process.wait())
            self.stop(app)

        threading.Thread(target=wait, daemon=True).start()

    def written(self, project: str, path: str) -> bytes | None:
        file = self._folder / project / path
        return file.read_bytes() if file.is_file() else None

    def stop(self, app: App) -> None:
        """Kills all of its processes, as the end of its container does."""
        while found := [each for each in psutil.process_iter() if _is_of(each, app)]:
            for each in found:
                with suppress(psutil.Error):
                    each.kill()
            psutil.wait_procs(found, 5)


def _is_of(process: psutil.Process, app: App) -> bool:
    return _environment(process).get(MARK) == app.id


def _environment(process: psutil.Process) -> dict[str, str]:
    """The environment with which a process has started; empty for a zombie, and for one that has ended."""
    try:
        return {} if process.status() == psutil.STATUS_ZOMBIE else process.environ()
    except psutil.Error:
        return {}


class Simulated:
    """A simulated Ray: a node joins when its application runs, and has tasks if the test gives it some.

    It proves what a stack does at faults of the API, and nothing about Ray.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        """By the head's name in Cloudera ML: the states of its nodes."""
        self.busy: set[str] = set()
        """Names of nodes that never become idle."""
        self.lost: list[str] = []
        """Nodes that were stopped while they had tasks."""
        self.configs: dict[str, dict[str, Any]] = {}
        """By the head's name: the Serve config that it got last."""
        self.statuses: dict[str, str] = {}
        """By the names of applications of Serve: other statuses than RUNNING."""
        self.has_serve = True
        """Whether the runtime has Ray Serve."""

    def work(self, node: str) -> None:
        """A node gets a task that does not end."""
        self.busy.add(node)
        for states in self.nodes.values():
            if states.get(node) == "IDLE":
                states[node] = "RUNNING"

    def finish(self) -> None:
        """All tasks end."""
        for states in self.nodes.values():
            for node in self.busy & states.keys():
                states[node] = {"RUNNING": "IDLE", "DRAINING": "DEAD"}.get(states[node], states[node])
        self.busy.clear()

    @staticmethod
    def _cluster(app: App) -> str:
        return str(app.body["name"].rpartition(".")[0])

    def start(self, app: App, files: Mapping[str, bytes], ended: Callable[[int], None]) -> None:
        node = app.environment["RAY_CLOUD_INSTANCE_ID"]
        if node.startswith("head."):
            self.nodes[self._cluster(app)] = {}
            self.configs.pop(self._cluster(app), None)
        self.nodes.setdefault(self._cluster(app), {})[node] = "RUNNING" if node in self.busy else "IDLE"

    def stop(self, app: App) -> None:
        node = app.environment["RAY_CLOUD_INSTANCE_ID"]
        states = self.nodes.get(self._cluster(app), {})
        if states.get(node) in ("RUNNING", "DRAINING") and node in self.busy:
            self.lost.append(node)
        if node in states:
            states[node] = "DEAD"

    def written(self, project: str, path: str) -> bytes | None:
        return None

    async def serve(self, app: App, request: web.Request) -> web.StreamResponse:
        """Answers as cml_application's Front."""
        if request.headers.get("Authorization") != f"Bearer {app.environment['RAY_AUTH_TOKEN']}":
            return web.Response(status=401)
        if request.path == "/api/serve/applications/":
            return await self._serve(self._cluster(app), request)
        if request.path == "/api/v0/logs/file":
            return web.Response(text=f"{request.query['filename']} at {request.query['node_ip']}\n")
        states = self.nodes.get(self._cluster(app), {})
        before, accepted = dict(states), []
        desired = (await request.json())["drain"] if request.method == "POST" else {}
        for node, until in desired.items():
            if (node in self.busy and until is None) or node not in states:
                continue
            accepted.append(node)
            states[node] = "DRAINING" if node in self.busy else "DEAD"
        return web.json_response({"nodes": before, "accepted": accepted, "address": "127.0.0.1:6379"})

    async def _serve(self, cluster: str, request: web.Request) -> web.StreamResponse:
        """Answers as Ray's dashboard. With `refused` among the applications it refuses a config."""
        if not self.has_serve:
            return web.Response(status=501, text="Serve dependencies are not installed.")
        if request.method == "PUT":
            config = await request.json()
            if any(each["name"] == "refused" for each in config["applications"]):
                return web.Response(status=400, text="a config of that name is refused")
            self.configs[cluster] = config
        applications = self.configs.get(cluster, {"applications": []})["applications"]
        statuses = {each["name"]: self.statuses.get(each["name"], "RUNNING") for each in applications}
        return web.json_response(
            {
                "applications": {
                    each["name"]: {
                        "status": statuses[each["name"]],
                        "message": f"{each['name']} cannot start" if statuses[each["name"]] != "RUNNING" else "",
                        "deployed_app_config": each,
                        "deployments": {},
                    }
                    for each in applications
                }
            }
        )
