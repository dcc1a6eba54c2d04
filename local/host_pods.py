"""Runs the programs of Deployments on the host: what a kubelet would do for them, on nodes that are only simulated.

For each Deployment whose image is known here, the program of the same version is started once the Deployment is
there, with the arguments and environment of its container and a token of its ServiceAccount: nothing more, so a
permission that the stack forgot shows as it would on a real cluster. It is restarted when it ends, as a container is,
and when the Deployment changes; it is stopped when the Deployment goes or is scaled to zero.

It does not run more than one replica, mount volumes, or run probes.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml
from kubernetes import client, config, watch
from urllib3.exceptions import HTTPError

from local.control_plane import write_kubeconfig
from local.tools import KUBERAY, Tool

TOKEN_SECONDS = 24 * 3600
"""Asked of the TokenRequest API; renewed at 80 %, as kubelet does (pkg/kubelet/token)."""

LONGEST_BACKOFF = 60.0
"""Seconds. Kubelet waits up to 300; a rehearsal has somebody watching."""


@dataclass(frozen=True)
class HostProgram:
    """A program that stands for a container image.

    Fields: the `tool` that holds it, its `name` there, and `arguments` that are added last: its servers bind to free
    ports of loopback, and what a pod reads from its mounted files is said (`{namespace}`).
    """

    tool: Tool
    name: str
    arguments: tuple[str, ...]


PROGRAMS = {
    "kuberay/operator": HostProgram(
        KUBERAY,
        "ray-operator",
        (
            "--metrics-addr=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
            "--leader-election-namespace={namespace}",
        ),
    )
}
"""By the end of the image's repository, whatever registry or mirror it comes from."""


@dataclass
class HostPod:
    """What is told of a program to `make status`, in `<run>/host-pods.json`."""

    deployment: str
    image: str
    state: str = "Waiting"
    pid: int = 0
    restarts: int = 0
    reason: str = ""
    log: str = ""


@dataclass
class Running:
    """A Deployment that is being run."""

    shown: HostPod
    digest: str = ""
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    retry_at: float = 0.0
    backoff: float = 1.0
    token_until: float = 0.0
    token: Path = field(default_factory=Path)


def read_states(run: Path) -> list[HostPod]:
    """What host-pods last wrote of its programs; empty if it has not run."""
    file = run / "host-pods.json"
    return [HostPod(**entry) for entry in json.loads(file.read_text())] if file.is_file() else []


