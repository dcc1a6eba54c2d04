"""Submits, follows and stops a job through the jobs API of Ray's dashboard."""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from components.cml.client import CmlError, proxy, tls
from components.payloads.run_history.redaction import Redaction
from components.run_history.manifests import redaction

PAUSE_SECONDS = 2.0
STOP_SECONDS = 60.0
"""For Ray to end the processes of a job that is stopped."""

OVER = ("SUCCEEDED", "FAILED", "STOPPED")
"""Statuses of a job that has ended (ray, dashboard/modules/job/common.py: JobStatus)."""

UNKNOWN = "UNKNOWN"
"""Status of a job that the cluster does not list any more, because its head has started again."""

_ABSENT = "does not exist"
"""In Ray's answer for a job that it does not have (job_head.py: get_job_info)."""

_TOKEN = re.compile(r"[!-~]+")
"""What a header can have after `Bearer`: no text with a break, which httpx would show in its error."""

_LATER = (429, 502, 503, 504)
"""Answers of what is between this machine and Ray, while it starts or is overloaded."""

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_LONGEST_MESSAGE = 1000

T = TypeVar("T")

Report = Callable[[str], None]


class RemoteJobError(Exception):
    """The job was not submitted, or has failed. The message has what to do, and no token."""


class UnreachableError(RemoteJobError):
    """The cluster does not answer."""


@dataclass(frozen=True)
class Found:
    """A job, as Ray lists it."""

    status: str
    message: str

    @property
    def over(self) -> bool:
        return self.status in OVER

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


LOST = Found(UNKNOWN, "the cluster does not list it any more: its head has started again")


