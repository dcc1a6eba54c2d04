"""What an import leaves behind: the clusters it made, and a note for all that it did not carry over."""

from dataclasses import dataclass
from typing import Any

from core.problems import Path, dotted

__all__ = ["Imported", "Note", "Path", "RefusedError", "dotted"]


@dataclass(frozen=True)
class Note:
    """Something of the input that is not, or not exactly, in the stack file."""

    path: Path
    """Where it stands in the document."""

    why: str
    """What has no counterpart, or what became of it."""

    instead: str = ""
    """What to do, where `why` does not say it."""

    at: Path | None = None
    """Place in the cluster's entry where a person has to decide; the stack file gets a comment there."""

    line: int | None = None
    """Line of the file, where the document cannot tell it by the path."""

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.why}{'; ' if self.instead else ''}{self.instead}"


@dataclass(frozen=True)
class Imported:
    """One cluster of the input."""

    cluster: dict[str, Any]
    """An entry of `tenants[].clusters[]`."""

    namespace: str | None
    """The namespace that the input names."""

    notes: tuple[Note, ...]


class RefusedError(ValueError):
    """The input cannot be imported."""

    def __init__(self, *notes: Note) -> None:
        super().__init__("\n".join(str(note) for note in notes))
        self.notes = notes


@dataclass(frozen=True)
class Answers:
    """What the file may lack."""

    ray_version: str | None = None
    """Version of Ray in the image."""

    name: str | None = None
    """Name of the cluster."""
