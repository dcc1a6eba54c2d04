"""What was made once and is kept in a Secret of this stack, where the state has lost it.

A state loses what a killed update has made where it was written at the end only, and where an older one was put back.
Made again, a key or a password would be another than the one that pods run with.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from .cluster import request
from .kubernetes import FIELD_MANAGER_ANNOTATION, field_manager


@dataclass(frozen=True)
class Keeper:
    """The Secret that holds it."""

    namespace: pulumi.Input[str]

    secret: str

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    def inputs(self) -> dict[str, Any]:
        """As an input of a dynamic resource, for `kept`."""
        return {
            "namespace": self.namespace,
            "secret": self.secret,
            "context": self.context,
            "manager": field_manager(),
        }


def kept(keeper: Mapping[str, Any] | None) -> dict[str, str]:
    """The texts in the Secret; none where there is no such Secret, or this stack did not make it.

    `keeper`: what `Keeper.inputs` gave, None for nothing to look for. Raises ClusterUnreachableError.
    """
    if keeper is None:
        return {}
    path = f"/api/v1/namespaces/{keeper['namespace']}/secrets/{keeper['secret']}"
    # Pulumi drops what is None on its way to the provider.
    body = request(keeper.get("context"), "GET", path)
    if body is None or (body["metadata"].get("annotations") or {}).get(FIELD_MANAGER_ANNOTATION) != keeper["manager"]:
        return {}
    return {key: base64.b64decode(value).decode() for key, value in (body.get("data") or {}).items()}
