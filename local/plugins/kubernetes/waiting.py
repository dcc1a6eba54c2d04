"""Waits until an object is ready, or deleted: with watches, a time limit, and an end when the engine requests one."""

import queue
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from local.plugins.kubernetes.cluster import Cluster, Watch
from local.plugins.kubernetes.diagnosis import explain
from local.plugins.kubernetes.engine import Engine
from local.plugins.kubernetes.errors import ApiError, CancelledError, NoSuchKindError, NotReadyError, UnreachableError
from local.plugins.kubernetes.objects import Kind, at, id_of, name_of, namespace_of
from local.plugins.kubernetes.readiness import Rule
from local.plugins.kubernetes.values import Json

_RETRY_SECONDS = 1.0
_SETTLED_SECONDS = 10.0
"""As service.go of Pulumi's plugin waits for endpoints (readiness.py)."""
_EXPLAIN_SECONDS = 10.0
_TICK_SECONDS = 0.5
"""The longest delay until a request to stop is noticed."""

FAILED = "Resource '{name}' was created but failed to initialize"

Role = Literal["object", "other"]


@dataclass
class _Feed:
    """Watches that put their events into one queue. A watch is opened again whenever the server ends it."""

    cluster: Cluster
    events: "queue.Queue[tuple[Role, str, Json]]" = field(default_factory=queue.Queue)
    _watches: dict[int, Watch] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def add(self, role: Role, kind: Kind, namespace: str, **selectors: str) -> None:
        threading.Thread(target=self._follow, args=(role, kind, namespace, selectors), daemon=True).start()

    def _follow(self, role: Role, kind: Kind, namespace: str, selectors: dict[str, str]) -> None:
        while not self._stopped.is_set():
            try:
                watch = self.cluster.watch(kind, namespace, **selectors)
                self._watches[threading.get_ident()] = watch
                if self._stopped.is_set():
                    watch.close()
                self.events.put((role, "OPENED", {}))
                for change, obj in watch:
                    self.events.put((role, change, obj))
            except (ApiError, NoSuchKindError, UnreachableError) as error:
                # Refused or interrupted for now; the time limit of the wait decides when this has lasted too long.
                self.events.put((role, "LOST", {"message": str(error)}))
                self._stopped.wait(_RETRY_SECONDS)

    def next(self) -> tuple[Role, str, Json] | None:
        try:
            return self.events.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return None

    def __enter__(self) -> "_Feed":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._stopped.set()
        for watch in list(self._watches.values()):
            watch.close()


class Waits:
    """The waits of one provider process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def check_cancelled(self) -> None:
        """Raises: CancelledError: the engine asked to stop."""
        if self._cancelled.is_set():
            raise CancelledError("cancelled")

    def pause(self, seconds: float) -> None:
        """Sleep, but not past a request to stop.

        Raises:
            CancelledError: the engine asked to stop.
        """
        self._cancelled.wait(seconds)
        self.check_cancelled()

    def until_ready(self, cluster: Cluster, urn: str, live: Json, rule: Rule, seconds: float) -> Json:
        """Waits until a rule is met and returns the object in that state.

        Raises:
            NotReadyError: the time is over, the object failed or was deleted, or the engine asked to stop.
        """
        others: dict[str, Json] = {}
        verdict = rule.check(live, [])
        if verdict.ready and rule.others is None:
            return live
        progress = _Progress(self._engine, urn, seconds)
        changed = time.monotonic()
        with _Feed(cluster) as feed, progress:
            feed.add("object", Kind.of_object(live), namespace_of(live), fieldSelector=f"metadata.name={name_of(live)}")
            if rule.others:
                feed.add("other", rule.others[0], namespace_of(live), labelSelector=rule.others[1])
            while True:
                event = feed.next()
                if event:
                    role, change, obj = event
                    if role == "other":
                        _keep(others, change, obj)
                        changed = time.monotonic()
                    elif change == "DELETED":
                        raise NotReadyError(f"'{id_of(live)}' was deleted while it was waited for", live)
                    elif change in ("ADDED", "MODIFIED"):
                        live = obj
                verdict = rule.check(live, list(others.values()))
                ended = self._ended(name_of(live), progress, rule.late)
                settled = verdict.settles and (ended or time.monotonic() - changed > _SETTLED_SECONDS)
                if verdict.ready or settled:
                    return live
                progress.show(verdict.message, cluster, live)
                if verdict.failed:
                    ended = FAILED.format(name=name_of(live))
                if ended:
                    raise NotReadyError(ended, live, [verdict.message, *explain(cluster, live)])

    def _ended(self, name: str, progress: "_Progress", late: str) -> str:
        if self._cancelled.is_set():
            return f'Resource operation was cancelled for "{name}"'
        return late.format(name=name) if progress.late else ""

    def until_gone(self, cluster: Cluster, urn: str, live: Json, seconds: float) -> None:
        """Waits until a deleted object does not exist any more, or another one has its name.

        Raises:
            NotReadyError: the time is over (with the remaining finalizers), or the engine asked to stop.
        """
        kind, namespace, name = Kind.of_object(live), namespace_of(live), name_of(live)
        uid = at(live, "metadata", "uid")
        progress = _Progress(self._engine, urn, seconds)
        found = _find(cluster, kind, namespace, name)
        if found is None:
            return
        with _Feed(cluster) as feed, progress:
            feed.add("object", kind, namespace, fieldSelector=f"metadata.name={name}")
            while True:
                event = feed.next()
                if event and event[1] != "LOST":
                    _, change, obj = event
                    # The deletion can happen between two watches, so each watch begins with a read.
                    if change == "OPENED":
                        found = _find(cluster, kind, namespace, name)
                    else:
                        found = None if change == "DELETED" else obj
                    if found is None or (uid and at(found, "metadata", "uid") != uid):
                        return
                finalizers = ", ".join(at(found, "metadata", "finalizers") or [])
                progress.show(f"Waiting for deletion ({finalizers or 'no finalizers left'})", cluster, None)
                ended = self._ended(name, progress, "timed out waiting for the condition")
                if ended:
                    blame = f": finalizers might be preventing deletion ({finalizers})" if finalizers else ""
                    raise NotReadyError(f"{ended}{blame}", found or live)


class _Progress:
    """The time limit of a wait, and the line that the engine shows meanwhile."""

    def __init__(self, engine: Engine, urn: str, seconds: float) -> None:
        self.seconds = seconds
        self._engine, self._urn = engine, urn
        self._shown = ""
        self._begun = time.monotonic()
        self._explained = self._begun

    @property
    def late(self) -> bool:
        return time.monotonic() - self._begun >= self.seconds

    def show(self, message: str, cluster: Cluster, obj: Json | None) -> None:
        """Shows what the wait is for and, when it takes long, the first reason that the cluster reports."""
        if message != self._shown:
            self._shown = message
            self._engine.status(self._urn, message)
        if obj and time.monotonic() - self._explained > _EXPLAIN_SECONDS:
            self._explained = time.monotonic()
            if reasons := explain(cluster, obj):
                self._engine.status(self._urn, f"{message}: {reasons[0]}")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._engine.status(self._urn, "")


def _keep(others: dict[str, Json], change: str, obj: Json) -> None:
    if change == "DELETED":
        others.pop(name_of(obj), None)
    elif change in ("ADDED", "MODIFIED"):
        others[name_of(obj)] = obj


def _find(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Json | None:
    try:
        return cluster.get(kind, namespace, name)
    except NoSuchKindError:
        return None
    except ApiError as error:
        if error.not_found:
            return None
        raise
