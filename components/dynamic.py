"""The base of dynamic resources, whose providers are part of this program, and the generated values that they keep.

Generated keys and passwords are read from a Secret of this stack if the state has lost them. A state can lose resources
if an update was killed before the state was written, or if an older state was restored. A newly generated key or
password would differ from the one that running pods use.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi.dynamic

from components.bodies import FIELD_MANAGER_ANNOTATION
from components.cluster import AMBIENT, Connection
from components.kubernetes import field_manager
from components.kubernetes_cluster import cluster_of
from components.pulumi_internals import restored_pickler


class Resource(pulumi.dynamic.Resource):
    """A dynamic resource without a limit on their number in a stack (`restored_pickler`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with restored_pickler():
            super().__init__(*args, **kwargs)


class KeepsInputs(pulumi.dynamic.ResourceProvider):
    """The base of providers of resources without an object, whose deletion does something: the state has their inputs
    of the last `up` unchanged."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> pulumi.dynamic.DiffResult:
        return pulumi.dynamic.DiffResult(changes=any(_olds.get(key) != _news.get(key) for key in {*_olds, *_news}))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> pulumi.dynamic.UpdateResult:
        return pulumi.dynamic.UpdateResult(dict(_news))


@dataclass(frozen=True)
class Keeper:
    """The Secret with a generated value."""

    namespace: pulumi.Input[str]

    secret: str

    connection: Connection = AMBIENT

    def inputs(self) -> dict[str, Any]:
        """The inputs of a dynamic resource for `kept`."""
        return {
            "namespace": self.namespace,
            "secret": self.secret,
            **self.connection.inputs(),
            "manager": field_manager(),
        }


def kept(keeper: Mapping[str, Any] | None) -> dict[str, str]:
    """The data of the Secret; empty if it does not exist or this stack did not create it.

    `keeper`: the result of `Keeper.inputs`; None for no Secret. Raises ClusterUnreachableError.
    """
    if keeper is None:
        return {}
    body = cluster_of(keeper).get("v1", "secrets", keeper["namespace"], keeper["secret"])
    if body is None or (body["metadata"].get("annotations") or {}).get(FIELD_MANAGER_ANNOTATION) != keeper["manager"]:
        return {}
    return {key: base64.b64decode(value).decode() for key, value in (body.get("data") or {}).items()}
