"""A file in which jobs are collected, again and again: Ray forgets them, at the latest when its head is made anew."""

import csv
from collections.abc import Mapping
from pathlib import Path

from .jobs import COLUMNS, HistoryError, Job, parsed, playable

ID = "id"


def keep(file: Path, jobs: Mapping[str, Job]) -> list[Job]:
    """Adds jobs to those in a file, which need not be there yet. Returns all that it has then.

    A job that is there already is as long now as it says now. The file is whole at any moment, whatever happens.
    Raises HistoryError.
    """
    rows = {**(_rows(file) if file.exists() else {}), **{name: _row(name, job) for name, job in jobs.items()}}
    fresh = file.with_name(f"{file.name}.new")
    try:
        with fresh.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, [*COLUMNS, ID])
            writer.writeheader()
            writer.writerows(rows.values())
        fresh.replace(file)
    except OSError as error:
        raise HistoryError(f"{file}: cannot be written: {error.strerror}") from error
    return playable(str(file), parsed(file))


def _rows(file: Path) -> dict[str, dict[str, str]]:
    """By the jobs' ids."""
    parsed(file)
    with file.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.DictReader(stream)
        if ID not in (rows.fieldnames or ()):
            raise HistoryError(f"{file}: no column {ID}: what was not written by --save cannot be added to")
        return {row[ID]: {column: row[column] for column in (*COLUMNS, ID)} for row in rows}


def _row(name: str, job: Job) -> dict[str, str]:
    return {"gpus": str(job.gpus), "duration": f"{job.duration:.3f}", "arrival": f"{job.arrival:.3f}", ID: name}
