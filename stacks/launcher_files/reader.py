"""Reads the documents of a file, and records what was used of each part: no part is dropped without a note. And names,
quantities, durations and versions in the format of the stack file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from pathlib import Path as File
from typing import Any, Self

from core.problems import Path, dotted
from core.quantities import NotAQuantityError, amount
from core.secrets import ADVICE, SECRET, is_secret, secret_in
from core.stack_file import LARGEST_FILE
from core.versions import image_version, ray_image_version, version_tuple
from core.yaml_reader import document as yaml_document
from core.yaml_reader.scalars import DocumentError, resolve_of_kubernetes
from kuberay.releases import FIRST_RAY_WITH_TOKENS


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
    """Place in the cluster's settings where a person has to decide; the stack file gets a comment there."""

    line: int | None = None
    """Line of the file, if it cannot be found by the path."""

    or_at: tuple[Path, ...] = ()
    """Further settings of the cluster, of which each decides the same as the one at `at`."""

    is_open: bool = False
    """Whether a person has to decide although no setting of the cluster does it: a secret, or an unknown part."""

    @property
    def is_decision(self) -> bool:
        """Whether the cluster may work otherwise than the input says; if not, a part only has no counterpart."""
        return self.at is not None or self.is_open

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.why}{'; ' if self.instead else ''}{self.instead}"


@dataclass(frozen=True)
class Owner:
    """A job or service that has the cluster for itself. `key`: of the tenant, `jobs` or `services`. `settings`: its
    entry there, without its cluster."""

    key: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Imported:
    cluster: dict[str, Any]
    """The cluster with its name, as an entry of `tenants[].clusters[]`."""

    namespace: str | None
    """The namespace in the input."""

    notes: tuple[Note, ...]

    owner: Owner | None = None
    """Whose cluster it is; None: it stays by itself."""

    path: Path = ()
    """Where the document has the spec of its RayCluster; empty if it has none."""

    places: Mapping[Path, Path] = field(default_factory=dict)
    """Where the document has parts of the cluster, if it has no such spec."""

    @property
    def key(self) -> str:
        """The tenant's list that has its entry."""
        return self.owner.key if self.owner else "clusters"

    def place(self, inner: Path) -> Path:
        """The place in the document of a part of the cluster, by `places`; empty if it is not known."""
        for length in range(len(inner), 0, -1):
            if (found := self.places.get(inner[:length])) is not None:
                return (*found, *inner[length:]) if inner[length - 1] == "podTemplate" else found
        return ()

    @property
    def entry(self) -> dict[str, Any]:
        if self.owner is None:
            return self.cluster
        return {**self.owner.settings, "cluster": {key: each for key, each in self.cluster.items() if key != "name"}}


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

    namespace: str | None = None
    """Namespace, instead of the file's."""

    operator_version: str | None = None
    """Release of KubeRay for which the file is. Default: the tested one."""

    chart_version: str | None = None
    """Release of KubeRay's chart ray-cluster that values of Helm are for. Default: the operator's."""

    how_to_set_the_version: str = "--ray-version 2.60.0"
    """Named if `ray_version` is missing."""


@dataclass(frozen=True)
class Document:
    yaml: yaml_document.Document

    first_line: int = 1
    """Line of the file on which the YAML begins."""

    @property
    def value(self) -> Any:
        return self.yaml.value

    @property
    def notes(self) -> list[Note]:
        """On the document as a whole."""
        return []

    def origin(self, path: Path) -> Path:
        """The place in the document of a part of its value, or of `notes`."""
        return path

    def line(self, path: Path) -> int:
        """The line of the part at `path`, or of its deepest existing parent."""
        return self.first_line + self.yaml.line(path) - 1


def parsed(text: str, path: Path) -> yaml_document.Document | None:
    """Parses the YAML text at `path`. Raises RefusedError."""
    try:
        return yaml_document.document(text)
    except DocumentError as error:
        raise RefusedError(Note(path, f"its line {error.span.line}: {error}")) from error


