"""Restores autoscaler writes that our update overwrote.

Ray's autoscaler can scale a RayCluster between our last read and our update. A precondition on the resourceVersion does
not help: the operator writes the status all the time, so most updates would fail. An apply sets the whole list of
worker groups. So this module watches the RayCluster from the version that was read
(https://kubernetes.io/docs/reference/ using-api/api-concepts/#efficient-detection-of-changes), finds overwritten
values, and patches them as the autoscaler does.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import kubernetes

from ..cluster import connect, read, read_bytes
from ..rollout.pods import changing
from .scaled import DIGEST, OWNED, Groups, owned

_SECONDS = 1
"""The shortest timeout of a watch. All past events arrive within it."""


def restore(sent: Mapping[str, Any], version: str, context: str | None) -> list[str]:
    """Restores autoscaler writes that the update of a RayCluster overwrote. Returns the names of these worker groups.

    `sent`: the update. `version`: resourceVersion of the RayCluster that was read before the update.
    If the autoscaler has scaled a group again since the update, its newer value stays.
    Raises ClusterUnreachableError if the API server does not answer or refuses.
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
    live = read(api.get_namespaced_custom_object, *kind, metadata["name"]) or {"spec": {}}
    places = {name: place for place, name in enumerate(owned(live["spec"]))}
    for name in lost.keys() & places.keys():
        with changing():
            api.patch_namespaced_custom_object(
                *(*kind, metadata["name"], list(_patch(places[name], name, lost[name], owned(sent["spec"])[name]))),
                _content_type="application/json-patch+json",
            )
    return list(lost)


def overwritten(history: bytes, sent: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The autoscaler's fields of worker groups that the update changed: their values right before it.

    `history`: events of a watch, one per line. The update is the first event with its digest.
    """
    digest = sent["metadata"]["annotations"][DIGEST]
    before: Groups = {}
    for line in history.splitlines():
        event = json.loads(line)
        if event["type"] == "ERROR" or event["object"]["metadata"].get("annotations", {}).get(DIGEST) == digest:
            break
        before = owned(event["object"]["spec"])
    applied = owned(sent["spec"])
    return {name: alive for name, alive in before.items() if name in applied and alive != applied[name]}


def _patch(place: int, name: str, lost: Mapping[str, Any], applied: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A JSON patch that fails if the group has changed since the update: then the autoscaler has scaled it again."""
    at = f"/spec/workerGroupSpecs/{place}"
    yield {"op": "test", "path": f"{at}/groupName", "value": name}
    if "replicas" in applied:
        yield {"op": "test", "path": f"{at}/replicas", "value": int(applied["replicas"])}
    yield from ({"op": "add", "path": f"{at}/{key}", "value": lost[key]} for key in OWNED if key in lost)
