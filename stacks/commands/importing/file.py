"""Imports a file: reads its documents, finds their clusters, and writes a stack file with tenants by namespace."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path as File
from typing import Any

from core.problems import Finding, Path, StackFileError
from core.stack_file import PREFIX, PROJECT
from core.stack_file import stack_file as read_again
from stacks.checks.advice import advice
from stacks.commands.importing.helm_values import rendered
from stacks.commands.importing.manifests import (
    KINDS,
    OWNERS,
    NotWrittenError,
    from_manifest,
    from_owner,
    has_cluster,
    refuse,
)
from stacks.commands.importing.other_formats import (
    FIRST_OPERATOR,
    PROPOSAL,
    from_cai,
    from_first_operator,
    from_proposal,
    is_cai_file,
)
from stacks.commands.importing.places import place_in
from stacks.commands.importing.writing import (
    MODELINE,
    dump,
    needed,
    operator_of,
    stack_file,
    tenants,
    unknown_redis,
)
from stacks.launcher_files.launcher import from_launcher, is_launcher_file
from stacks.launcher_files.reader import Answers, Document, Imported, Note, RefusedError, documents
from stacks.load import parse


def clusters_in(document: Any, answers: Answers) -> tuple[list[Imported], list[Note]]:
    """The clusters of a document, and notes on its other objects.

    Raises RefusedError if one of its clusters cannot be imported.
    """
    found: list[Imported] = []
    others: list[Note] = []
    for path, body in _objects(document, ()):
        if imported := _cluster(_answered(body, answers), answers, path):
            found.append(imported)
        elif isinstance(body, Mapping) and "kind" in body:
            if _of_ray(body):
                with _placed(path):
                    refuse(body, answers)
            name = (body.get("metadata") or {}).get("name") if isinstance(body.get("metadata"), Mapping) else None
            instead = _INSTEAD.get(str(body["kind"]), "keep applying it as a manifest")
            title = f"{body['kind']} {name!r}" if name else f"a {body['kind']}"
            others.append(Note(path, f"{title} is not imported", instead))
        else:
            others.append(Note(path, *_recognized(body)))
    return found, others


def _answered(body: Any, answers: Answers) -> Any:
    """The object with the name and namespace that were asked for, before those of the file are judged."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if not isinstance(metadata, Mapping):
        return body
    given = {"name": answers.name, "namespace": answers.namespace}
    return {**body, "metadata": {**metadata, **{key: value for key, value in given.items() if value}}}


def _recognized(body: Any) -> tuple[str, str]:
    """What a document is that is not an object, and what to do with it."""
    keys = set(body) if isinstance(body, Mapping) else set()
    if "config" in keys and any(str(key).startswith(PREFIX) for key in body["config"] or ()):
        return "it is a stack file already", "check it with `ray-platform check`"
    if "kind" not in keys and keys & _KUSTOMIZES:
        return "it is a Kustomization", _INSTEAD["Kustomization"]
    return _UNKNOWN


_UNKNOWN = ("it is neither a cluster launcher file nor a manifest", "nothing was made of it")

_NO_CLUSTER = (
    "has no cluster; import reads files of `ray up` and of ray-serve-cai (start-cai), manifests of KubeRay, and values "
    "of its Helm chart ray-cluster"
)

_KUSTOMIZES = {"bases", "patches", "patchesJson6902", "patchesStrategicMerge", "configMapGenerator", "namePrefix"}
"""Keys of a kustomization.yaml, which needs no kind."""


_INSTEAD = {
    "Kustomization": "render it with `kubectl kustomize FOLDER`, and import the output",
    "Application": "render its chart with `helm template`, or print what it applies with `argocd app manifests`, and "
    "import the output",
    "HelmRelease": "render its chart with `helm template`, and import the output",
}
"""What to do with objects that others render."""


