"""A workspace: projects, applications and their statuses, quotas, files. No network."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

SYSTEM = ("CDSW_APP_PORT", "CDSW_IP_ADDRESS")


class RefusedError(Exception):
    """The workspace refuses a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class App:
    """An application."""

    id: str
    project: str
    body: dict[str, Any]
    status: str = "APPLICATION_STARTING"
    since: float = field(default_factory=time.monotonic)

    @property
    def environment(self) -> Mapping[str, str]:
        return dict(self.body.get("environment") or {})

    def become(self, status: str) -> None:
        self.status, self.since = f"APPLICATION_{status}", time.monotonic()

    def shown(self) -> dict[str, Any]:
        """As the API returns it: the environment as a text."""
        return {
            **self.body,
            "id": self.id,
            "status": self.status,
            "environment": json.dumps(self.environment),
        }


class Runner(Protocol):
    """Runs what an application runs."""

    def start(self, app: App, files: Mapping[str, bytes], ended: Callable[[int], None]) -> None:
        """Starts its script; `ended` is called with the exit code."""

    def stop(self, app: App) -> None:
        """Ends it with all of its processes."""

    def written(self, project: str, path: str) -> bytes | None:
        """The content of a file that applications have written in the project's folder; None if there is none."""


@dataclass
class Limits:
    """What the workspace allows, and how long it takes."""

    gpus: int = 8
    cpus: float = 1000
    starting: float = 0.0
    """Seconds from STARTING to RUNNING."""
    stopping: float = 0.0
    """Seconds from a deletion until the application is no longer listed."""


class Workspace:
    """All of it, for several threads."""

    def __init__(self, runner: Runner, projects: tuple[str, ...], limits: Limits) -> None:
        self._runner, self.limits = runner, limits
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self.files: dict[str, dict[str, bytes]] = {project: {} for project in projects}
        self.apps: dict[str, App] = {}
        self.created = 0
        self.failed = 0
        """Applications that ended with an exit code other than 0."""

    def remove_project(self, project: str) -> None:
        """Deletes a project with its applications and files."""
        with self._lock:
            for app in [app for app in self.apps.values() if app.project == project]:
                self._runner.stop(app)
                del self.apps[app.id]
            del self.files[project]

    def applications(self, project: str) -> list[App]:
        with self._lock:
            self._known(project)
            self._advance()
            return [app for app in self.apps.values() if app.project == project]

    def application(self, project: str, id_: str) -> App:
        found = {app.id: app for app in self.applications(project)}
        if id_ not in found:
            raise RefusedError(404, f"application {id_} was not found")
        return found[id_]

    def create(self, project: str, body: dict[str, Any]) -> App:
        """Creates and starts an application, as the API does."""
        with self._lock:
            live = list(self.apps.values()) if self.applications(project) is not None else []
            missing = [key for key in ("name", "subdomain", "script", "cpu", "memory") if not body.get(key)]
            if missing:
                raise RefusedError(400, f"missing: {', '.join(missing)}")
            if any(app.body["subdomain"] == body["subdomain"] for app in live):
                raise RefusedError(409, f"subdomain {body['subdomain']} is already in use")
            if sum(app.body.get("nvidia_gpu") or 0 for app in live) + (body.get("nvidia_gpu") or 0) > self.limits.gpus:
                raise RefusedError(400, "GPU quota exceeded")
            if sum(app.body["cpu"] for app in live) + body["cpu"] > self.limits.cpus:
                raise RefusedError(400, "CPU quota exceeded")
            if body["script"] not in self.files[project]:
                raise RefusedError(400, f"script {body['script']} does not exist")
            number = next(self._numbers)
            app = App(f"app-{number:04}", project, {"runtime_identifier": "default", **body})
            self.apps[app.id] = app
            self.created += 1
            return app

    def read(self, project: str, path: str) -> bytes:
        """The content of a file, which was uploaded, or which an application has written."""
        self._known(project)
        if (found := self.files[project].get(path, self._runner.written(project, path))) is None:
            raise RefusedError(404, f"file {path} was not found")
        return found

    def delete(self, project: str, id_: str) -> None:
        app = self.application(project, id_)
        with self._lock:
            if app.status != "APPLICATION_STOPPING":
                self._runner.stop(app)
                app.become("STOPPING")
                self._advance()

    def fail(self, app: App) -> None:
        """Its pod dies."""
        with self._lock:
            self._runner.stop(app)
            app.become("FAILED")

    def running(self, subdomain: str) -> App | None:
        """The application that is served at a subdomain."""
        with self._lock:
            self._advance()
            live = (app for app in self.apps.values() if app.body["subdomain"] == subdomain)
            return next((app for app in live if app.status == "APPLICATION_RUNNING"), None)

    def _known(self, project: str) -> None:
        if project not in self.files:
            raise RefusedError(404, f"project {project} was not found")

    def _advance(self) -> None:
        now = time.monotonic()
        for app in list(self.apps.values()):
            if app.status == "APPLICATION_STARTING" and now - app.since >= self.limits.starting:
                app.become("RUNNING")
                self._runner.start(app, self.files[app.project], self._ended(app))
            elif app.status == "APPLICATION_STOPPING" and now - app.since >= self.limits.stopping:
                del self.apps[app.id]

    def _ended(self, app: App) -> Callable[[int], None]:
        def ended(code: int) -> None:
            with self._lock:
                if app.status == "APPLICATION_RUNNING":
                    app.become("FAILED" if code else "STOPPED")
                    self.failed += bool(code)

        return ended