_LARGEST_FILE = 16 * LARGEST_FILE
"""Beside its clusters, a file may have other objects, which Kubernetes limits to a megabyte each."""


def documents(file: File) -> list[Document]:
    """The documents of a file that are not empty. Raises RefusedError if the file cannot be read or is not YAML."""
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise RefusedError(Note((), f"it has more than {_LARGEST_FILE} bytes", "leave out what is not of Ray"))
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise RefusedError(Note((), f"it cannot be read: {error.strerror}", "use a readable file")) from error
    except UnicodeDecodeError as error:
        raise RefusedError(Note((), "it is not text in UTF-8", "save it as UTF-8")) from error
    try:
        found = [Document(each) for each in yaml_document.documents(text, resolve_of_kubernetes)]
    except DocumentError as error:
        if "{{" in text:
            raise RefusedError(Note((), *TEMPLATE, line=error.span.line)) from error
        if error.rule == "repeated-key" and error.span.column == 1:
            another = "if another object begins here, put `---` before it"
            raise RefusedError(Note((), str(error), another, line=error.span.line)) from error
        raise RefusedError(Note((), str(error), line=error.span.line)) from error
    return [each for each in found if each.value is not None]


TEMPLATE = ("it is a template of Helm", "render it with `helm template NAME CHART`, and import the output")


UNKNOWN = ("the import does not know it", "check what it is for, and set it in podTemplate or overrides")


