"""The result of an import: the clusters that it made, and a note for everything that it did not carry over."""

from dataclasses import dataclass
from typing import Any

from core.problems import Path, dotted

__all__ = ["Imported", "Note", "Path", "RefusedError", "dotted"]


@dataclass(frozen=True)
class Note:
    """A part of the input that is not, or not exactly, in the stack file."""

    path: Path
    """Its place in the document."""

    why: str
    """What has no counterpart, or what it was converted into."""

    instead: str = ""
    """What to do, if `why` does not include that."""

    at: Path | None = None
    """Place in the cluster's entry where a person has to decide; the stack file gets a comment there."""

    line: int | None = None
    """Line of the file, if it cannot be found by the path."""

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.why}{'; ' if self.instead else ''}{self.instead}"


@dataclass(frozen=True)
class Imported:
    """One cluster of the input."""

    cluster: dict[str, Any]
    """An entry of `tenants[].clusters[]`."""

    namespace: str | None
    """The namespace in the input."""

    notes: tuple[Note, ...]


class RefusedError(ValueError):
    """The input cannot be imported."""

    def __init__(self, *notes: Note) -> None:
        super().__init__("\n".join(str(note) for note in notes))
        self.notes = notes


@dataclass(frozen=True)
class Answers:
    """Required values that the file may lack."""

    ray_version: str | None = None
    """Version of Ray in the image."""

    name: str | None = None
    """Name of the cluster."""
