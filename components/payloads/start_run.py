"""Starts a run of a job template, and deletes old ones. Runs in the pods of a schedule, with Python alone.

Its settings are environment variables (job_template/manifests.py). Its rights are those of the pod's ServiceAccount:
the API server admits only runs that equal the template.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

Body = dict[str, Any]
"""An object as the API server returns it."""

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts the token of the account, and the certificate authority of the API server."""

SECONDS = 30.0
"""Timeout of a request."""

GONE, EXISTS = 404, 409
"""Answers to a deletion or creation that somebody, or an earlier try, has done already."""


class _Stays(HTTPRedirectHandler):
    """A redirection is an error: its target must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        """No other request."""


class Api:
    """The RayJobs and RayCronJobs of a namespace."""

    def __init__(self, server: str, namespace: str, account: Path) -> None:
        self._url = f"{server}/apis/ray.io/v1/namespaces/{namespace}"
        self._account = account
        authority = account / "ca.crt"
        secure = ssl.create_default_context(cafile=str(authority)) if server.startswith("https") else None
        # A proxy of the image's environment does not know the API server by this name.
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=secure), _Stays)

    def ask(self, method: str, path: str, body: Body | None = None) -> Body:
        """The answer. Raises HTTPError, whose body has the reason of a refusal; OSError or ValueError without one."""
        token = (self._account / "token").read_text().strip()
        request = Request(  # noqa: S310 (the API server's URL)
            f"{self._url}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json"},
            method=method,
        )
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                found: Body = json.load(answer)
        except HTTPException as error:
            raise OSError(repr(error)) from error
        return found


def start(api: Api, settings: dict[str, str]) -> None:
    """One time of the schedule."""
    template = api.ask("GET", f"raycronjobs/{settings['TEMPLATE']}")
    listed = api.ask("GET", f"rayjobs?labelSelector={settings['SELECTOR']}")["items"]
    own = [each for each in listed if _author(each, settings) == settings["AUTHOR"]]
    run = _run(template, settings)
    running = [each for each in own if not _ended(each) and _name(each) != _name(run)]
    if running and settings["CONCURRENCY"] == "Forbid":
        print(f"skipped: {', '.join(map(_name, running))} has not ended")
    else:
        for each in running if settings["CONCURRENCY"] == "Replace" else ():
            _delete(api, each, "replaced")
        _create(api, run)
    _forget(api, [each for each in own if _ended(each)], settings)


def _run(template: Body, settings: dict[str, str]) -> Body:
    """The RayJob; its name is the same for all tries of one time."""
    metadata, spec = template["metadata"], template["spec"]["jobTemplate"]
    letters, number = settings["LETTERS"], int(hashlib.sha256(settings["TIME"].encode()).hexdigest(), 16)
    suffix = "".join(letters[number // len(letters) ** place % len(letters)] for place in range(5))
    annotations = {**(metadata.get("annotations") or {}), settings["ANNOTATION"]: settings["AUTHOR"]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": f"{metadata['name']}-{suffix}",
            "labels": metadata["labels"],
            "annotations": annotations,
        },
        "spec": {**spec, "entrypoint": " ".join([spec["entrypoint"], *settings["ARGUMENTS"].split()])},
    }


def _create(api: Api, run: Body) -> None:
    with _done_already(EXISTS):
        api.ask("POST", "rayjobs", run)
    print(f"started: {_name(run)}")


def _forget(api: Api, ended: list[Body], settings: dict[str, str]) -> None:
    """Deletes the oldest runs beyond the limits."""
    newest_first = sorted(ended, key=lambda each: str(each["metadata"]["creationTimestamp"]), reverse=True)
    for succeeded, kept in ((True, "SUCCESSFUL"), (False, "FAILED")):
        for each in [each for each in newest_first if _succeeded(each) == succeeded][int(settings[kept]) :]:
            _delete(api, each, "forgotten")


def _delete(api: Api, job: Body, why: str) -> None:
    with _done_already(GONE):
        api.ask("DELETE", f"rayjobs/{_name(job)}?propagationPolicy=Background")
    print(f"{why}: {_name(job)}")


@contextmanager
def _done_already(code: int) -> Iterator[None]:
    try:
        yield
    except HTTPError as error:
        if error.code != code:
            raise


def _name(job: Body) -> str:
    return str(job["metadata"]["name"])


def _author(job: Body, settings: dict[str, str]) -> str | None:
    author: str | None = (job["metadata"].get("annotations") or {}).get(settings["ANNOTATION"])
    return author


def _ended(job: Body) -> bool:
    """Whether the job runs no more (rayjob_types.go: IsJobDeploymentTerminal; rayjob_controller.go: Reconcile)."""
    return (job.get("status") or {}).get("jobDeploymentStatus") in ("Complete", "Failed", "ValidationFailed")


def _succeeded(job: Body) -> bool:
    return (job.get("status") or {}).get("jobStatus") == "SUCCEEDED"


def main(account: Path = ACCOUNT) -> int:
    """Exit code 0: started, or skipped; 1: refused, with the reason."""
    settings = dict(os.environ)
    try:
        start(Api(settings["SERVER"], settings["NAMESPACE"], account), settings)
    except HTTPError as error:
        print(f"the API server refuses: {error.code} {error.read().decode(errors='replace')}")
        return 1
    except (OSError, ValueError) as error:
        print(f"the API server does not answer: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
