"""What is recorded of a job that has no RayJob, as the head of its cluster describes it. Pure functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .record import AUTHOR_ANNOTATION, VERSION, text
from .redaction import Redaction

Body = Any
"""An object as Ray returns it, or a record."""

SUBMISSION = "SUBMISSION"
"""Type of a job that was sent to the jobs API; the other one is DRIVER (ray/dashboard/modules/job/pydantic_models.py:
JobType)."""

_ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
"""Final states (ray/dashboard/modules/job/common.py: JobStatus.is_terminal)."""

_LONGEST = 253
"""Characters of an ID and of other short texts. People's code decides what a head answers."""

_CLOCKS = 3600
"""Seconds by which a head's clock may be ahead."""

_LONGEST_TEXT = 1024
"""Characters of entrypoint, runtime environment and message. Thousands of records are in memory."""

_YEAR_10000 = 253_402_300_800
"""In seconds since 1970; records have years of four digits."""

SHARED = "GPU-hours, because others may use the cluster at the same time"
"""Why a record lacks them."""

OF_A_DRIVER = "the log and the exit code, which Ray keeps of submitted jobs alone: it calls each ended driver SUCCEEDED"


@dataclass(frozen=True)
class Listed:
    """A job of a head's list."""

    id: str
    """By which Ray is asked: that of its submission, or of its driver."""

    began: str
    ended: str | None
    """None: it runs."""

    job: Body

    @property
    def identity(self) -> str:
        """Differs from that of every other job of the cluster. A head that starts again counts its drivers from 1
        again, so it has the time, too."""
        return json.dumps([self.id, self.job["start_time"]])


def listed(job: Body, now: float) -> Listed:
    """Reads what identifies a job. Raises ValueError, or what else follows from an answer of another form."""
    found = job["submission_id"] if job["type"] == SUBMISSION else job["job_id"]
    if not isinstance(found, str) or not 0 < len(found) <= _LONGEST:
        raise ValueError(f"an ID has between 1 and {_LONGEST} characters")
    ended = _time(job.get("end_time") or now * 1000) if job["status"] in _ENDED else None
    if job["start_time"] / 1000 > now + _CLOCKS:
        raise ValueError("a job of the future would be the newest of all")
    return Listed(found, _time(job["start_time"]), ended, job)


def facts(found: Listed, redact: Redaction) -> dict[str, Any]:
    """The fields of a record that the head's answer determines. Raises as `listed` does."""
    job = found.job
    metadata, code, error = job.get("metadata") or {}, job.get("driver_exit_code"), job.get("error_type")
    environment = json.dumps(job.get("runtime_env") or {})
    author = metadata.get(AUTHOR_ANNOTATION) or metadata.get("user")
    return {
        "version": VERSION,
        "name": found.id,
        "uid": None,
        "template": None,
        "size": None,
        "author": redact.text(str(author))[:_LONGEST] if author else None,
        "entrypoint": redact.command(str(job.get("entrypoint") or ""))[:_LONGEST_TEXT],
        "runtimeEnv": (redact.settings(environment) or None) if len(environment) <= _LONGEST_TEXT else None,
        "submissionMode": SUBMISSION if job["type"] == SUBMISSION else "DRIVER",
        "created": found.began,
        "started": found.began,
        "startedInRay": found.began,
        "ended": found.ended,
        "status": str(job["status"])[:_LONGEST],
        "deploymentStatus": "",
        "reason": "",
        "message": redact.text(str(job.get("message") or ""))[:_LONGEST_TEXT],
        "failed": int(job["status"] == "FAILED"),
        "exitCode": code if isinstance(code, int) else None,
        "errorType": str(error)[:_LONGEST] if error else None,
        "gpuHours": None,
        "lastSeen": None,
    }


def _time(milliseconds: Any) -> str:
    if not 0 <= milliseconds / 1000 < _YEAR_10000:
        raise ValueError(f"{milliseconds} is not a time")
    return text(milliseconds / 1000)
