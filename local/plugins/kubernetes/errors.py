"""Errors of an API server about an object, with the server's own words."""

import json
from collections.abc import Sequence
from typing import Any

from local.plugins.kubernetes.objects import Kind, at
from local.plugins.kubernetes.values import Json

PATCH_FORCE = "pulumi.com/patchForce"
"""Annotation: an update takes over the fields that other managers own."""

_CONFLICT_HINT = (
    "Take the named fields out of the program to leave them to their manager, or set the annotation "
    f'{PATCH_FORCE}: "true" to take them over.'
)


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
    """The API server does not serve this kind; for a custom resource its CRD is missing."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')


class UnreachableError(Exception):
    """The cluster does not answer, or the kubeconfig does not contain its address."""


class RefusedError(Exception):
    """The operation failed and nothing was created; the message is for the user."""


class CancelledError(Exception):
    """The engine asked to stop."""


class NotReadyError(Exception):
    """An object was written, but did not become ready: the awaited condition, the last seen one, and the object."""

    def __init__(self, message: str, last_seen: Json, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.last_seen = last_seen
        self.details = list(details)


def refused_create(error: ApiError | NoSuchKindError) -> RefusedError:
    """The error for an object that could not be created."""
    if isinstance(error, NoSuchKindError):
        return RefusedError(
            "the Kubernetes API server reported that the apiVersion for this resource does not exist. "
            f"Verify that any required CRDs have been created: {error}"
        )
    if error.already_exists:
        return RefusedError(
            f"{error}\n\nThe resource already exists in the cluster. Depending on how that came about:\n"
            "  - the Pulumi resource was renamed: give it an alias, or deleteBeforeReplace if it has to be replaced;\n"
            "  - Pulumi shall manage the existing object: `pulumi import` it;\n"
            "  - it may be overwritten: set upsertExistingObjects on the provider."
        )
    hint = f"\n{_CONFLICT_HINT}" if error.conflict else ""
    return RefusedError(f"the resource was not successfully created by the Kubernetes API server: {error}{hint}")


def refused_update(error: ApiError | NoSuchKindError, manager: str) -> RefusedError:
    """The error for an update that the server refused; `manager` is the field manager that tried."""
    if isinstance(error, ApiError) and error.conflict:
        return RefusedError(
            f"server-side apply field conflict: the resource managed by field manager {manager!r} had an apply "
            f"conflict: {error}\n{_CONFLICT_HINT}"
        )
    return RefusedError(f"update failed: {error}")