class Log:
    """The used parts of a document, and the notes on the rest."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._settled: set[Path] = set()

    def use(self, path: Path) -> None:
        """Marks the part at `path`, with all below it, as used in the result."""
        self._settled.add(path)

    def __contains__(self, path: Path) -> bool:
        return path in self._settled

    def note(self, path: Path, why: str, instead: str, *at: Path, is_open: bool = False) -> None:
        """Covers the part at `path`, with all below it, by a note. `at`: the settings that decide."""
        self._settled.add(path)
        self.advise(path, why, instead, *at, is_open=is_open)

    def advise(self, path: Path, why: str, instead: str, *at: Path, is_open: bool = False) -> None:
        """A note on a part that still has to be used or covered."""
        self.notes.append(Note(path, why, instead, at[0] if at else None, or_at=at[1:], is_open=is_open))

    def finish(self, document: Any) -> tuple[Note, ...]:
        """All notes, including one for each part of the document that is neither used nor covered."""
        touched = {path[:length] for path in self._settled for length in range(len(path) + 1)}
        for path in list(_unsettled(document, (), self._settled, touched)):
            self.note(path, *UNKNOWN, is_open=True)
        return tuple(dict.fromkeys(self.notes))  # the head's type may be one of workers, and is read for both


class Reader:
    """A part of a document. Values that are taken from it count as used."""

    def __init__(self, value: Any, log: Log | None = None, path: Path = ()) -> None:
        self.value = value
        self.log = log or Log()
        self.path = path

    def __contains__(self, key: str | int) -> bool:
        return self._get(key) is not None

    def keys(self) -> list[str]:
        return list(self.value) if isinstance(self.value, Mapping) else []

    def at(self, key: str | int) -> Self:
        """The part under a key, which may be empty. It is not used yet."""
        return type(self)(self._get(key), self.log, (*self.path, key))

    def items(self) -> list[tuple[str | int, Self]]:
        """The parts of a mapping or list, by their keys."""
        keys: list[Any] = list(range(len(self.value))) if isinstance(self.value, list) else list(self.keys())
        return [(key, self.at(key)) for key in keys]

    def use(self) -> Any:
        """The value. It is used with everything below it."""
        self.log.use(self.path)
        return self.value

    def note(self, why: str, instead: str, *at: Path, is_open: bool = False) -> None:
        """Covers this part with a note, if it is not empty."""
        if has_content(self.value):
            self.log.note(self.path, why, instead, *at, is_open=is_open)
        else:
            self.log.use(self.path)

    def text(self, key: str | int) -> str | None:
        """Uses a text; an empty text is None."""
        value = self.at(key)._typed(str, "a text")
        return str(value) if value not in (None, "") else None

    def whole(self, key: str | int) -> int | None:
        """Uses a whole number of at least 0."""
        value = self.at(key)._typed(int, "a whole number of at least 0")
        return None if value is None else int(value)

    def number(self, key: str | int) -> float | None:
        """Uses a number of at least 0."""
        value = self.at(key)._typed(float, "a number of at least 0")
        return None if value is None else float(value)

    def mapping(self, key: str | int) -> Self:
        """The mapping under a key; empty if the key is not set."""
        return self._container(key, Mapping, {}, "a mapping")

    def sequence(self, key: str | int) -> Self:
        """The list under a key; empty if the key is not set."""
        return self._container(key, list, [], "a list")

    def _container(self, key: str | int, kind: type, empty: Any, allowed: str) -> Self:
        part = self.at(key)
        if isinstance(part.value, kind):
            return part
        return part.refuse(allowed) if has_content(part.value) else type(self)(empty, self.log, part.path)

    def refuse(self, allowed: str) -> Any:
        """Raises RefusedError: the value is not allowed."""
        shown = repr(self.value)
        raise RefusedError(
            Note(self.path, f"{shown if len(shown) <= 60 else shown[:60] + '...'} is not {allowed}", "correct it")
        )

    def _typed(self, kind: type, allowed: str) -> Any:
        value = self.use()
        if value is None:
            return None
        if kind is str and isinstance(value, str | int | float) and not isinstance(value, bool):
            return value
        numbers = int if kind is int else int | float
        # `value < inf` also excludes NaN.
        if kind is not str and isinstance(value, numbers) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return value
        return self.refuse(allowed)

    def _get(self, key: str | int) -> Any:
        if isinstance(key, int):
            return self.value[key]
        return self.value.get(key) if isinstance(self.value, Mapping) else None


def has_content(value: Any) -> bool:
    """Whether a value is not empty: not null, false, an empty text, list or mapping, or a collection of only these."""
    if isinstance(value, Mapping):
        return any(has_content(each) for each in value.values())
    if isinstance(value, list):
        return any(has_content(each) for each in value)
    return value is not None and value is not False and value != ""


def _unsettled(value: Any, path: Path, settled: set[Path], touched: set[Path]) -> Iterator[Path]:
    """The largest parts that contain nothing settled; `touched` has the settled paths and all their parents."""
    if path in settled or not has_content(value):
        return
    if path not in touched or not isinstance(value, Mapping | list):
        yield path
        return
    for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from _unsettled(each, (*path, key), settled, touched)


def dns_name(text: str, limit: int, fallback: str) -> str:
    """The nearest RFC 1035 label: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        return fallback
    if not name[0].isalpha():
        name = f"{fallback}-{name}"
    return name[:limit].rstrip("-")


def number(value: float) -> str:
    """A number without an empty fraction: 2.0 is `2`."""
    return str(int(value)) if value == int(value) else str(value)


def duration(seconds: float) -> str:
    """Seconds in the format of Kubernetes durations: 300 is `5m`."""
    whole = max(1, round(seconds))
    for unit, length in (("h", 3600), ("m", 60)):
        if whole % length == 0:
            return f"{whole // length}{unit}"
    return f"{whole}s"


def bytes_quantity(count: float) -> str:
    """Bytes as a Kubernetes quantity: whole Gi, or else Mi rounded down."""
    whole = max(int(count), 2**20)
    return f"{whole // 2**30}Gi" if whole % 2**30 == 0 else f"{whole // 2**20}Mi"


