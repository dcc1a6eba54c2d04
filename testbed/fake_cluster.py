"""A Kubernetes cluster in memory, for tests: `components.cluster.Cluster` without an API server."""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from components.cluster import AMBIENT, NO_PAIRS, Cluster, ConflictError, Connection, Sent, path_of
from components.kubernetes_cluster import KubernetesCluster
from core.body import Body

_OBJECT = re.compile(r"(?P<kind>/apis?(?:/[a-z0-9.-]+)?/v[^/]+(?:/namespaces/[^/]+)?/[a-z]+)(?:/(?P<name>[^/]+))?")
_NAMESPACE = re.compile(r"/namespaces/[^/]+(?=/)")


class Request(NamedTuple):
    """A recorded request."""

    method: str
    path: str
    query: Mapping[str, str] = NO_PAIRS
    headers: Mapping[str, str] = NO_PAIRS
    body: Sent = None


class FakeCluster(Cluster):
    """Objects by their paths, the requests so far, and errors on demand."""

    def __init__(self, *objects: Body, connection: Connection = AMBIENT) -> None:
        """`objects`: each with `apiVersion`, `kind` and `metadata`."""
        self.connection = connection
        self.objects: dict[str, Body] = {}
        """Also other answers, such as `/version`."""

        self.served: set[str] = set()
        """Kinds without objects, as `rayclusters`: their lists are empty. A list of other kinds is not found."""

        self.requests: list[Request] = []
        self.errors: dict[str, Exception] = {}
        """Errors by a part of the path, or of a method and the path (`PATCH /apis/ray.io`)."""

        self.streams: dict[str, Sequence[bytes | BaseException]] = {}
        """The parts of the response to a GET, by path; an exception is raised in its place."""

        self.pods: Callable[[str, str, int, str], bytes | None] = lambda *_: None
        """What programs in pods answer: by namespace, pod, port and path."""

        self.commands: Callable[[str, str, str, Sequence[str]], tuple[str, str]] = lambda *_: ("", "")
        """What commands print: by namespace, pod, container and command."""

        self.add(*objects)

    def add(self, *objects: Body) -> None:
        """Adds objects, or replaces those of their names. The plural of a kind is its name in lower case with an s."""
        for body in objects:
            metadata = body["metadata"]
            path = path_of(body["apiVersion"], plural_of(body["kind"]), metadata.get("namespace"), metadata["name"])
            self.objects[path] = body

    def fail(self, error: Exception, part: str = "/") -> None:
        """Requests with that part in `<method> <path>` raise the error."""
        self.errors[part] = error

    @property
    def changes(self) -> list[Request]:
        """The requests that were not reads."""
        return [each for each in self.requests if each.method != "GET"]

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NO_PAIRS,
        headers: Mapping[str, str] = NO_PAIRS,
        body: Sent = None,
    ) -> Body | None:
        self._record(Request(method, path, query, headers, body))
        if method == "GET":
            return copy.deepcopy(self.objects[path]) if path in self.objects else self._listed(path, query)
        if method == "POST":
            assert isinstance(body, Mapping)
            created = f"{path}/{body['metadata']['name']}" if "metadata" in body else path
            if created == path:
                return copy.deepcopy(self.objects.get(path, {}))
            if created in self.objects:
                raise ConflictError(f"the API server refuses: {created} already exists")
            self.objects[created] = copy.deepcopy(dict(body))
            return copy.deepcopy(self.objects[created])
        if path not in self.objects:
            return None
        if method == "DELETE":
            return self.objects.pop(path)
        self.objects[path] = _patched(self.objects[path], body)
        return copy.deepcopy(self.objects[path])

    def stream(self, path: str, *, query: Mapping[str, str] = NO_PAIRS, follow: bool = False) -> Iterator[bytes]:
        self._record(Request("GET", path, query))
        for part in self.streams.get(path, ()):
            if isinstance(part, BaseException):
                raise part
            yield part

    def ask_pod(self, namespace: str, pod: str, port: int, path: str) -> bytes | None:
        self._record(Request("GET", f"pod {namespace}/{pod}:{port}{path}"))
        return self.pods(namespace, pod, port, path)

    def exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, seconds: int
    ) -> tuple[str, str]:
        self._record(Request("EXEC", f"pod {namespace}/{pod} {container}", body=command))
        return self.commands(namespace, pod, container, command)

    def renew(self) -> None:
        """Nothing is kept."""

    def _record(self, request: Request) -> None:
        self.requests.append(request)
        for part, error in self.errors.items():
            if part in f"{request.method} {request.path}":
                raise error

    def _listed(self, path: str, query: Mapping[str, str]) -> Body | None:
        found = _OBJECT.fullmatch(path)
        if not found or found["name"]:
            return None
        plural = path.rpartition("/")[2]
        of_kind = [
            (at, body)
            for at, body in self.objects.items()
            if (it := _OBJECT.fullmatch(at)) and it["name"]
            if path in (it["kind"], _NAMESPACE.sub("", it["kind"]))
        ]
        everywhere = {at.rpartition("/")[0].rpartition("/")[2] for at in self.objects} | self.served
        if plural not in everywhere and not path.startswith("/api/"):
            return None
        return {"items": [copy.deepcopy(body) for _, body in of_kind if _selected(body, query)]}


