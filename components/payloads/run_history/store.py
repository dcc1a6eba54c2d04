"""The folder with the records: one folder for each run, named after the RayJob and its UID.

team-a/finetune-x7k2p.0c1d…/record.json   what is known of the run, with its pods and events
                           /attempt-1.log  the end of the driver's log, of each attempt
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .record import seconds

Body = Any

RECORD = "record.json"

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


DETAILS = ("pods", "events", "rayEvents", "runtimeEnv")
"""Fields that only a record by itself has. Those of complete records are not kept in memory."""


class Store:
    """The records of a namespace."""

    def __init__(self, folder: Path) -> None:
        """Reads what is in the folder. What cannot be read, or is no record, is left alone: others may write there."""
        self._folder = folder
        self.records: dict[str, Body] = {}
        """By the name of the run's folder; complete ones without their details."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, record in _records(folder):
            self.records[name] = _brief(record) if record.get("complete") else record

    def write(self, name: str, record: Body) -> None:
        """Keeps a record. Raises OSError, for example if the volume is full; the record stays in memory, and is not
        complete."""
        self.records[name] = {**record, "complete": False}
        self._replace(name, RECORD, json.dumps(record, indent=1, default=str).encode())
        self.records[name] = _brief(record) if record.get("complete") else record

    def whole(self, name: str) -> Body | None:
        """A record with its details; None if there is none. Raises OSError and ValueError."""
        record = self.records.get(name)
        if record is None or not record.get("complete"):
            return record
        return json.loads((self._folder / name / RECORD).read_text())

    def write_log(self, name: str, attempt: int, log: bytes) -> None:
        """Keeps the log of an attempt, the first is 1. Raises OSError."""
        self._replace(name, f"attempt-{attempt}.log", log)

    def log(self, name: str, attempt: int) -> bytes | None:
        """The log of an attempt; None if there is none."""
        file = self._folder / name / f"attempt-{attempt}.log"
        return file.read_bytes() if _NAME.fullmatch(name) and file.is_file() else None

    def remove(self, name: str) -> None:
        """Deletes the record and the logs of a run. Raises OSError."""
        shutil.rmtree(self._folder / name)
        self.records.pop(name, None)

    def _replace(self, name: str, file: str, content: bytes) -> None:
        """Writes a file as a whole: whoever reads, also after a crash, sees the old content or the new one."""
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        temporary = folder / f".{file}"
        with temporary.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(folder / file)


def folder_of(job: Body) -> str:
    """Name of the folder of a RayJob's record."""
    return f"{job['metadata']['name']}.{job['metadata']['uid']}"


def _brief(record: Body) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in DETAILS}


def _records(folder: Path) -> Iterator[tuple[str, Body]]:
    for file in folder.glob(f"*/{RECORD}"):
        try:
            record = json.loads(file.read_text())
            # What the list of runs shows, and what its end is counted from.
            if all(isinstance(record[key], str) for key in ("name", "namespace", "created", "status")):
                seconds(record["recorded"])
                yield file.parent.name, record
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
