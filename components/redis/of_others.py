"""What a stack does for a Redis of others: it is looked at, and its Secret copied. Without Pulumi's resources."""

import base64
from dataclasses import dataclass
from typing import Any

import kubernetes

from ..cluster import ClusterUnreachableError, connect, read
from .existing import NotReachedError, UnfitError, check, look
from .external import ExternalSettings


@dataclass(frozen=True)
class Seen:
    """What is known of a Redis of others before it is used."""

    secret: dict[str, str] | None
    """What its Secret holds; None: it could not be read."""
    warning: str | None
    """Why it could not be looked at."""


def see(external: ExternalSettings, context: str | None, namespace: str) -> Seen:
    """Look at it with the Secret in its namespace, or else in `namespace`, a tenant's.

    Raises UnfitError where it would not do, and where the Secret that is to be copied cannot be.
    """
    name, where = external.secret_name, external.secret_namespace or namespace
    try:
        found = read(kubernetes.client.CoreV1Api(connect(context)).read_namespaced_secret, name, where)
        reason = f"there is no Secret {where}/{name}"
    except ClusterUnreachableError as error:
        found, reason = None, f"Secret {where}/{name} cannot be read: {error}"
    if found is None:
        if external.secret_namespace:
            raise UnfitError(f"has no credentials: {reason}")
        return Seen(None, reason)
    secret = _decoded(found)
    lacking = [key for key in ("username", "password", *(["ca.crt"] if external.tls else [])) if key not in secret]
    if lacking:
        raise UnfitError(f"has no {' and no '.join(lacking)} in Secret {where}/{name}: add it there")
    if not external.verify:
        return Seen(secret, None)
    try:
        check(look(external, secret))
    except NotReachedError as error:
        return Seen(secret, f"it does not answer from here: {error}".rstrip("."))
    return Seen(secret, None)


def _decoded(secret: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode().strip() for key, value in (secret.get("data") or {}).items()}
