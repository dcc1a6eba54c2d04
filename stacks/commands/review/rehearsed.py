"""What `make rehearse ARGS="--format json"` has found (local/rehearse/report.py), for the comment."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError


class NoRehearsalError(Exception):
    """A file is no report of a rehearsal; the text names it."""


class _Part(BaseModel, frozen=True):
    """A part of the report. Other keys are for other readers."""


class Cluster(_Part):
    """A RayCluster of the rehearsal."""

    ready: bool


class Refusal(_Part):
    """What admission refused."""

    what: str
    message: str


class Rehearsal(_Part):
    """The rehearsal of one stack."""

    stack: str
    well: bool
    clusters: tuple[Cluster, ...]
    not_ready: tuple[str, ...] = Field(alias="notReady")
    """RayClusters that are not ready, or do not exist."""
    refusals: tuple[Refusal, ...]
    errors: tuple[str, ...]
    """Of a failed `pulumi up`."""
    differences: tuple[str, ...]
    """From the plan, as sentences."""

    @property
    def ready(self) -> int:
        """The number of RayClusters that are ready."""
        return sum(each.ready for each in self.clusters)

    @property
    def number(self) -> int:
        """The number of RayClusters of the stack."""
        return self.ready + len(self.not_ready)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it should be, the worst first."""
        return (
            *(f"`pulumi up` failed: {each}" for each in self.errors),
            *(f"refused by admission: {each.what}: {each.message}" for each in self.refusals),
            *(f"not ready: {each}" for each in self.not_ready),
            *(f"not as planned: {each}" for each in self.differences),
        )


def rehearsals(files: Iterable[Path]) -> dict[str, Rehearsal]:
    """The rehearsals in files, by the name of their stacks. Raises NoRehearsalError."""
    found = map(_read, files)
    return {each.stack: each for each in found}


def _read(file: Path) -> Rehearsal:
    try:
        return Rehearsal.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        command = 'make rehearse STACK=NAME ARGS="--format json"'
        raise NoRehearsalError(f"{file}: is no report of a rehearsal: write it with `{command}`") from error
