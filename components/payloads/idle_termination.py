"""Runs in a pod of a tenant's namespace with the Python of Ray's image: suspends RayClusters that nobody uses, and
wakes them for RayJobs that wait for them.

The stack imports only its names. It uses the standard library alone, of Python 3.9 or newer, because Ray's images have
no client of Kubernetes. Its argument is JSON: {"namespace": name, "clusters": [{"name", "url" of the dashboard,
"timeoutSeconds", "tokenFile" or null}]}.

What cannot be read counts as use, as in Ray's own idle termination.
"""

from __future__ import annotations

import calendar
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

Body = Any
"""An object as the API server or Ray returns it."""

NAME = "ray-idle-termination"
"""Name of the Deployment and of its ServiceAccount."""

FIELD_MANAGER = "ray-platform-idle-termination"
"""Owner of `spec.suspend` of a RayCluster that rests: the API server records it with the time."""

LOOK_SECONDS = 10
"""Between two looks."""

TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 (a path)
_CA_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

_SECONDS = 20
"""Within which a server has to answer."""

_INTERNAL = "_ray_internal"
"""Prefix of namespaces of Ray's own drivers and actors (ray/_private/ray_constants.py)."""

_MOST_ACTORS = 10000
"""The most that Ray lists (RAY_MAX_LIMIT_FROM_API_SERVER in ray/util/state/common.py)."""

_ACTORS = f"/api/v0/actors?limit={_MOST_ACTORS}&filter_keys=state&filter_predicates=!%3D&filter_values=DEAD"
_ACTIVITIES, _JOBS = "/api/component_activities", "/api/jobs/"

_ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
"""Final states of a submitted job (ray/dashboard/modules/job/common.py: JobStatus.is_terminal)."""

_NO_CLUSTER_NEEDED = ("Complete", "Failed", "ValidationFailed", "Suspending", "Suspended")
"""States of a RayJob that needs no RayCluster (ray-operator/apis/ray/v1/rayjob_types.go: JobDeploymentStatus)."""


@dataclass(frozen=True)
class Use:
    """Who uses a RayCluster."""

    why: str
    """Empty: nobody."""

    until: float = 0
    """End of the last use that Ray knows, in seconds since 1970."""


@dataclass(frozen=True)
class Verdict:
    """What to do with a RayCluster."""

    line: str
    """For the log."""

    suspend: bool | None = None
    """The value of `spec.suspend` to write; None: leave it."""

    starts: bool = False
    """Whether its idle time starts now: it is used, or not ready yet. By this pod's clock, which may be minutes from
    those of Ray and the API server."""


def use(activities: Body, jobs: Body, actors: Body) -> Use:
    """Who uses a RayCluster, by the answers of its dashboard.

    Components are Ray's drivers, and those of RAY_CLUSTER_ACTIVITY_HOOK. An actor that is alive without a driver is a
    detached one, such as those of Ray Serve.
    """
    why = [
        f"{name}: {each.get('reason') or each.get('is_active')}"
        for name, each in activities.items()
        if each.get("is_active") != "INACTIVE"
    ]
    submitted = [each for each in jobs if each.get("type") == "SUBMISSION"]
    why += [f"job {each['submission_id']} is {each['status']}" for each in submitted if each["status"] not in _ENDED]
    alive = [each for each in actors if not (each.get("ray_namespace") or "").startswith(_INTERNAL)]
    if alive:
        first = alive[0]
        why.append(f"{len(alive)} actors, such as {first.get('class_name')} in namespace {first.get('ray_namespace')}")
    elif len(actors) >= _MOST_ACTORS:
        why.append(f"more actors than Ray lists ({_MOST_ACTORS})")
    ends = [float(each.get("last_activity_at") or 0) for each in activities.values()]
    ends += [(each.get("end_time") or 0) / 1000 for each in submitted]
    return Use(", ".join(why), max(ends, default=0))


def job_that_waits(rayjobs: Iterable[Body], cluster: str) -> str:
    """Name of a RayJob that runs on this RayCluster or waits for it; empty if there is none."""
    for each in rayjobs:
        spec, status = each["spec"], each.get("status") or {}
        selected = (spec.get("clusterSelector") or {}).get("ray.io/cluster") == cluster
        if selected and not spec.get("suspend") and status.get("jobDeploymentStatus") not in _NO_CLUSTER_NEEDED:
            return str(each["metadata"]["name"])
    return ""


def rests_since(cluster: Body) -> str | None:
    """Time since which a RayCluster is suspended by this program; None if it is not, or somebody else suspended it."""
    if not cluster["spec"].get("suspend"):
        return None
    for entry in cluster["metadata"].get("managedFields") or ():
        if entry.get("manager") == FIELD_MANAGER and "f:suspend" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return str(entry["time"])
    return None


