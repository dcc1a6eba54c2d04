"""What the manifests of Volcano and of Kueue have in common. Pure functions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from components.bodies import moved, restricted_namespace
from core.body import Body

CONFIGURATION = "ray-platform/configuration"
"""Annotation of pods: a digest of the configuration that they read at start. A change replaces the pods."""


@dataclass(frozen=True)
class Certificate:
    """The certificate of a webhook. Values may be Outputs."""

    authority: Any
    """The authority with which the API server validates it, PEM."""
    certificate: Any
    """PEM."""
    key: Any
    """PEM, secret."""
    bundle: Any
    """The authority for webhook configurations, in base64."""
    digest: Any
    """Digest of the certificate."""


def staged(
    manifest: Iterable[Body],
    namespace: str,
    instead_of: str,
    deployment: Callable[[Body], Body],
    other: Callable[[Body], Body],
) -> tuple[list[Body], list[Body], list[Body]]:
    """Copies of the objects in three stages, each of which needs the one before it: their namespace; access and
    configuration; Deployments and Services.

    `instead_of`: the namespace in the manifest. `deployment`: adapts a Deployment; `other`: all that is neither that
    nor a Service.
    """
    first: list[Body] = [restricted_namespace(namespace)]
    access: list[Body] = []
    last: list[Body] = []
    for original in manifest:
        body = moved(original, namespace, instead_of)
        match body["kind"]:
            case "Deployment":
                last.append(deployment(body))
            case "Service":
                last.append(body)
            case _:
                access.append(other(body))
    return first, access, last
