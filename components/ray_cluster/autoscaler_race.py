"""Restores what Ray's autoscaler wrote between the last look at a RayCluster and its update, which overwrote it.

No precondition keeps that out: the operator writes the status all the time, so that most updates would fail by their
resource version, and an apply sets the whole list of worker groups. What was overwritten is found in the API server's
own history, by a watch from the version that was looked at (https://kubernetes.io/docs/reference/using-api/
api-concepts/#efficient-detection-of-changes), and is written again as the autoscaler writes it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import kubernetes

from ..cluster import connect, read, read_bytes
from ..rollout.pods import changing
from .scaled import DIGEST, OWNED, Groups, owned

_SECONDS = 1
"""The least that a watch may take. All events are there by then."""


def restore(sent: Mapping[str, Any], version: str, context: str | None) -> list[str]:
    """Restores writes of the autoscaler that the update of a RayCluster overwrote. Returns these worker groups' names.

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