class Jobs:
    """The jobs API of a cluster. Every method raises RemoteJobError."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        """`target`: manifests.target. Raises RemoteJobError, also if the variable with the token is not set."""
        self.cluster, self._address = target["cluster"], target["address"]
        self._variable, self._seconds = target["tokenVariable"], float(target["seconds"])
        self._token = target["token"] or (os.environ.get(self._variable, "").strip() if self._variable else "")
        if self._variable and not self._token:
            raise RemoteJobError(
                f"the environment has no {self._variable} with the token of Ray cluster {self.cluster}: export it, and "
                "run the command again"
            )
        if self._token and not _TOKEN.fullmatch(self._token):
            raise RemoteJobError(f"{self._variable} has a space or a letter that no token has: copy it again")
        secure = self._address.startswith("https")
        try:
            transport = httpx.HTTPTransport(
                verify=tls(target["caFile"]) if secure else True, proxy=proxy(self._address)
            )
        except CmlError as error:
            raise RemoteJobError(str(error)) from None
        self._http = httpx.Client(
            base_url=self._address,
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            timeout=_TIMEOUT,
            transport=transport,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def find(self, job: str) -> Found | None:
        """The job of that ID; None if Ray does not have it."""
        answer = self._ask("GET", f"/api/jobs/{quote(job)}")
        if answer.status_code == HTTPStatus.NOT_FOUND and _ABSENT in answer.text:
            return None
        return self._read(answer, _found)

    def listed(self) -> list[dict[str, Any]]:
        """All jobs that Ray has, in its own words."""
        return self._read(self._ask("GET", "/api/jobs/"), lambda jobs: [dict(each) for each in jobs])

    def log(self, job: str) -> str:
        """The log of a job's driver."""
        return self._read(self._ask("GET", f"/api/jobs/{quote(job)}/logs"), lambda body: str(body["logs"]))

    def submit(self, job: str, body: Mapping[str, Any], show: Report) -> Found:
        """Submits a job, unless Ray has one with that ID: an `up` before has submitted it. Tries until the cluster
        answers, for the time in the target."""
        deadline, shown = time.monotonic() + self._seconds, ""
        while True:
            try:
                if found := self.find(job):
                    return found
                answer = self._ask("POST", "/api/jobs/", json={**body, "submission_id": job})
                if answer.is_success:
                    return Found("PENDING", "")
                # A try before this one, whose answer was lost, may have submitted it.
                if found := self.find(job):
                    return found
            except UnreachableError as error:
                if time.monotonic() > deadline:
                    raise
                if str(error) != shown:
                    show(str(error))
                shown = str(error)
                time.sleep(PAUSE_SECONDS)
            else:
                raise RemoteJobError(f"Ray cluster {self.cluster} refuses the job: {_short(answer.text)}")

    def wait(self, job: str, stage: str, seconds: float, show: Report) -> Found:
        """Waits until the job is `running` or has `succeeded`. Raises RemoteJobError if it fails, or not in time."""
        deadline, shown = time.monotonic() + seconds, ""
        while True:
            try:
                found = self.find(job) or LOST
                state = str(found)
                if found.status == "SUCCEEDED" or (stage == "running" and found.status == "RUNNING"):
                    return found
                if found.over or found.status == UNKNOWN:
                    raise RemoteJobError(
                        f"job {job} on Ray cluster {self.cluster} is {found}. {self._log_of(job)}. "
                        "To submit it again, correct it or set another runId"
                    )
            except UnreachableError as error:
                state = str(error)
            if time.monotonic() > deadline:
                raise RemoteJobError(
                    f"job {job} on Ray cluster {self.cluster} is not {stage} after {seconds:.0f} s, and continues: "
                    f"{state}. Set a longer waitTimeout, or run `pulumi up` again, which submits nothing. "
                    f"{self._log_of(job)}"
                )
            if state != shown:
                show(f"job {job} on Ray cluster {self.cluster}: {state}")
            shown = state
            time.sleep(PAUSE_SECONDS)

    def stop(self, job: str) -> None:
        """Stops a job that has not ended, and waits for its end."""
        deadline, found = time.monotonic() + STOP_SECONDS, self.find(job)
        if found is None or found.over:
            return
        self._ask("POST", f"/api/jobs/{quote(job)}/stop")
        while (found := self.find(job)) and not found.over:
            if time.monotonic() > deadline:
                raise RemoteJobError(
                    f"job {job} on Ray cluster {self.cluster} is {found.status} {STOP_SECONDS:.0f} s after it was "
                    "told to stop: run the command again"
                )
            time.sleep(PAUSE_SECONDS)

    @property
    def _where(self) -> str:
        return f"Ray cluster {self.cluster} at {self._address}"

    def _log_of(self, job: str) -> str:
        return f"Its log: `ray job logs --address {self._address} {job}`"

    def _read(self, answer: httpx.Response, read: Callable[[Any], T]) -> T:
        """What `read` makes of the JSON of an answer. Raises UnreachableError if it is not one of Ray."""
        if answer.is_success:
            with suppress(ValueError, KeyError, TypeError):
                return read(answer.json())
        raise self._strange(answer)

    def _strange(self, answer: httpx.Response) -> UnreachableError:
        return UnreachableError(
            f"{self._where} answers {answer.status_code}, and not as Ray's jobs API: {_short(answer.text)}. Is it "
            "running, and is this the address of its dashboard?"
        )

    def _ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(
                f"{self._where} does not answer ({error or type(error).__name__}): is it running, and can this machine "
                "reach it?"
            ) from None
        if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            source = f"correct {self._variable}" if self._variable else "set its tokenVariable"
            fix = source if self._variable or not self._token else "run `pulumi refresh` and `pulumi up`"
            what = "refuses the token" if self._token else "requires a token"
            raise RemoteJobError(f"{self._where} {what} ({answer.status_code}): {fix}")
        if answer.status_code in _LATER:
            raise self._strange(answer)
        return answer


def _found(body: Mapping[str, Any]) -> Found:
    # The message has the end of the log, and is written into the state.
    return Found(body["status"], _short(Redaction(**redaction()).text(body.get("message") or "")))


def _short(text: str) -> str:
    """A text in a line; of a long one its end, where Ray has the last lines of the log, and of a traceback of Ray the
    error."""
    lines = text.strip().splitlines()
    line = " ".join((lines[-1] if text.startswith("Traceback") else text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"... {line[-_LONGEST_MESSAGE:]}"
