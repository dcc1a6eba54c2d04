"""What goes wrong between an API server and an object, as errors with the server's own words."""

import json
from collections.abc import Sequence
from typing import Any

from local.plugins.kubernetes.objects import Kind, at
from local.plugins.kubernetes.values import Json


class ApiError(Exception):
    """The API server refused a request: HTTP status, Kubernetes' reason, and its message."""

    def __init__(self, status: int, body: bytes) -> None:
        try:
            parsed: Any = json.loads(body)
        except ValueError:
            parsed = {"message": body.decode(errors="replace").strip()}
        self.status = status
        self.body: Json = parsed if isinstance(parsed, dict) else {}
        self.reason: str = self.body.get("reason") or ""
        super().__init__(self.body.get("message") or f"the API server answered HTTP status {status}")

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def namespace_not_found(self) -> bool:
        return self.status == 404 and at(self.body, "details", "kind") == "namespaces"

    @property
    def already_exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        return self.status == 409 and self.reason == "Conflict"

    @property
    def forbidden(self) -> bool:
        return self.status == 403


class NoSuchKindError(Exception):
    """The API server serves no such kind; for a custom resource its definition is missing."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')


class UnreachableError(Exception):
    """The cluster does not answer, or the kubeconfig does not say where it is."""


class RefusedError(Exception):
    """The operation failed and nothing was made; the message is for the user."""


class CancelledError(Exception):
    """The engine asked to stop."""


class NotReadyError(Exception):
    """An object was written, but did not become ready: what was waited for, what was last seen, and the object."""

    def __init__(self, message: str, last_seen: Json, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.last_seen = last_seen
        self.details = list(details)