def _objects(document: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The objects of a document: those of a List, or the document itself."""
    if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        for index, each in enumerate(items if isinstance(items, list) else []):
            yield from _objects(each, (*path, "items", index))
    elif isinstance(document, Mapping) and document.get("kind") == "AppWrapper":
        components = (document.get("spec") or {}).get("components") or ()
        for index, each in enumerate(components if isinstance(components, list) else ()):
            yield from _objects(each.get("template"), (*path, "spec", "components", index, "template"))
    else:
        yield path, document


def _cluster(body: Any, answers: Answers, path: Path) -> Imported | None:
    with _placed(path):
        imported = _imported(body, answers)
    if imported is None:
        return None
    notes = tuple(_below(path, note) for note in imported.notes)
    return replace(imported, notes=notes, path=(*path, *imported.path))


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Refusals of an object, as of the document that contains it at `path`."""
    try:
        yield
    except RefusedError as error:
        raise RefusedError(*(_below(path, note) for note in error.notes)) from error


def _of_ray(body: Mapping[str, Any]) -> bool:
    return str(body.get("apiVersion", "")).partition("/")[0] == "ray.io" and str(body.get("kind")) in KINDS


def _imported(body: Any, answers: Answers) -> Imported | None:
    if not isinstance(body, Mapping):
        return None
    group = str(body.get("apiVersion", "")).partition("/")[0]
    kind = str(body.get("kind"))
    if _of_ray(body) and has_cluster(body):
        return _with_owner(body, answers) if kind in OWNERS else from_manifest(body, answers, rename=True)
    if (group, kind) == (FIRST_OPERATOR, "RayCluster"):
        return from_first_operator(body, answers)
    if (group, kind) == (PROPOSAL, "Ray"):
        return from_proposal(body, answers)
    return from_launcher(body, answers) if is_launcher_file(body) else None


def _with_owner(body: Mapping[str, Any], answers: Answers) -> Imported:
    """A RayJob or RayService as a job or service of the tenant, or if that is not possible its cluster alone."""
    try:
        return from_owner(body, answers)
    except NotWrittenError as error:
        imported = from_manifest(body, answers, rename=True)
        why = f"the {body['kind']} cannot be one of the tenant's {OWNERS[body['kind']].key}: {error}"
        note = Note(("kind",), why, "its cluster becomes one that stays")
        return replace(imported, notes=(note, *imported.notes))


def _below(path: Path, note: Note) -> Note:
    return replace(note, path=(*path, *note.path))


@dataclass(frozen=True)
class Result:
    text: str
    """The stack file; empty if nothing could be imported."""

    lines: tuple[str, ...]
    """Notes or, if nothing could be imported, the reasons, as `FILE:LINE: PATH: why; what to do`."""


def import_file(file: File, answers: Answers) -> Result:
    """The stack file for all clusters in a file."""
    try:
        found = documents(file)
    except RefusedError as error:
        return _refused(_lines(file, None, error.notes))
    if any(is_cai_file(document.value) for document in found):
        return _on_cml(file, found, answers)
    imported: list[Imported] = []
    origins: list[Document] = []
    notes, refused = [], []
    for each in found:
        document = each
        try:
            document = rendered(document, answers)
            clusters, others = clusters_in(document.value, answers)
        except RefusedError as error:
            refused += _lines(file, document, error.notes)
            continue
        imported += clusters
        origins += [document] * len(clusters)
        notes += _lines(file, document, [*document.notes, *others, *(note for each in clusters for note in each.notes)])
    if refused:
        return _refused(refused)
    if not imported:
        named = (note for note in notes if not note.endswith("; ".join(_UNKNOWN)))
        return _refused([f"{file}: {_NO_CLUSTER}", *named])
    made = tenants(imported, answers.namespace)
    notes += [f"{file}: {note}" for tenant in made for note in _of_tenant(tenant)]
    settings = {**operator_of(answers), "tenants": made}

    def placed(finding: Finding) -> tuple[int, str]:
        for document, each in zip(origins, imported, strict=True):
            if (inner := _inside(finding.path, made, each)) is not None:
                # The manifest has the field itself.
                message = finding.message.removeprefix(finding.rendered)
                if answers.ray_version and finding.rule == "operator-ray-version":
                    message += f"; --ray-version {answers.ray_version} is for images whose tag has no version"
                [line] = _numbered(file, document, [Note(place_in(document.value, each, inner), message)])
                return line
        return 0, f"{file}: in the resulting stack file: {finding}"

    return _judged(file, stack_file(imported, answers), settings, notes, placed)


def _inside(path: Path, made: list[dict[str, Any]], imported: Imported) -> Path | None:
    """The part of a finding's path that is inside the entry of a cluster; None if it is in another place."""
    match path:
        case (_, int(tenant), str(key), int(at), *inner) if key == imported.key:
            entries = made[tenant].get(key, [])
            return tuple(inner) if at < len(entries) and entries[at] == imported.entry else None
    return None


def _on_cml(file: File, found: list[Document], answers: Answers) -> Result:
    """The stack file for the cluster of a file of ray-serve-cai."""
    if len(found) > 1:
        return _refused([f"{file}: has several documents, and one of them has cai: import them as separate files"])
    [document] = found
    try:
        settings, notes = from_cai(document.value, answers)
    except RefusedError as error:
        return _refused(_lines(file, document, error.notes))
    text = MODELINE + dump({"config": {f"{PROJECT}:cml": settings}})
    lines = _lines(file, document, notes)
    return _judged(
        file, text, {"cml": settings}, lines, lambda each: (0, f"{file}: in the resulting stack file: {each}")
    )


def _judged(
    file: File,
    text: str,
    settings: Mapping[str, Any],
    notes: Iterable[str],
    placed: Callable[[Finding], tuple[int, str]],
) -> Result:
    """The stack file with this text if `check` accepts it, and reads these settings from it. `placed`: the number of
    the line of what it finds, and what to say of it."""
    try:
        written = read_again("", text).values(PREFIX)
        stack = parse(written)
    except StackFileError as error:
        found = sorted(map(placed, error.findings), key=lambda each: each[0])
        return _refused(said for _, said in found)
    if written != settings:
        return _refused([f"{file}: the resulting stack file would have other values: report it, with the file"])
    return Result(text, (*notes, *(placed(each)[1] for each in advice(stack, "", date.today()))))


def _of_tenant(tenant: dict[str, Any]) -> Iterator[str]:
    """Notes on the settings of a tenant, and on what has to be in its namespace."""
    name = tenant["name"]
    yield (
        f"tenant {name}: the file does not say what the pods may reach, so they may reach public addresses; remove "
        "network.egress if they need none"
    )
    yield (
        f"tenant {name}: the file does not say who may connect, so nobody outside the namespace may; set "
        "network.dashboardFrom, clientFrom, serveFrom"
    )
    if "podSecurity" in tenant:
        yield f"tenant {name}: podSecurity is {tenant['podSecurity']}, because the pods do not meet restricted"
    for address in unknown_redis(tenant):
        yield f"tenant {name}: what its pods reach at {address!r} is not known; add their Redis to network.egress"
    if objects := needed(tenant):
        yield f"tenant {name}: its pods need {', '.join(objects)}; create what is missing before the clusters"


def _refused(lines: Iterable[str]) -> Result:
    return Result("", tuple(lines))


def _lines(file: File, document: Document | None, notes: Iterable[Note]) -> list[str]:
    """The notes in the format of a compiler, in the order of their lines."""
    return [said for _, said in _numbered(file, document, notes)]


def _numbered(file: File, document: Document | None, notes: Iterable[Note]) -> list[tuple[int, str]]:
    """The same with the numbers of their lines; 0 for a note without one."""
    if document:
        notes = [_in(document, note) for note in notes]
    placed = [((document.line(note.path) if document else note.line) or 0, note) for note in notes]
    placed.sort(key=lambda each: each[0])
    return [(line, f"{file}:{line}: {note}" if line else f"{file}: {note}") for line, note in placed]


def _in(document: Document, note: Note) -> Note:
    path = document.origin(note.path)
    why, instead = (document.yaml.said(path, each) for each in (note.why, note.instead))
    return replace(note, path=path, why=why, instead=instead)
