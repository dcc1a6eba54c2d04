"""`configuration`: files of Ray's cluster launcher in place of the settings of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from core.problems import Finding, Path, StackFileError, shown
from core.secrets import ADVICE, in_plain_text, secret_in
from core.stack_file import NOT_RELATIVE, PREFIX, StackFile
from core.strategic_merge import DIRECTIVE, part_of
from core.values import inside
from core.yaml_reader.document import Document, collection, document, merged
from core.yaml_reader.scalars import DocumentError, Node, Span, resolve_of_kubernetes

if TYPE_CHECKING:
    from stacks.launcher_files.reader import Answers, Imported, Note

CONFIGURATION = "configuration"
"""Key of a cluster, beside which its other keys are merged over what the launcher file becomes."""

_RULE = "launcher-file"

_REPLACE = {DIRECTIVE: "replace"}
"""An item of a list that replaces the one of the launcher file."""

_EACH = None
"""A step of a pattern: every item of a list."""

_TENANT = ("config", f"{PREFIX}tenants", _EACH)
_CLUSTERS: tuple[tuple[str | None, ...], ...] = (
    (*_TENANT, "clusters", _EACH),
    *((*_TENANT, key, _EACH, "cluster") for key in ("jobs", "jobTemplates", "services")),
)
"""Where a stack file has clusters."""


def with_launcher_files(file: StackFile) -> StackFile:
    """The stack file with the clusters of its launcher files, each value with its place there.

    Raises StackFileError if one cannot be read or converted.
    """
    conversion = _Conversion(file)
    root = file.document.root
    for pattern in _CLUSTERS:
        root = _replaced(root, pattern, conversion.cluster)
    if conversion.errors:
        raise file.error(conversion.errors)
    if root is file.document.root:
        return file
    return replace(file, document=Document(root), advice=(*file.advice, *conversion.advice))


def _replaced(node: Node, pattern: tuple[str | None, ...], change: Callable[[Node, Path], Node], at: Path = ()) -> Node:
    """The node with other parts where the pattern leads; itself if none changes. `at`: its place."""
    if not pattern:
        return change(node, at)
    steps = list(node.children) if pattern[0] is _EACH and isinstance(node.value, list) else [pattern[0]]
    found = {
        step: _replaced(node.children[step], pattern[1:], change, (*at, step))
        for step in steps
        if step is not None and step in node.children
    }
    if all(child is node.children[step] for step, child in found.items()):
        return node
    return _of_children(node, {**node.children, **found})


def _of_children(node: Node, children: dict[str | int, Node]) -> Node:
    values = {key: child.value for key, child in children.items()}
    keys = {key: span for key, span in node.key_spans.items() if key in children}
    return collection(list(values.values()) if isinstance(node.value, list) else values, node.span, children, keys)


@dataclass(frozen=True)
class _Launcher:
    """A launcher file, or one that is written in the stack file."""

    document: Document
    placed: Callable[[Span], Span]
    """A place in the document as one in a file."""
    inline: bool

    @property
    def name(self) -> str:
        """For messages."""
        return "the launcher file" if self.inline else self.placed(Span(1, 1)).file or ""

    def span(self, path: Path, of_key: bool = False) -> Span:
        return self.placed(self.document.span(path, of_key))


class _Conversion:
    """The conversion of all launcher files of a stack file."""

    def __init__(self, file: StackFile) -> None:
        self._file = file
        self.errors: list[Finding] = []
        self.advice: list[Finding] = []

    def cluster(self, node: Node, at: Path) -> Node:
        """The settings of the cluster at a place."""
        if not isinstance(node.value, dict) or node.value.get(CONFIGURATION) is None:
            return node
        here = (*at[1:], CONFIGURATION)
        for path, value in inside(node.value[CONFIGURATION], here):
            if isinstance(value, str) and (kind := secret_in(value)):
                self.errors.append(in_plain_text(path, kind))
        try:
            launcher = self._launcher(node.children[CONFIGURATION], here)
            return self._converted(node, at, launcher)
        except StackFileError as error:
            self.errors += error.findings
            return node

    def _launcher(self, node: Node, at: Path) -> _Launcher:
        """The launcher file of the value of the key."""
        if isinstance(node.value, dict):
            return _Launcher(Document(node), lambda span: span, inline=True)
        if not isinstance(node.value, str) or not node.value:
            message = f"{shown(node.value)} is not allowed: write the path of a launcher file, or its content"
            raise _error(at, message)
        if inline := "\n" in node.value:
            text, placed = node.value, self._within(node.span)
        else:
            text, placed = self._read(node, at)
        try:
            found = document(text, resolve_of_kubernetes)
        except DocumentError as error:
            raise _error(at, error.message, placed(error.span)) from error
        return _Launcher(found or Document(Node(None, Span(1, 1))), placed, inline)

    def _read(self, node: Node, at: Path) -> tuple[str, Callable[[Span], Span]]:
        """The text of the file at the path that a node has, and the places in it."""
        try:
            name, text = self._file.beside(node.value, node.span.file)
        except StackFileError as error:
            [found] = error.findings
            message = found.message if found.rule == NOT_RELATIVE else f"{shown(node.value)} {found.message}"
            raise _error(at, message) from error
        return text, lambda span: span._replace(file=name)

    def _within(self, scalar: Span) -> Callable[[Span], Span]:
        """The places in a text that is a block of lines in a file."""
        if scalar.end_column:
            return lambda _: scalar
        lines = self._file.text.splitlines()[scalar.line :] if scalar.file is None else []
        indent = next((len(each) - len(each.lstrip()) for each in lines if each.strip()), 0)

        def placed(span: Span) -> Span:
            end = None if span.end_column is None else span.end_column + indent
            return Span(scalar.line + span.line, indent + span.column, end, scalar.file)

        return placed

    def _converted(self, node: Node, at: Path, launcher: _Launcher) -> Node:
        # Few stack files have a launcher file.
        from stacks.launcher_files.launcher import from_launcher, is_launcher_file
        from stacks.launcher_files.reader import RELEASE, Answers, RefusedError

        here = (*at[1:], CONFIGURATION)
        if not is_launcher_file(launcher.document.value):
            message = (
                "is not a file of Ray's cluster launcher (`ray up`), which has cluster_name or provider, and no kind: "
                "convert a manifest, or values of Helm, with `ray-platform import`"
            )
            raise _error(here, message, launcher.span(()))
        beside = _of_children(node, {key: child for key, child in node.children.items() if key != CONFIGURATION})
        owner = part_of(self._file.document.value, *at[:-1], "name") if at[-1] == "cluster" else None
        version, name = beside.value.get("rayVersion"), owner or beside.value.get("name")
        answers = Answers(
            version if isinstance(version, str) and RELEASE.fullmatch(version) else None,
            name if isinstance(name, str) else None,
            how_to_set_the_version="rayVersion: 2.60.0 beside configuration",
        )
        try:
            imported = from_launcher(launcher.document.value, answers)
        except RefusedError as error:
            raise StackFileError(_finding(note, here, launcher) for note in error.notes) from error
        self._note(imported, at, launcher, beside, _command(launcher, answers))
        self._note_added_groups(imported, at, launcher, beside)
        # The name is the stack file's, and `image` beside the launcher file has its own tag.
        left_out = {"name", "verifyImageTag"} if "image" in beside.value else {"name"}
        cluster = {key: value for key, value in imported.cluster.items() if key not in left_out}
        try:
            return merged(_node(cluster, (), imported, launcher), beside)
        except DocumentError as error:
            raise _error(at[1:], error.message, error.span) from error

    def _note(self, imported: "Imported", at: Path, launcher: _Launcher, beside: Node, command: str) -> None:
        """What a person has to decide, as advice, and the number of parts without a counterpart. A secret in the stack
        file is an error."""
        here = (*at[1:], CONFIGURATION)
        others = set()
        for note in imported.notes:
            if note.path == ("cluster_name",):
                continue
            if not note.is_decision:
                others.add(note.path)
                continue
            if any(_is_decided(beside.value, place) for place in (note.at, *note.or_at) if place):
                continue
            found = _finding(note, here, launcher)
            if launcher.inline and note.instead == ADVICE:
                self.errors.append(replace(found, rule="plaintext-secret"))
            else:
                # Without its column, so that `check` does not show the line, which may have a secret.
                self.advice.append(replace(found, column=None, end_column=None))
        tenant = part_of(self._file.document.value, *at[:3])
        namespace = tenant.get("namespace") or tenant.get("name")
        if imported.namespace not in (None, namespace):
            message = f"{shown(imported.namespace)} is not used: the tenant's namespace is {shown(namespace)}"
            where = ("provider", "namespace")
            span = launcher.span(where)
            self.advice.append(Finding((*here, *where), None, message, _RULE, span.line, file=span.file))
        if others:
            count, have = ("1 part", "has") if len(others) == 1 else (f"{len(others)} parts", "have")
            message = f"{count} of {launcher.name} {have} no counterpart in pods: {command}"
            span = self._file.document.span((*at, CONFIGURATION))
            self.advice.append(Finding(here, None, message, _RULE, span.line, file=span.file))

    def _note_added_groups(self, imported: "Imported", at: Path, launcher: _Launcher, beside: Node) -> None:
        """Worker groups beside the launcher file that it does not have: their names may be wrong."""
        known = [each["groupName"] for each in imported.cluster.get("workerGroups", [])]
        groups = beside.value.get("workerGroups")
        if not known or not isinstance(groups, list) or _REPLACE in groups:
            return
        for index, group in enumerate(groups):
            name, where = part_of(group, "groupName"), ("workerGroups", index, "groupName")
            if isinstance(name, str) and name not in known:
                message = (
                    f"{shown(name)} is not a worker group of {launcher.name}, which has {', '.join(known)}: it becomes "
                    "a further group. Correct the name if you mean one of these"
                )
                span = self._file.document.span((*at, *where))
                self.advice.append(Finding((*at[1:], *where), None, message, _RULE, span.line, file=span.file))


def _command(launcher: _Launcher, answers: "Answers") -> str:
    """How to list the parts of a launcher file without a counterpart."""
    version = f" --ray-version {answers.ray_version}" if answers.ray_version else ""
    if launcher.inline:
        return f"save it as a file, and list them with `ray-platform import FILE{version}`"
    return f"list them with `ray-platform import {quote(launcher.name)}{version}`"


def _is_decided(value: Any, path: Path) -> bool:
    """Whether the settings beside a launcher file set the value at a path, or remove it (null, or its worker group by
    `$patch`). A worker group has its name as a step."""
    for step in path:
        if isinstance(value, list):
            group = next((each for each in value if part_of(each, "groupName") == step), None)
            if _REPLACE in value or part_of(group, DIRECTIVE) == "delete":
                return True
            value = group
        elif not isinstance(value, dict) or step not in value:
            return False
        elif (value := value[step]) is None:
            return True
    return value is not None


def _node(value: Any, path: Path, imported: "Imported", launcher: _Launcher) -> Node:
    """A part of the converted cluster, with the places of its values in the launcher file."""
    node = Node(value, launcher.span(imported.place(path)))
    if not isinstance(value, dict | list):
        return node
    steps = list(value) if isinstance(value, dict) else list(range(len(value)))
    children = {step: _node(value[step], (*path, step), imported, launcher) for step in steps}
    keys = {step: launcher.span(imported.place((*path, step)), of_key=True) for step in steps}
    return collection(value, node.span, children, keys if isinstance(value, dict) else {})


def _finding(note: "Note", here: Path, launcher: _Launcher) -> Finding:
    span = launcher.span(note.path)
    message = f"{note.why}: {note.instead}" if note.instead else note.why
    return Finding((*here, *note.path), None, message, _RULE, span.line, span.column, span.end_column, span.file)


def _error(at: Path, message: str, span: Span | None = None) -> StackFileError:
    """An error at a place of the stack file, or at `span`."""
    place = (span.line, span.column, span.end_column, span.file) if span else ()
    return StackFileError([Finding(at, None, message, _RULE, *place)])
