"""Keeps KubeRay's CRDs while there is something of their kinds; see docs/decisions/0002-crd-guard.md."""

import sys
from collections.abc import Mapping
from typing import Any

import kubernetes
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

from ..cluster import ClusterUnreachableError, connect, read

_NAMED = 10
"""So many objects are named in the message; of more only the number is said."""


class CrdsInUseError(Exception):
    """Deleting the CRDs would delete objects, which the text names; or it cannot be told."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("crd-guard", dict(props))

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=any(_olds.get(key) != value for key, value in _news.items()))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(dict(_news))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        # The plugin answers with the exception as Python prints it; without its stack the message can be read.
        sys.tracebacklimit = 0
        refuse_if_used(_props["kinds"], _props.get("context"))


class CrdGuard(Resource, module="ray-platform", name="CrdGuard"):
    """A resource without an object. Its deletion, which comes before that of the CRDs it depends on, asks the API
    server and fails while there are objects of their kinds. So a plain `pulumi destroy`, which runs no program, is
    refused too.
    """

    def __init__(
        self, name: str, args: Mapping[str, str | list[str] | None], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(_Provider(), name, {**args}, opts)


def refuse_if_used(kinds: list[str], context: str | None) -> None:
    """Raises CrdsInUseError while there is an object of one of `kinds`, plural names in the group ray.io."""
    try:
        client = kubernetes.client.CustomObjectsApi(connect(context))
        used = [
            f"{body['kind']} {body['metadata']['namespace']}/{body['metadata']['name']}"
            for plural in kinds
            for body in _objects(client, plural)
        ]
    except ClusterUnreachableError as error:
        raise CrdsInUseError(f"cannot tell whether KubeRay's CRDs are in use, so they stay: {error}") from None
    if used:
        more = f" and {len(used) - _NAMED} more" if len(used) > _NAMED else ""
        raise CrdsInUseError(
            f"KubeRay's CRDs are not deleted while there is {', '.join(used[:_NAMED])}{more}: "
            "these would be deleted with them. Delete them first, with kubectl or with the stack that they belong to, "
            "then run the command again"
        )


def _objects(client: Any, plural: str) -> list[dict[str, Any]]:
    listed = read(client.list_cluster_custom_object, "ray.io", "v1", plural)
    return [{"kind": plural, **body} for body in listed["items"]] if listed else []
