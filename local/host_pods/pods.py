"""Keeps the programs of Deployments running, as a kubelet does with containers."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError

from components.bodies import first_container
from local import paths
from local.control_plane import free_ports, write_kubeconfig
from local.host_pods import egress
from local.host_pods.container import Container, Deployment, account_of, key_of
from local.host_pods.programs import HostProgram, program_of
from local.host_pods.states import HostPod, write_states
from local.watching import AGAIN_SECONDS, changes

TOKEN_SECONDS = 24 * 3600
"""Requested of the TokenRequest API; renewed at 80 %, as kubelet does (pkg/kubelet/token)."""

LONGEST_BACKOFF = 60.0
"""Seconds. Kubelet waits up to 300; in a rehearsal somebody waits for it."""


Desired = dict[str, tuple[Deployment, HostProgram]]
"""Deployments that are to run, by their keys, with their programs."""


@dataclass
class Running:
    """A Deployment whose program runs."""

    shown: HostPod
    deployment: Deployment
    ports: dict[int, int]
    """Of loopback, by the ports of the pod that they replace."""
    digest: str = ""
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    retry_at: float = 0.0
    backoff: float = 1.0
    renew_at: float = 0.0
    """By the wall clock, as the token expires: the monotonic one stands still while the machine is suspended."""
    token: Path = field(default_factory=Path)


class HostPods:
    """Keeps the programs of known Deployments in line with the API server."""

    def __init__(self, run: Path) -> None:
        self._run = run
        kubeconfig = run / "kubeconfigs" / "host-pods"
        self._server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        api = config.new_client_from_config(str(kubeconfig))
        self._api, self._apps, self._core = api, client.AppsV1Api(api), client.CoreV1Api(api)
        self._running: dict[str, Running] = {}
        self._changed = changes(self._apps.list_deployment_for_all_namespaces)
        self._stopping = False

    def serve(self) -> None:
        """Reconciles the programs at every change of a Deployment, and every second, until a signal to stop."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        egress.serve(egress.socket(self._run), self._route)
        desired: Desired = {}
        while not self._stopping:
            try:
                if self._changed.is_set():
                    self._changed.clear()
                    desired = self._desired()
                self._reconcile(desired)
            except (client.ApiException, HTTPError) as error:
                print(f"host-pods: {error}", flush=True)
                time.sleep(AGAIN_SECONDS)
                self._changed.set()
            self._changed.wait(timeout=1.0)
        for running in self._running.values():
            if running.process:
                running.process.terminate()
        for running in self._running.values():
            _end(running)
        egress.socket(self._run).unlink(missing_ok=True)
        self._write()

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self._changed.set()

    def _route(self, address: str, port: int) -> int | None:
        """Where the program behind a Service listens, by the Service's clusterIP and port."""
        services = self._core.list_service_for_all_namespaces(field_selector=f"spec.clusterIP={address}")
        for service in self._api.sanitize_for_serialization(services)["items"]:
            targets = [each["targetPort"] for each in service["spec"]["ports"] if each["port"] == port]
            for running in list(self._running.values()):
                if targets and _behind(running.deployment, service):
                    return running.ports.get(targets[0])
        return None

    def _desired(self) -> Desired:
        desired: Desired = {}
        deployments = self._api.sanitize_for_serialization(self._apps.list_deployment_for_all_namespaces())
        for item in deployments["items"]:
            program = program_of(first_container(item)["image"])
            if program and item["spec"].get("replicas", 1) > 0 and "deletionTimestamp" not in item["metadata"]:
                desired[key_of(item)] = (item, program)
        return desired

    def _reconcile(self, desired: Desired) -> None:
        for key in self._running.keys() - desired.keys():
            _end(self._running.pop(key))
        for key, (deployment, program) in desired.items():
            self._keep(key, deployment, program)
        self._write()

    def _keep(self, key: str, deployment: Deployment, program: HostProgram) -> None:
        image = first_container(deployment)["image"]
        if key not in self._running:
            ports = dict(zip(program.serves, free_ports(), strict=False))
            self._running[key] = Running(HostPod(key, image, ports=ports), deployment, ports)
        running = self._running[key]
        digest = hashlib.sha256(json.dumps(deployment["spec"]["template"], sort_keys=True).encode()).hexdigest()
        if digest != running.digest:
            _end(running)
            running.deployment, running.digest, running.retry_at, running.backoff = deployment, digest, 0.0, 1.0
            running.shown = HostPod(key, image, restarts=running.shown.restarts, ports=running.ports)
        if reason := _unfit(image, program):
            running.shown.reason = reason
            return
        if running.process and running.process.poll() is not None:
            self._note_end(running)
        if running.process is None and time.monotonic() >= running.retry_at:
            self._start(key, deployment, program, running)
        elif running.process and time.time() >= running.renew_at:
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

    def _start(self, key: str, deployment: Deployment, program: HostProgram, running: Running) -> None:
        namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        folder = self._run / "host-pods" / key.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        running.token = folder / "token"
        container = Container(deployment, folder)
        try:
            self._renew_token(deployment, running)
            container.write_files(self._core, lambda file, text: program.adapted(file, text, running.ports))
        except client.ApiException as error:
            running.shown.reason = f"account {account_of(deployment)} or a file is missing: {_message(error)}"
            running.retry_at = time.monotonic() + 1.0
            return
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, self._run, self._server, {"tokenFile": str(running.token)})
        log = self._run / "logs" / f"{name}.log"
        further = program.further(str(kubeconfig), namespace, running.ports)
        with log.open("ab") as output:
            running.process = subprocess.Popen(
                [program.tool.program(program.name), *container.arguments(), *further],
                env={
                    "PATH": os.environ["PATH"],
                    **_marks(),
                    **container.environment(),
                    "KUBECONFIG": str(kubeconfig),
                },
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        running.started = time.monotonic()
        running.shown.state, running.shown.pid, running.shown.log = "Running", running.process.pid, str(log)
        running.shown.reason = ""

    def _renew_token(self, deployment: Deployment, running: Running) -> None:
        request = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=TOKEN_SECONDS)
        )
        namespace = deployment["metadata"]["namespace"]
        answer = self._core.create_namespaced_service_account_token(account_of(deployment), namespace, request)
        assert answer.status is not None
        assert answer.status.token is not None
        # Written to another file and renamed, so that the client never reads half a token.
        fresh = running.token.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(answer.status.token)
        fresh.rename(running.token)
        running.renew_at = time.time() + 0.8 * TOKEN_SECONDS

    def _write(self) -> None:
        write_states(self._run, (running.shown for running in self._running.values()))


def _unfit(image: str, program: HostProgram) -> str:
    """Why the program cannot run for that image here; empty if it can."""
    version, tool = image.partition("@")[0].rpartition(":")[2], program.tool
    if version != tool.version:
        return (
            f"the Deployment requires {program.name} {version}, but {tool.version} is built: "
            f"set the version in the stack file to {tool.version.removeprefix('v')}, "
            f"or pin another in {tool.source.relative_to(paths.ROOT)}/go.mod"
        )
    return "" if tool.installed else f"{tool.name} {version} is not installed yet: run `make up` once more"


def _behind(deployment: Deployment, service: Mapping[str, Any]) -> bool:
    """Whether a Service selects the pods of a Deployment."""
    labels, selector = deployment["spec"]["template"]["metadata"]["labels"], service["spec"].get("selector", {})
    same = deployment["metadata"]["namespace"] == service["metadata"]["namespace"]
    return same and bool(selector) and selector.items() <= labels.items()


def _message(error: client.ApiException) -> str:
    """The message in the API server's Status."""
    return str(json.loads(error.body)["message"]) if error.body else str(error.reason)


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
