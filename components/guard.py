"""Guards: resources without an object. They are deleted before the resources that they depend on, and can refuse that.

A guard's deletion runs in Pulumi's Python plugin, so a plain `pulumi destroy`, which runs no program, is refused too;
see docs/decisions/0002-crd-guard.md.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.dynamic import CreateResult

from components.cluster import Cluster
from components.dynamic import KeepsInputs

_NAMED = 10
"""The most objects that a message names. Of the others it reports only the number."""


class InUseError(Exception):
    """The deletion would delete objects in use, which the message names; or their use is not known."""


class GuardProvider(KeepsInputs):
    """The provider of a guard. `refuse` decides whether the guard may be deleted."""

    def refuse(self, props: Mapping[str, Any]) -> None:
        """Raises InUseError if the guarded objects must stay. `props`: the inputs of the last `up`."""
        raise NotImplementedError

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("guard", dict(props))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        # The plugin reports the exception as Python prints it. Without a traceback the message is readable.
        sys.tracebacklimit = 0
        self.refuse(_props)


def kuberay_objects(cluster: Cluster, kinds: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """The objects of these kinds, plural names in the group ray.io, of a namespace or of all; each has its `kind`.

    Raises ClusterUnreachableError if they cannot be read, also if that is forbidden. A kind that is not served has no
    objects.
    """
    return custom_objects(cluster, [f"{plural}.v1.ray.io" for plural in kinds], namespace)


def custom_objects(cluster: Cluster, resources: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """As `kuberay_objects`, of kinds of any group: `queues.v1beta1.scheduling.volcano.sh`."""
    found: list[dict[str, Any]] = []
    for resource in resources:
        plural, version, group = resource.split(".", 2)
        listed = cluster.list(f"{group}/{version}", plural, namespace)
        found += [{"kind": plural, **body} for body in listed or ()]
    return found


def named(objects: Sequence[Mapping[str, Any]]) -> str:
    """Objects as a message names them: `RayCluster team-a/training and 3 more`."""
    names = [f"{body['kind']} {_place(body['metadata'])}" for body in objects]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _place(metadata: Mapping[str, Any]) -> str:
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
