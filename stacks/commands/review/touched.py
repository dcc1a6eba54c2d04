"""The stack files that a change touches: those that differ from the revision where the change began, those over a base
that differs, and all if the program differs."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path

from core.problems import StackFileError
from core.stack_file import read, stack_file
from stacks.commands.impact.sources import git

PROGRAM = ("__main__.py", "Pulumi.yaml", "components", "core", "kuberay", "policies", "requirements.txt", "stacks")
"""Files and folders beside the stack files that decide what the program creates, and what the policies are."""

_STACK_FILES = "Pulumi.*.yaml"


@dataclass(frozen=True)
class Touched:
    """A stack file that a change touches."""

    file: Path
    edited: bool = False
    """Whether the file itself differs, or is new."""
    deleted: bool = False
    bases: tuple[str, ...] = ()
    """The differing files that it extends, directly or not."""


@dataclass(frozen=True)
class Change:
    """What differs between a revision and the files of this folder, committed or not."""

    base: str
    """The name of the revision."""
    commit: str
    """The last commit that the revision and this branch share."""
    stacks: tuple[Touched, ...]
    """The touched stack files; all if the program differs."""
    program: tuple[str, ...]
    """The differing files of the program."""


def change(base: str, folder: Path) -> Change:
    """What differs from a revision in the folder of the stack files. Raises NoSuchSourceError."""
    commit = _shared(base, folder)
    root = Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    here = folder.resolve()
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", commit)
    listed += git(root, "ls-files", "--others", "--exclude-standard", "-z")
    differing = frozenset(root / each for each in listed.split("\0") if each)
    program = tuple(sorted(_names_of_program(differing, here)))
    files = {*folder.glob(_STACK_FILES), *(folder / each.name for each in differing if _is_deleted(each, here))}
    stacks = (_touched(file, here, differing) for file in sorted(files))
    return Change(base, commit, tuple(each for each in stacks if program or each.edited or each.bases), program)


def _shared(base: str, folder: Path) -> str:
    unknown = f"{base!r} is no revision of git here: give one, such as origin/main, and fetch it first"
    tip = git(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", missing=unknown).strip()
    apart = (
        f"git finds no commit that {base} and this branch share: fetch the whole history (`git fetch --unshallow`; in "
        "a workflow of GitHub `fetch-depth: 0`, in GitLab `GIT_DEPTH: 0`)"
    )
    return git(folder, "merge-base", tip, "HEAD", missing=apart).strip()


def _names_of_program(differing: frozenset[Path], here: Path) -> Iterator[str]:
    for each in differing:
        if each.is_relative_to(here) and (path := each.relative_to(here)).parts[0] in PROGRAM:
            yield path.as_posix()


def _is_deleted(file: Path, here: Path) -> bool:
    return file.parent == here and file.match(_STACK_FILES) and not file.exists()


def _touched(file: Path, here: Path, differing: frozenset[Path]) -> Touched:
    # A stack file may be a link to what differs.
    edited, deleted = bool({here / file.name, file.resolve()} & differing), not file.exists()
    bases = () if deleted else tuple(each for each in _bases(file) if Path(normpath(here / each)) in differing)
    return Touched(file, edited, deleted, bases)


def _bases(file: Path) -> list[str]:
    """The bases of a stack file, by their paths from its folder; as far as they can be read, if one cannot."""
    found: list[str] = []

    def reader(path: str) -> tuple[str, str]:
        found.append(path)
        base = file.parent / path
        return normpath(base), read(base)

    with suppress(StackFileError):  # `check` reports it
        stack_file(file, read(file), reader)
    return found
