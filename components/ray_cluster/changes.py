"""The hooks before and after an update of a RayCluster, and the options of its deletion and replacement.

Ray's autoscaler can scale a RayCluster between our last read and our update. A precondition on the resourceVersion does
not help: the operator writes the status all the time, so most updates would fail. An apply sets the whole list of
worker groups. So `restore` watches the RayCluster from the version that was read
(https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes), finds overwritten
values, and patches them as the autoscaler does.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pulumi

from components.cluster import Cluster, ClusterUnreachableError, ConflictError, path_of
from components.ray_cluster.manifests import ELASTIC_ANNOTATION, LABELS_OF_A_NEW_CLUSTER
from components.ray_cluster.pods import OPTIONS, deletion_seconds
from components.ray_cluster.request import DIGEST, OWNED, owned, unscaled_since
from components.rollout.pods import Pods
from components.rollout.retirement import Groups, NotRetiredError, retire
from components.rollout.settings import UpdatesSettings
from core.body import Body
from core.types import seconds

_SECONDS = 1
"""The shortest timeout of a watch. All past events arrive within it."""


def scaling_hooks(name: str, cluster: Cluster, updates: UpdatesSettings) -> pulumi.ResourceHookBinding:
    """Hooks that keep the autoscaler's numbers of workers.

    Before an update: empties worker groups that the update removes. Refuses the update if the autoscaler has scaled the
    cluster since the program read it. After the update: restores autoscaler writes that the update overwrote.
    """
    versions: list[str] = []
    """The resourceVersion of the last read."""

    def check(hook: pulumi.ResourceHookArgs) -> None:
        sent = hook.new_inputs
        assert sent is not None
        namespace, own = sent["metadata"]["namespace"], sent["metadata"]["name"]
        # Checked before groups are emptied, which a refused update must not do; and again after, because it takes time.
        unscaled_since(sent, cluster)
        try:
            retire(
                Groups(cluster, namespace, own),
                Pods(cluster, namespace, own),
                [group["groupName"] for group in sent["spec"].get("workerGroupSpecs") or ()],
                updates.strategy,
                seconds(updates.limit),
                pulumi.log.info,
            )
        except (NotRetiredError, ClusterUnreachableError) as error:
            raise NotRetiredError(f"RayCluster {namespace}/{own}: {error}") from None
        if version := unscaled_since(sent, cluster):
            versions.append(version)

    def repair(hook: pulumi.ResourceHookArgs) -> None:
        sent = hook.new_inputs
        assert sent is not None
        try:
            for version in versions:
                if groups := restore(sent, version, cluster):
                    pulumi.log.info(f"the autoscaler of {name} scaled {', '.join(groups)} during the update: restored")
        except ClusterUnreachableError as error:
            pulumi.log.warn(f"the update may have overwritten what the autoscaler of {name} wrote: {error}")

    return pulumi.ResourceHookBinding(
        before_update=[pulumi.ResourceHook(f"{name}-unscaled", check)],
        after_update=[pulumi.ResourceHook(f"{name}-restored", repair)],
    )


def deletion_options(body: Body) -> pulumi.ResourceOptions:
    """How a RayCluster is deleted or replaced. With fault tolerance the deletion timeout is KubeRay's limit.

    Switching fault tolerance off replaces the RayCluster. KubeRay removes its finalizer only from a RayCluster that
    still has the options (raycluster_controller.go: rayClusterReconcile). Without a replacement the RayCluster could
    never be deleted.

    A change of a label that the scheduler reads only at creation also replaces the RayCluster, and so does, in a queue
    of Kueue, whether it scales.
    """
    replacing = [f'metadata.labels["{label}"]' for label in LABELS_OF_A_NEW_CLUSTER]
    replacing.append(f'metadata.annotations["{ELASTIC_ANNOTATION}"]')
    if OPTIONS in body["spec"]:
        limit = deletion_seconds(body["metadata"]["annotations"])
        timeouts = pulumi.CustomTimeouts(delete=f"{limit}s")
        return pulumi.ResourceOptions(
            custom_timeouts=timeouts, replace_on_changes=replacing, delete_before_replace=True
        )
    return pulumi.ResourceOptions(replace_on_changes=[f"spec.{OPTIONS}", *replacing], delete_before_replace=True)


def restore(sent: Mapping[str, Any], version: str, cluster: Cluster) -> list[str]:
    """Restores autoscaler writes that the update of a RayCluster overwrote. Returns the names of these worker groups.

    `sent`: the update. `version`: resourceVersion of the RayCluster that was read before the update.
    If the autoscaler has scaled a group again since the update, its newer value stays.
    Raises ClusterUnreachableError if the API server does not answer or refuses.
    """
    namespace, name = sent["metadata"]["namespace"], sent["metadata"]["name"]
    kind = ("ray.io/v1", "rayclusters", namespace)
    watch = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_SECONDS)}
    watch["fieldSelector"] = f"metadata.name={name}"
    lost = overwritten(b"".join(cluster.stream(path_of(*kind), query=watch)), sent)
    if not lost:
        return []
    live = cluster.get(*kind, name) or {"spec": {}}
    places = {group: place for place, group in enumerate(owned(live["spec"]))}
    for group in lost.keys() & places.keys():
        with suppress(ConflictError):
            cluster.patch(*kind, name, list(_patch(places[group], group, lost[group], owned(sent["spec"])[group])))
    return list(lost)


def overwritten(history: bytes, sent: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The autoscaler's fields of worker groups that the update changed: their values right before it.

    `history`: events of a watch, one per line. The update is the first event with its digest.
    """
    digest = sent["metadata"]["annotations"][DIGEST]
    before: Mapping[str, Mapping[str, Any]] = {}
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