class Patches(Protocol):
    """pytest's `monkeypatch`."""

    def setattr(self, target: object, name: str, value: object, /) -> None: ...


def of_all_sessions(patches: Patches, made: FakeCluster | None = None) -> FakeCluster:
    """A cluster that answers all sessions by the Kubernetes client: `made`, or an empty one. Its `connection` is that
    of the last request."""
    made = made or FakeCluster()

    def instead(name: str) -> Callable[..., Any]:
        def answer(session: KubernetesCluster, *args: Any, **options: Any) -> Any:
            made.connection = session.connection
            return getattr(made, name)(*args, **options)

        return answer

    for name in ("request", "stream", "ask_pod", "exec", "renew"):
        patches.setattr(KubernetesCluster, name, instead(name))
    return made


def plural_of(kind: str) -> str:
    """`storageclasses` of StorageClass."""
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name[:-1]}ies" if name.endswith("cy") else f"{name}s"


def _selected(body: Body, query: Mapping[str, str]) -> bool:
    labels = body["metadata"].get("labels") or {}
    # Commas separate requirements, except within parentheses.
    requirements = re.findall(r"(?:[^,(]|\([^)]*\))+", query.get("labelSelector", ""))
    fields = filter(None, query.get("fieldSelector", "").split(","))
    return all(_meets(labels, each) for each in requirements) and all(_has(body, each) for each in fields)


def _meets(labels: Mapping[str, str], requirement: str) -> bool:
    if among := re.fullmatch(r"(\S+) in \((.*)\)", requirement):
        return labels.get(among[1]) in re.split(r",\s*", among[2])
    if requirement.startswith("!"):
        return requirement[1:] not in labels
    key, equals, value = requirement.partition("=")
    return labels.get(key) == value if equals else key in labels


def _has(body: Body, requirement: str) -> bool:
    path, _, value = requirement.partition("=")
    found: Any = body
    for key in path.split("."):
        found = (found or {}).get(key)
    return bool(found == value)


def _patched(body: Body, patch: Sent) -> Body:
    if isinstance(patch, str) or patch is None:
        return body
    if isinstance(patch, Mapping):
        return dict(_merged(body, patch))
    changed, steps = copy.deepcopy(body), cast(Sequence[Mapping[str, Any]], patch)
    for step in steps:
        *parents, last = step["path"].strip("/").split("/")
        place: Any = changed
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        at: Any = int(last) if isinstance(place, list) else last
        if step["op"] == "test":
            known = place[at] if isinstance(place, list) else place.get(at)
            if known != step["value"]:
                raise ConflictError(f"the API server refuses: {step['path']} is {known!r}")
        elif step["op"] == "remove":
            del place[at]
        else:
            place[at] = copy.deepcopy(step["value"])
    return changed


def _merged(body: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(body) if isinstance(body, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
