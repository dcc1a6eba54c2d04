"""Reads, compares, applies and deletes CustomResourceDefinitions in the cluster. Reads only metadata where that is
enough.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from components.cluster import Cluster, NoAnswerError
from components.crds.definitions import Definition, content
from core.body import Body

DIGEST_ANNOTATION = "ray-platform/definition"
"""Annotation with the digest of the last applied content."""

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
"""A definition has up to a megabyte of schema, and its metadata a few kilobytes (kubernetes.io, API concepts)."""

_APPLY = {"Content-Type": "application/apply-patch+yaml", **_METADATA_ONLY}

_SECONDS = 60.0
"""Timeout. The API server establishes or removes a definition within a second or two."""


class DefinitionError(Exception):
    """Definitions cannot be applied, established or removed; the message names them and the reason."""


def metadata(cluster: Cluster, name: str) -> Body | None:
    """The metadata of a definition; None if it does not exist. Raises ClusterUnreachableError."""
    found = cluster.request("GET", f"{_PATH}/{name}", headers=_METADATA_ONLY)
    return None if found is None else dict(found["metadata"])


def read(cluster: Cluster, name: str) -> Body | None:
    """A definition; None if it does not exist. Raises ClusterUnreachableError."""
    return cluster.request("GET", f"{_PATH}/{name}")


def owned_fields(found: Mapping[str, Any], manager: str) -> str | None:
    """A digest of the fields of an object that a field manager has applied and owns; None if it owns none.

    A change of a field's value takes the ownership from the managers that applied it (kubernetes.io, Server-Side Apply,
    "Field management"). So while this digest is the same, nobody has changed what the manager applied.
    """
    entries = (entry for entry in found.get("managedFields") or () if entry["manager"] == manager)
    fields = next((entry["fieldsV1"] for entry in entries if entry["operation"] == "Apply"), None)
    return None if fields is None else hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def owns_versions(found: Mapping[str, Any], manager: str) -> bool:
    """Whether a field manager has applied the versions of a definition, and nobody has changed them since."""
    return any(
        "f:versions" in entry["fieldsV1"].get("f:spec", {})
        for entry in found.get("managedFields") or ()
        if entry["manager"] == manager and entry["operation"] == "Apply"
    )


def other_managers(found: Mapping[str, Any], manager: str) -> list[str]:
    """Other field managers of an object, the latest first, except those of the status alone, as the API server."""
    entries = [
        entry
        for entry in found.get("managedFields") or ()
        if entry["manager"] != manager and entry.get("subresource") != "status"
    ]
    latest = sorted(entries, key=lambda entry: str(entry.get("time") or ""), reverse=True)
    return list(dict.fromkeys(entry["manager"] for entry in latest))


def apply(
    cluster: Cluster, digests: Mapping[str, str], manager: str, webhook: Mapping[str, Any] | None
) -> dict[str, Body]:
    """Applies definitions by server-side apply, and waits until the API server serves their kinds. Returns the metadata
    of each, by name.

    `digests`: of the content, by name. `webhook`: namespace and CA bundle of the conversion webhook.
    Raises DefinitionError, MissingDefinitionError and ClusterUnreachableError.
    """
    bodies = {name: applied(content(digest), digest, webhook) for name, digest in digests.items()}
    sent = {name: _send(cluster, name, manager, json.dumps(body)) for name, body in bodies.items()}
    _wait(bodies, lambda name: _established(cluster, bodies[name]), "are not established")
    return sent


def _send(cluster: Cluster, name: str, manager: str, body: str) -> Body:
    """Applies a definition, again if the API server does not answer in time: a busy one has taken more than twenty
    seconds for a megabyte, and the second apply of the same content changes nothing. Returns its metadata."""
    query, deadline = {"fieldManager": manager, "force": "true"}, time.monotonic() + _SECONDS
    while True:
        try:
            answer = cluster.request("PATCH", f"{_PATH}/{name}", query=query, headers=_APPLY, body=body)
        except NoAnswerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return dict((answer or {})["metadata"])


def applied(body: Body, digest: str, webhook: Mapping[str, Any] | None) -> Body:
    """A definition to apply: with its digest, and with its conversion webhook, if there is one."""
    own = {key: value for key, value in body["metadata"].items() if key != "creationTimestamp"}
    own["annotations"] = {**(own.get("annotations") or {}), DIGEST_ANNOTATION: digest}
    body = {**{key: value for key, value in body.items() if key != "status"}, "metadata": own}
    conversion = body["spec"].get("conversion") or {}
    if webhook is None or conversion.get("strategy") != "Webhook":
        return body
    client = conversion["webhook"]["clientConfig"]
    service = {**client["service"], "namespace": webhook["namespace"]}
    client = {**client, "service": service, "caBundle": webhook["caBundle"]}
    conversion = {**conversion, "webhook": {**conversion["webhook"], "clientConfig": client}}
    return {**body, "spec": {**body["spec"], "conversion": conversion}}


def remove(cluster: Cluster, names: Iterable[str]) -> None:
    """Deletes definitions, and waits until they are gone. Raises DefinitionError and ClusterUnreachableError."""
    deleted = [name for name in names if cluster.request("DELETE", f"{_PATH}/{name}") is not None]
    _wait(deleted, lambda name: metadata(cluster, name) is None, "are deleted and still exist")


def _established(cluster: Cluster, body: Body) -> bool:
    """Whether the API server serves the kind of a definition: it lists the kind among those of its group then. Only
    before that the definition itself is read, which has the reason of a refusal."""
    spec, name = body["spec"], body["metadata"]["name"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    served = cluster.request("GET", f"/apis/{spec['group']}/{version}") or {}
    if any(each["name"] == spec["names"]["plural"] for each in served.get("resources") or ()):
        return True
    status = (read(cluster, name) or {}).get("status") or {}
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) == ("NamesAccepted", "False"):
            raise DefinitionError(f"CRD {name} is not established: {condition['message']}")
    return False


def _wait(names: Iterable[str], is_done: Callable[[str], bool], problem: str) -> None:
    """Waits until `is_done` is true for all names. Raises DefinitionError after the timeout."""
    deadline = time.monotonic() + _SECONDS
    waiting = list(names)
    while waiting := [name for name in waiting if not is_done(name)]:
        if time.monotonic() > deadline:
            raise DefinitionError(
                f"CRDs {', '.join(waiting)} {problem} after {_SECONDS:.0f} s. Run the command again; if that does not "
                "help, `kubectl describe crd` shows the reason in the conditions"
            )
        time.sleep(0.2)


_NAMED = 10
"""The most fields that a message names. Of the others it reports only the number."""

Fields = dict[str, Any]
"""The schema of each field, by the field's path."""