class HostPods:
    """Keeps the programs of known Deployments as the API server says they should be."""

    def __init__(self, run: Path) -> None:
        self._run = run
        kubeconfig = run / "kubeconfigs" / "host-pods"
        self._server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        api = config.new_client_from_config(str(kubeconfig))
        self._api, self._apps, self._core = api, client.AppsV1Api(api), client.CoreV1Api(api)
        self._running: dict[str, Running] = {}
        self._changed = threading.Event()
        self._stopping = False

    def serve(self) -> None:
        """Until a signal says stop: look after the programs at every change of a Deployment, and every second."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        threading.Thread(target=self._watch, daemon=True).start()
        while not self._stopping:
            try:
                self._reconcile()
            except (client.ApiException, HTTPError) as error:
                print(f"host-pods: {error}", flush=True)
            self._changed.wait(timeout=1.0)
            self._changed.clear()
        for running in self._running.values():
            _end(running)
        self._write()

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self._changed.set()

    def _watch(self) -> None:
        while True:
            try:
                for _ in watch.Watch().stream(self._apps.list_deployment_for_all_namespaces):
                    self._changed.set()
            except (client.ApiException, HTTPError):
                time.sleep(1.0)

    def _reconcile(self) -> None:
        wanted = {}
        deployments = self._api.sanitize_for_serialization(self._apps.list_deployment_for_all_namespaces())
        for item in deployments["items"]:
            program = program_of(_container(item)["image"])
            if program and item["spec"].get("replicas", 1) > 0 and "deletionTimestamp" not in item["metadata"]:
                wanted[f"{item['metadata']['namespace']}/{item['metadata']['name']}"] = (item, program)
        for key in self._running.keys() - wanted.keys():
            _end(self._running.pop(key))
        for key, (deployment, program) in wanted.items():
            self._keep(key, deployment, program)
        self._write()

    def _keep(self, key: str, deployment: dict[str, Any], program: HostProgram) -> None:
        image = _container(deployment)["image"]
        running = self._running.setdefault(key, Running(HostPod(key, image)))
        digest = hashlib.sha256(json.dumps(deployment["spec"]["template"], sort_keys=True).encode()).hexdigest()
        if digest != running.digest:
            _end(running)
            running.digest, running.retry_at, running.backoff = digest, 0.0, 1.0
            running.shown = HostPod(key, image, restarts=running.shown.restarts)
        version = image.partition("@")[0].rpartition(":")[2]
        if version != program.tool.version:
            running.shown.reason = (
                f"the Deployment wants {program.name} {version}, built is {program.tool.version}: "
                f"set the version in the stack file to {program.tool.version.removeprefix('v')}, "
                f"or pin another in {program.tool.source.relative_to(Path(__file__).parent.parent)}/go.mod"
            )
            return
        if running.process and running.process.poll() is not None:
            self._note_end(running)
        if running.process is None and time.monotonic() >= running.retry_at:
            self._start(key, deployment, program, running)
        elif running.process and time.monotonic() >= running.token_until:
            self._renew_token(deployment, running)

    def _note_end(self, running: Running) -> None:
        assert running.process is not None
        if time.monotonic() - running.started > 10 * LONGEST_BACKOFF:
            running.backoff = 1.0
        running.shown.state, running.shown.pid = "CrashLoopBackOff", 0
        running.shown.reason = f"ended with exit code {running.process.returncode}"
        running.process = None
        running.retry_at = time.monotonic() + running.backoff
        running.backoff = min(running.backoff * 2, LONGEST_BACKOFF)
        running.shown.restarts += 1

    def _start(self, key: str, deployment: dict[str, Any], program: HostProgram, running: Running) -> None:
        namespace = deployment["metadata"]["namespace"]
        folder = self._run / "host-pods" / key.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        running.token = folder / "token"
        try:
            self._renew_token(deployment, running)
        except client.ApiException as error:
            account = deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
            running.shown.reason = f"no token of ServiceAccount {namespace}/{account}: {error.reason}"
            running.retry_at = time.monotonic() + 1.0
            return
        write_kubeconfig(folder / "kubeconfig", self._run, self._server, {"tokenFile": str(running.token)})
        container = _container(deployment)
        log = self._run / "logs" / f"{deployment['metadata']['name']}.log"
        environment = {**_environment(container, deployment), "KUBECONFIG": str(folder / "kubeconfig")}
        arguments = [*container.get("args", []), *(text.format(namespace=namespace) for text in program.arguments)]
        with log.open("ab") as output:
            running.process = subprocess.Popen(
                [program.tool.program(program.name), *arguments],
                env={"PATH": os.environ["PATH"], **_marks(), **environment},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        running.started = time.monotonic()
        running.shown.state, running.shown.pid, running.shown.log = "Running", running.process.pid, str(log)
        running.shown.reason = ""

    def _renew_token(self, deployment: dict[str, Any], running: Running) -> None:
        account = deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
        request = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=TOKEN_SECONDS)
        )
        namespace = deployment["metadata"]["namespace"]
        answer = self._core.create_namespaced_service_account_token(account, namespace, request)
        assert answer.status is not None
        assert answer.status.token is not None
        # Written beside and moved, so that the client never reads half a token.
        fresh = running.token.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(answer.status.token)
        fresh.rename(running.token)
        running.token_until = time.monotonic() + 0.8 * TOKEN_SECONDS

    def _write(self) -> None:
        fresh = self._run / "host-pods.json.new"
        fresh.write_text(json.dumps([asdict(running.shown) for running in self._running.values()]))
        fresh.rename(self._run / "host-pods.json")


def program_of(image: str) -> HostProgram | None:
    """The program that stands for an image, by the end of its repository; None if it is not one of ours."""
    name = image.partition("@")[0]
    repository = name if "/" in name.rpartition(":")[2] else name.rpartition(":")[0] or name
    return next((program for end, program in PROGRAMS.items() if f"/{repository}".endswith(f"/{end}")), None)


def _container(deployment: Mapping[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def _environment(container: Mapping[str, Any], deployment: Mapping[str, Any]) -> dict[str, str]:
    fields = {
        "metadata.namespace": deployment["metadata"]["namespace"],
        "metadata.name": deployment["metadata"]["name"],
    }
    found = {}
    for entry in container.get("env", []):
        path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if path is None:
            found[entry["name"]] = entry.get("value", "")
        elif path in fields:
            found[entry["name"]] = fields[path]
    return found


def _marks() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_PLATFORM_")}


def _end(running: Running) -> None:
    if running.process is None or running.process.poll() is not None:
        return
    running.process.terminate()
    try:
        running.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
    running.process = None


if __name__ == "__main__":
    HostPods(Path(sys.argv[1])).serve()
