"""Leaves to Ray's autoscaler what it has made of a RayCluster's workers, whatever else of the RayCluster is edited.

The autoscaler writes into the list that says everything else about the worker groups (Ray:
autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py, `_submit_scale_request`), and to server-side
apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/) the whole list is one value, with one owner.
So an edit has to say the autoscaler's part, too, as it is at that moment.

A digest of what the stack says lies in an annotation. The same digest: nothing of ours has changed, and the
autoscaler's fields are ignored. Another: they are sent as they are alive, group by group.
"""

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .pods import Body

OWNED = ("replicas", "scaleStrategy")
"""The autoscaler's fields of a worker group."""

DIGEST = "ray-platform/digest"
"""The annotation."""

_FORCE = "pulumi.com/patchForce"

Groups = Mapping[str, Mapping[str, Any]]
"""The autoscaler's fields of each worker group, by its name."""


@dataclass(frozen=True)
class Scaled:
    """A RayCluster that is there. `digest`: of what was last said of it; None where it was not said by a stack."""

    digest: str | None
    groups: Groups
    spec: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    """Its resourceVersion."""


class UnknownScaleError(Exception):
    """What an autoscaler has made of a RayCluster cannot be told; the text says why."""


def scales(body: Body) -> bool:
    """Whether an autoscaler sets the numbers of its workers."""
    return bool(body["spec"].get("enableInTreeAutoscaling"))


def read_scaled(context: str | None, namespace: str, name: str) -> Scaled | None:
    """A RayCluster as it is; None where there is none.

    Raises UnknownScaleError where the API server does not answer or refuses.
    """
    # Who compares stack files has no cluster to ask, and does not wait for the client's import.
    import kubernetes

    from ..cluster import ClusterUnreachableError, connect, read

    try:
        api = kubernetes.client.CustomObjectsApi(connect(context))
        there = read(api.get_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters", name)
    except ClusterUnreachableError as error:
        raise UnknownScaleError(
            f"RayCluster {namespace}/{name} cannot be read, so an edit could take workers from its autoscaler: {error}"
        ) from error
    if there is None:
        return None
    annotations = there["metadata"].get("annotations") or {}
    return Scaled(annotations.get(DIGEST), owned(there["spec"]), there["spec"], there["metadata"]["resourceVersion"])


def as_scaled(body: Body, scaled: Scaled | None) -> tuple[Body, list[str]]:
    """The RayCluster as it is sent, and the paths in it that are ignored, in Pulumi's way to write paths.

    `scaled`: as it is; None where it is made new.
    """
    digest = _digest(body)
    annotations = {**body["metadata"]["annotations"], DIGEST: digest, _FORCE: "true"}
    spec = copy.copy(body["spec"])
    alive = scaled.groups if scaled else {}
    # In their present order: the autoscaler names a group by its place in the list.
    places = {name: place for place, name in enumerate(alive)}
    groups = [{**group, **alive.get(group["groupName"], {})} for group in spec.get("workerGroupSpecs", ())]
    groups.sort(key=lambda group: places.get(group["groupName"], len(places)))
    if groups:
        spec["workerGroupSpecs"] = groups
    same = scaled is not None and scaled.digest == digest
    ignored = [f"spec.workerGroupSpecs[{index}].{key}" for index in range(len(groups)) for key in OWNED]
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}, "spec": spec}, ignored if same else []


def as_scaled_once(body: Body, scaled: Scaled | None) -> Body:
    """A RayCluster that does not scale as it is sent: where it did before, its autoscaler may own the list of worker
    groups, so that it is taken by force, then and whenever it is edited later.

    `scaled`: as it is; None where it is made new.
    """
    if scaled is None or scaled.digest is None:
        return body
    annotations = {**body["metadata"]["annotations"], DIGEST: _digest(body), _FORCE: "true"}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def unscaled_since(sent: Mapping[str, Any], context: str | None) -> str | None:
    """The resourceVersion at which a RayCluster is still as what is `sent` was put together; None where it is gone.

    Raises UnknownScaleError where the autoscaler has gone on since.
    """
    metadata = sent["metadata"]
    now = read_scaled(context, metadata["namespace"], metadata["name"])
    groups = owned(sent["spec"])
    moved = [name for name, alive in (now.groups if now else {}).items() if groups.get(name, alive) != alive]
    if moved:
        raise UnknownScaleError(
            f"RayCluster {metadata['namespace']}/{metadata['name']}: its autoscaler has just scaled "
            f"{', '.join(moved)}, and nothing was changed. Run `pulumi up` again; if it says so each time, after "
            "`pulumi refresh`"
        )
    return now.version if now else None


def owned(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The autoscaler's fields of each worker group, by its name, in their order."""
    groups: Sequence[Mapping[str, Any]] = spec.get("workerGroupSpecs") or ()
    return {group["groupName"]: {key: group[key] for key in OWNED if key in group} for group in groups}


def _digest(body: Body) -> str:
    """Of all that the stack says. What is known only later, such as another resource's name, does not count."""
    said = json.dumps([body["metadata"], body["spec"]], sort_keys=True, default=lambda _later: None)
    return hashlib.sha256(said.encode()).hexdigest()[:16]