def verdict(
    cluster: Body | None, timeout: float, job: str, last_seen_used: float, now: float, ask: Callable[[], Use]
) -> Verdict:
    """What to do with a RayCluster.

    `cluster`: None if it does not exist. `job`: a RayJob that needs it. `last_seen_used`: when it was used, by an
    earlier look. `ask`: asks its Ray.
    """
    if cluster is None or cluster["metadata"].get("deletionTimestamp"):
        return Verdict("does not exist")
    if cluster["spec"].get("suspend"):
        since = rests_since(cluster)
        if since and job:
            return Verdict(f"is woken for RayJob {job}", suspend=False)
        return Verdict(f"has been resting since {since}" if since else "is suspended by somebody else", starts=True)
    ready = _ready_since(cluster)
    if ready is None:
        return Verdict("its head is not ready", starts=True)
    if job:
        return Verdict(f"is used: RayJob {job}", starts=True)
    try:
        found = ask()
    except Exception as error:  # of an unknown answer, too: a used cluster must not be suspended
        return Verdict(f"counts as used, because Ray cannot be asked: {error!r}", starts=True)
    if found.why:
        return Verdict(f"is used: {found.why}", starts=True)
    idle = now - max(ready, found.until, last_seen_used)
    if idle < timeout:
        return Verdict(f"is suspended once it has been idle for {timeout:.0f} seconds")
    return Verdict(f"is suspended: idle for {idle:.0f} seconds", suspend=True)


def _ready_since(cluster: Body) -> float | None:
    """When the head became ready; None if it is not."""
    for each in (cluster.get("status") or {}).get("conditions") or ():
        if each["type"] == "HeadPodReady" and each["status"] == "True":
            return calendar.timegm(time.strptime(each["lastTransitionTime"], "%Y-%m-%dT%H:%M:%SZ"))
    return None


@dataclass
class Controller:
    """Looks at the RayClusters of a namespace, and writes what is decided."""

    url: str
    """Of the namespace's `ray.io/v1` objects."""

    clusters: Iterable[Body]
    last_used: dict[str, float] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def look(self) -> None:
        """One look at all of them. What fails is reported, and tried again at the next."""
        try:
            rayjobs = _ask(f"{self.url}/rayjobs", TOKEN_FILE)["items"]
        except (OSError, ValueError) as error:
            self._show("RayJobs", f"cannot be read: {error}")
            return
        for each in self.clusters:
            try:
                self._decide(each, rayjobs)
            except (OSError, ValueError) as error:
                self._show(f"RayCluster {each['name']}", f"cannot be read or changed: {error}")

    def _decide(self, each: Body, rayjobs: Iterable[Body]) -> None:
        name, now = each["name"], time.time()
        url = f"{self.url}/rayclusters/{name}"
        cluster = _found(url)
        job, seen = job_that_waits(rayjobs, name), self.last_used.get(name, 0)
        found = verdict(
            cluster, each["timeoutSeconds"], job, seen, now, lambda: in_use(each["url"], each["tokenFile"], _ask)
        )
        if found.starts:
            self.last_used[name] = now
        if cluster is not None and found.suspend is not None:
            # With the version that the verdict is based on, any change since refuses the patch.
            version = {"resourceVersion": cluster["metadata"]["resourceVersion"]}
            change = {"metadata": version, "spec": {"suspend": found.suspend}}
            _ask(
                f"{url}?fieldManager={FIELD_MANAGER}",
                TOKEN_FILE,
                method="PATCH",
                data=json.dumps(change).encode(),
                headers={"Content-Type": "application/merge-patch+json"},
            )
            # Its time starts again: if somebody wakes it at once, its old head still answers.
            self.last_used[name] = now
        self._show(f"RayCluster {name}", found.line)

    def _show(self, about: str, line: str) -> None:
        if self.shown.get(about) != line:
            self.shown[about] = line
            sys.stdout.write(f"{about} {line}\n")
            sys.stdout.flush()


def in_use(url: str, token_file: str | None, ask: Callable[[str, str | None], Body]) -> Use:
    """Who uses the RayCluster with this dashboard."""
    actors = ask(url + _ACTORS, token_file)["data"]["result"]
    if actors.get("partial_failure_warning"):
        raise ValueError(actors["partial_failure_warning"])
    return use(ask(url + _ACTIVITIES, token_file), ask(url + _JOBS, token_file), actors["result"])


def _found(url: str) -> Body | None:
    from urllib.error import HTTPError

    try:
        return _ask(url, TOKEN_FILE)
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise


def _ask(url: str, token_file: str | None, **request: Any) -> Body:
    """The JSON of an answer. Raises OSError or ValueError.

    Neither a proxy of the image's environment nor the target of a redirection gets the request, with its token.
    """
    # Imported here: commands of the stack import this file, and start quickly.
    import ssl
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

    class Stays(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    asked = Request(url, **request)  # noqa: S310 (a URL of the stack or of the API server)
    if token_file:
        asked.add_header("Authorization", f"Bearer {Path(token_file).read_text().strip()}")
    secure = ssl.create_default_context(cafile=_CA_FILE) if url.startswith("https:") else None
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=secure), Stays)
    try:
        with opener.open(asked, timeout=_SECONDS) as answer:
            return json.load(answer)
    except HTTPException as error:
        raise OSError(repr(error)) from error


def _api_server(environment: Mapping[str, str]) -> str:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _run(configured: Body) -> None:
    # The first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    url = f"{_api_server(os.environ)}/apis/ray.io/v1/namespaces/{configured['namespace']}"
    controller = Controller(url, configured["clusters"])
    while True:
        controller.look()
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    _run(json.loads(sys.argv[1]))
