"""Past jobs from a CSV file."""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from core.files import replace_text

COLUMNS = ("gpus", "duration", "arrival")

MOST_JOBS = 20_000
"""A replay of this many takes some minutes."""


class HistoryError(Exception):
    """A file is not a history of jobs."""


@dataclass(frozen=True)
class Job:
    """One task of Ray. Times are in seconds."""

    gpus: int
    duration: float
    arrival: float


def read(file: Path) -> list[Job]:
    """The jobs with GPUs, in the order of their arrival. Raises HistoryError."""
    return playable(str(file), parsed(file))


def parsed(file: Path) -> list[Job]:
    """All jobs, in the order of the file.

    The first line names the columns, in any order: `gpus`, whole numbers; `duration` and `arrival` in seconds. Other
    columns are skipped. Raises HistoryError.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(stream)
            if missing := [column for column in COLUMNS if column not in (rows.fieldnames or ())]:
                raise HistoryError(
                    f"{file}: no column {', '.join(missing)}: the first line must be {','.join(COLUMNS)}"
                )
            return [_job(file, rows.line_num, row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise HistoryError(f"{file}: cannot be read: {reason}") from error


def playable(source: str, jobs: Iterable[Job]) -> list[Job]:
    """The jobs with GPUs, in the order of their arrival. Raises HistoryError if there are none, or too many."""
    found = sorted((job for job in jobs if job.gpus), key=lambda job: job.arrival)
    if not found:
        raise HistoryError(f"{source}: no job has GPUs, so no sizes can be chosen")
    if len(found) > MOST_JOBS:
        raise HistoryError(f"{source}: has {len(found)} jobs, at most {MOST_JOBS} are replayed: use a part of them")
    return found


def _job(file: Path, line: int, row: dict[str, str]) -> Job:
    for column in COLUMNS:
        number = _number(row[column])
        if number is None or (column == "gpus" and number != int(number)):
            allowed = "a whole number of GPUs" if column == "gpus" else "a number of seconds, 0 or more"
            raise HistoryError(f"{file}:{line}: {column} is {row[column]!r}: set {allowed}")
    return Job(int(float(row["gpus"])), float(row["duration"]), float(row["arrival"]))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


ID = "id"


def keep(file: Path, jobs: Mapping[str, Job]) -> list[Job]:
    """Adds jobs to those in a file, which may not exist yet. Returns all jobs of the file.

    An existing job gets its new duration. The file is replaced atomically.
    Raises HistoryError.
    """
    rows = {**(_rows(file) if file.exists() else {}), **{name: _row(name, job) for name, job in jobs.items()}}
    text = StringIO(newline="")
    writer = csv.DictWriter(text, [*COLUMNS, ID])
    writer.writeheader()
    writer.writerows(rows.values())
    try:
        replace_text(file, text.getvalue())
    except OSError as error:
        raise HistoryError(f"{file}: cannot be written: {error.strerror}") from error
    return playable(str(file), parsed(file))


def _rows(file: Path) -> dict[str, dict[str, str]]:
    """By the jobs' ids."""
    parsed(file)
    with file.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.DictReader(stream)
        if ID not in (rows.fieldnames or ()):
            raise HistoryError(f"{file}: no column {ID}: jobs can only be added to a file that --save has written")
        return {row[ID]: {column: row[column] for column in (*COLUMNS, ID)} for row in rows}


def _row(name: str, job: Job) -> dict[str, str]:
    return {"gpus": str(job.gpus), "duration": f"{job.duration:.3f}", "arrival": f"{job.arrival:.3f}", ID: name}