def differences(cluster: Cluster, definitions: Iterable[Definition], manager: str) -> Iterator[str]:
    """A line for each live definition that the desired one changes.

    Raises ClusterUnreachableError.
    """
    for each in definitions:
        existing = metadata(cluster, each.name)
        if existing is None:
            continue
        if (existing.get("annotations") or {}).get(DIGEST_ANNOTATION) == each.digest:
            # The list of versions is one value: whoever replaces the schema becomes its owner.
            if not owns_versions(existing, manager):
                others = ", ".join(other_managers(existing, manager)) or "others"
                yield f"CRD {each.name} was changed by {others}: an update corrects it"
            continue
        if (body := read(cluster, each.name)) and (changes := describe(body, content(each.digest))):
            yield f"CRD {each.name} changes: {changes}"


def describe(before: Body, after: Body) -> str:
    """The differences of two definitions: `adds v1 spec.authOptions; removes v1alpha1`. Empty if they are equal."""
    old, new = _fields(before), _fields(after)
    parts = (
        ("adds", _topmost(new.keys() - old.keys())),
        ("removes", _topmost(old.keys() - new.keys())),
        ("changes", sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
    )
    return "; ".join(f"{verb} {_named(paths)}" for verb, paths in parts if paths)


def _fields(body: Body) -> Fields:
    found: Fields = {}
    for version in body["spec"]["versions"]:
        found[version["name"]] = {key: version.get(key) for key in ("served", "storage")}
        _walk(version["schema"]["openAPIV3Schema"], f"{version['name']} ", found)
    return found


def _walk(schema: Mapping[str, Any], path: str, found: Fields) -> None:
    for name, field in (schema.get("properties") or {}).items():
        below = f"{path}{name}"
        found[below] = {key: value for key, value in field.items() if key not in _NOT_COMPARED}
        _walk(field, f"{below}.", found)
    if isinstance(items := schema.get("items"), Mapping):
        _walk(items, path, found)
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        _walk(values, f"{path}*.", found)


_NOT_COMPARED = {"properties", "items", "additionalProperties", "description"}
"""Keys with their own paths, and keys without effect on objects."""


def _topmost(paths: Iterable[str]) -> list[str]:
    """The paths without those below another path."""
    found: list[str] = []
    for path in sorted(paths):
        if not found or not path.startswith((f"{found[-1]}.", f"{found[-1]} ")):
            found.append(path)
    return found


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"