def whole_cpus(cpu: str) -> str:
    """The number of CPUs that Ray derives from a container's: whole ones, rounded up; 1 if it cannot be parsed."""
    return str(ceil(cpus(cpu)))


def cpus(cpu: str) -> Decimal:
    """The CPUs of a container; 1 if they cannot be parsed."""
    try:
        return amount(cpu)
    except NotAQuantityError:
        return Decimal(1)


RELEASE = re.compile(r"\d+\.\d+\.\d+")
"""A release of Ray."""


def versions(image: str | None, answers: Answers, log: Log, path: Path, configured: Any = None) -> dict[str, Any]:
    """`rayVersion`, `image` and `verifyImageTag`.

    `configured`: the version in the input. Raises RefusedError, with `path`, if the version is unknown.
    """
    of_image = ray_image_version(image) if image else None
    asked = None if of_image else answers.ray_version  # the tag is what runs
    version = asked or _release(configured) or of_image
    if version is None:
        what = "no image is set, so the version of Ray is unknown"
        if image and image_version(image):
            what = f"the tag of image {image!r} is the version of an application, not of Ray"
        elif image:
            what = f"the tag of image {image!r} has no version of Ray"
        raise RefusedError(Note(path, what, f"set the version, for example {answers.how_to_set_the_version}"))
    if version_tuple(version) < version_tuple(FIRST_RAY_WITH_TOKENS):
        log.advise(
            path,
            f"Ray {version} cannot ask callers for a token, so everybody who can reach the dashboard can run anything",
            f"use Ray {FIRST_RAY_WITH_TOKENS} or later",
            ("rayVersion",),
        )
    if image is None:
        made = f"rayproject/ray:{version}"
        log.advise(path, "no image is set", f"it is {made} here; use one that has all that your code needs", ("image",))
        return {"rayVersion": version, "image": made}
    if image_version(image) == version:
        return {"rayVersion": version, "image": image}
    log.advise(
        path,
        *_unverified(image, version),
        ("image",),
        ("verifyImageTag",),
    )
    return {"rayVersion": version, "image": image, "verifyImageTag": False}


def of_groups(cluster: dict[str, Any], log: Log, path: Path) -> None:
    """Sets `verifyImageTag` to false if worker groups have images of applications, whose tags have other versions."""
    for group in cluster.get("workerGroups", []):
        image = group.get("image")
        if image and ray_image_version(image) is None and image_version(image) != cluster["rayVersion"]:
            cluster["verifyImageTag"] = False
            log.advise(
                path,
                *_unverified(image, cluster["rayVersion"]),
                ("workerGroups", group["groupName"], "image"),
                ("verifyImageTag",),
            )


def _unverified(image: str, version: str) -> tuple[str, str]:
    why = f"the tag of image {image!r} is not {version}, so verifyImageTag is false here"
    return why, "use an image with that version of Ray in its tag; with it verifyImageTag can be true"


def _release(configured: Any) -> str | None:
    return configured if isinstance(configured, str) and RELEASE.fullmatch(configured) else None


def is_secret_annotation(name: str, value: str) -> bool:
    """Whether the value of an annotation or a label is a secret, by its look or because its name ends as that of one.

    `checksum/secret` and `vault.hashicorp.com/agent-inject-secret-config` are none.
    """
    prefix, _, last = name.rpartition("/")
    variable = re.sub(r"[-.]", "_", last)
    *_, end = (0, *(found.end() for found in SECRET.finditer(variable)))
    named = end == len(variable) and not prefix.startswith("checksum")
    return secret_in(value) is not None or (named and is_secret(variable, value))


def is_noted_secret(name: str, value: str, part: Reader, annotation: bool = False) -> bool:
    """Whether a variable or an annotation is a secret in plain text; if so, it is noted without its value."""
    if not (is_secret_annotation(name, value) if annotation else is_secret(name, value)):
        return False
    part.note(f"{name!r} looks like a secret, and a stack file is plain text", ADVICE, is_open=True)
    return True
