"""Leaves to Ray's autoscaler what it has made of a RayCluster's workers, whatever else of the RayCluster is edited.

The autoscaler writes into the list that says everything else about the worker groups (Ray:
autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py, `_submit_scale_request`), and to server-side
apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/) the whole list is one value, with one owner.
So an edit has to say the autoscaler's part, too, as it is at that moment.

A digest of what the stack says lies in an annotation. The same digest: nothing of ours has changed, and the
autoscaler's fields are ignored. Another: they are sent as they are alive, group by group.

What the autoscaler writes between the last look and the update is written again afterwards. No precondition keeps that
out: the operator writes the status all the time, so that most updates would fail by their resource version. What was
overwritten is found in the API server's own history, by a watch from the version that was looked at
(https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
"""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kubernetes

from ..cluster import connect, read, read_bytes
from ..rollout.pods import changing
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


_SECONDS = 1
"""The least that a watch may take. All events are there by then."""


def give_back(sent: Mapping[str, Any], version: str, context: str | None) -> list[str]:
    """Writes again what the update of a RayCluster has set back. Returns the names of these worker groups.

    `sent`: the update. `version`: resourceVersion of what was looked at before it.
    Where the autoscaler has gone on since the update, what it says now stays.
    Raises ClusterUnreachableError where the API server does not answer or refuses.
    """
    metadata = sent["metadata"]
    kind = ("ray.io", "v1", metadata["namespace"], "rayclusters")
    api = kubernetes.client.CustomObjectsApi(connect(context))
    history = read_bytes(
        api.list_namespaced_custom_object,
        *kind,
        field_selector=f"metadata.name={metadata['name']}",
        resource_version=version,
        watch=True,
        timeout_seconds=_SECONDS,
    )
    lost = overwritten(history or b"", sent)
    if not lost:
        return []
    there = read(api.get_namespaced_custom_object, *kind, metadata["name"]) or {"spec": {}}
    places = {name: place for place, name in enumerate(owned(there["spec"]))}
    for name in lost.keys() & places.keys():
        with changing():
            api.patch_namespaced_custom_object(
                *(*kind, metadata["name"], list(_patch(places[name], name, lost[name], owned(sent["spec"])[name]))),
                _content_type="application/json-patch+json",
            )
    return list(lost)


def overwritten(history: bytes, sent: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The autoscaler's fields of worker groups that are others in the update than they were right before it.

    `history`: events of a watch, a line each. The update is the first with its digest.
    """
    digest = sent["metadata"]["annotations"][DIGEST]
    before: Groups = {}
    for line in history.splitlines():
        event = json.loads(line)
        if event["type"] == "ERROR" or event["object"]["metadata"].get("annotations", {}).get(DIGEST) == digest:
            break
        before = owned(event["object"]["spec"])
    said = owned(sent["spec"])
    return {name: alive for name, alive in before.items() if name in said and alive != said[name]}


def _patch(place: int, name: str, lost: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Only where the group is as the update has made it: else the autoscaler has gone on."""
    at = f"/spec/workerGroupSpecs/{place}"
    yield {"op": "test", "path": f"{at}/groupName", "value": name}
    if "replicas" in said:
        yield {"op": "test", "path": f"{at}/replicas", "value": int(said["replicas"])}
    yield from ({"op": "add", "path": f"{at}/{key}", "value": lost[key]} for key in OWNED if key in lost)
