"""From the body of a RayCluster to the request of an update, step by step.

Pure functions, except for the two that read the live RayCluster (`read_scaled`, `unscaled_since`).

A body is made in this order, and each step stands in one place:

1. defaults of stack and tenant (stacks/objects/ray_clusters.py), the settings rendered, and the overrides merged into
   them (`spec.cluster_spec`);
2. what the scheduler needs (`manifests.ray_cluster`);
3. mirrors of images (components/objects.py, `Part.finished`). Up to here `check`, `impact` and `render` have the same
   body;
4. values that only an update knows: the account of another stack, and the prefix of the keys in Redis;
5. `suspend: false`, where this stack has suspended it and no longer does;
6. the stamp by which old pods are recognized (components/rollout/templates.py);
7. the digest of all of it, and the autoscaler's values (`as_scaled`);
8. namespace and field manager (components/kubernetes.py).

So a stamp and a digest differ whenever one of the steps before them does.

The autoscaler writes into the list of worker groups (Ray: autoscaler/v2/instance_manager/cloud_providers/kuberay/
cloud_provider.py, `_submit_scale_request`). For server-side apply
(https://kubernetes.io/docs/reference/using-api/server-side-apply/) the whole list is one value with one owner. So an
update of the list must include the autoscaler's live values.

An annotation holds the digest. If it is the same, the stack's part has not changed, and the autoscaler's fields are
ignored. If it differs, their live values are sent, group by group.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.bodies import by_force, digest
from components.cluster import Cluster, ClusterUnreachableError
from components.queues.admitted import holds, kept_by_kueue
from components.ray_cluster.pods import OPTIONS
from components.rollout.templates import stamped
from core.body import Body

OWNED = ("replicas", "scaleStrategy")
"""The autoscaler's fields of a worker group."""

DIGEST = "ray-platform/digest"
"""The annotation."""

CONFIG = "rayClusterConfig"
"""The key of a RayService with the spec of its RayClusters."""

Groups = Mapping[str, Mapping[str, Any]]
"""The autoscaler's fields of each worker group, by its name."""


@dataclass(frozen=True)
class Scaled:
    """A live RayCluster. `digest`: its annotation, from the last update; None if no stack has applied it."""

    digest: str | None
    groups: Groups
    spec: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    """Its resourceVersion."""

    suspenders: frozenset[str] = frozenset()
    """The field managers that own `spec.suspend`."""


@dataclass(frozen=True)
class Later:
    """Values that only an update knows, or their Outputs."""

    service_account: Any = None
    """Account of pods for which the body names none; None: KubeRay creates one for the head."""

    keys: Any = None
    """Prefix of the keys in Redis (storage_namespace); None without fault tolerance."""


@dataclass(frozen=True)
class Request:
    """A RayCluster as it is sent."""

    body: Body

    ignored: tuple[str, ...] = ()
    """Paths that keep their live values, as Pulumi writes them."""

    version: str = ""
    """Digest of the desired RayCluster, without the autoscaler's values."""

    scales: bool = False
    """Whether an autoscaler sets the numbers of its workers."""


def request(body: Body, live: Scaled | None, manager: str, later: Later, *, queued: bool) -> Request:
    """The request to create or update a RayCluster.

    `body`: as `check` has it. `live`: the live RayCluster; None if it is created. `manager`: field manager of this
    stack. `queued`: whether Kueue may suspend it.
    """
    body = _known(body, later)
    if queued:
        if not scales(body):
            return _in_queue(_marked(body, digest(body)), None, live, digest(body))
        # Of a RayCluster that scales, Kueue compares the numbers alone, and its pods are replaced as without it.
        body = stamped(body, live.spec if live else None)
        return replace(_in_queue(as_scaled(body, live)[0], None, live, digest(body)), scales=True)
    body = stamped(_resumed(body, live, manager), live.spec if live else None)
    if scales(body):
        sent, ignored = as_scaled(body, live)
        return Request(sent, tuple(ignored), digest(body), scales=True)
    return Request(as_scaled_once(by_force(body) if later.keys is not None else body, live), version=digest(body))


def service_request(body: Body, live: Scaled | None) -> Request:
    """The request to create or update a RayService in a queue of Kueue. `live`: its RayCluster, in its spec."""
    return _in_queue(_marked(body, digest(body)), CONFIG, live, digest(body))


def _in_queue(body: Body, key: str | None, live: Scaled | None, desired: str) -> Request:
    """A request with what Kueue has written into worker groups. `key`: of the RayCluster's spec in a RayService.
    `desired`: digest of the stack's part. While it is the same, the live groups stay."""
    spec, there = body["spec"], live.spec if live else {}
    own = spec[key] if key else spec
    same = live is not None and live.digest == desired and holds(there, own)
    kept = kept_by_kueue(own, there)
    sent = {**body, "spec": {**spec, key: kept} if key else kept}
    path = f"spec.{key}.workerGroupSpecs" if key else "spec.workerGroupSpecs"
    return Request(sent, (path,) if same else (), desired)


def _known(body: Body, later: Later) -> Body:
    spec = body["spec"]
    if later.keys is not None:
        spec = {**spec, OPTIONS: {**spec[OPTIONS], "externalStorageNamespace": later.keys}}
    if later.service_account is not None:
        spec = {**spec, "headGroupSpec": _with_account(spec["headGroupSpec"], later.service_account)}
        if groups := spec.get("workerGroupSpecs"):
            spec = {**spec, "workerGroupSpecs": [_with_account(each, later.service_account) for each in groups]}
    return {**body, "spec": spec}


def _with_account(group: Body, account: Any) -> Body:
    template = group["template"]
    pod = {"serviceAccountName": account, **template["spec"]}
    return {**group, "template": {**template, "spec": pod}}


def _resumed(body: Body, live: Scaled | None, manager: str) -> Body:
    """The RayCluster with `suspend: false` where this stack once set `suspend` and no longer does.

    Without the field KubeRay would never resume it (ray-operator/controllers/ray/raycluster_controller.go:
    calculateStatus). A `suspend` that another field manager has set (idle termination, kubectl) is left alone.
    """
    if live is None or "suspend" in body["spec"] or manager not in live.suspenders:
        return body
    # Others may own the field, too.
    return by_force({**body, "spec": {**body["spec"], "suspend": False}})


class UnknownScaleError(Exception):
    """The autoscaler's values of a RayCluster are not known; the message has the reason."""


def scales(body: Mapping[str, Any]) -> bool:
    """Whether an autoscaler sets the numbers of its workers."""
    return bool(body["spec"].get("enableInTreeAutoscaling"))


def read_scaled(cluster: Cluster, namespace: str, name: str, kind: str = "RayCluster") -> Scaled | None:
    """The live RayCluster, or that in the spec of a RayService; None if it does not exist.

    Raises UnknownScaleError if the API server does not answer or refuses.
    """
    try:
        live = cluster.get("ray.io/v1", f"{kind.lower()}s", namespace, name)
    except ClusterUnreachableError as error:
        raise UnknownScaleError(
            f"{kind} {namespace}/{name} cannot be read, so an edit could revert what its autoscaler or Kueue has "
            f"written: {error}"
        ) from error
    if live is None:
        return None
    annotations = live["metadata"].get("annotations") or {}
    version, suspenders = live["metadata"]["resourceVersion"], frozenset(_owners(live, "suspend"))
    spec = live["spec"].get(CONFIG, live["spec"])
    return Scaled(annotations.get(DIGEST), owned(spec), spec, version, suspenders)


def _owners(live: Mapping[str, Any], key: str) -> Iterator[str]:
    """The managers of a field of the spec (kubernetes.io, Server-Side Apply: managedFields)."""
    for each in live["metadata"].get("managedFields") or ():
        if f"f:{key}" in (each.get("fieldsV1") or {}).get("f:spec", {}):
            yield str(each["manager"])


def as_scaled(body: Body, scaled: Scaled | None) -> tuple[Body, list[str]]:
    """The RayCluster to apply, and its ignored paths as Pulumi writes them.

    `scaled`: the live RayCluster; None if it is created.
    """
    desired = digest(body)
    spec = copy.copy(body["spec"])
    live = scaled.groups if scaled else {}
    # In the live order: the autoscaler addresses a group by its index in the list.
    places = {name: place for place, name in enumerate(live)}
    groups = [{**group, **live.get(group["groupName"], {})} for group in spec.get("workerGroupSpecs", ())]
    groups.sort(key=lambda group: places.get(group["groupName"], len(places)))
    if groups:
        spec["workerGroupSpecs"] = groups
    same = scaled is not None and scaled.digest == desired
    ignored = [f"spec.workerGroupSpecs[{index}].{key}" for index in range(len(groups)) for key in OWNED]
    return _marked({**body, "spec": spec}, desired), ignored if same else []


def as_scaled_once(body: Body, scaled: Scaled | None) -> Body:
    """The RayCluster to apply if it does not scale.

    If it scaled before, its autoscaler may own the list of worker groups. Then this and all later updates take the
    ownership by force.

    `scaled`: the live RayCluster; None if it is created.
    """
    if scaled is None or scaled.digest is None:
        return body
    return _marked(body, digest(body))


def unscaled_since(sent: Mapping[str, Any], cluster: Cluster) -> str | None:
    """The live resourceVersion of a RayCluster whose scale is still that of `sent`; None if it does not exist.

    Raises UnknownScaleError if the autoscaler has scaled it since `sent` was rendered.
    """
    metadata = sent["metadata"]
    current = read_scaled(cluster, metadata["namespace"], metadata["name"])
    groups = owned(sent["spec"])
    moved = [name for name, live in (current.groups if current else {}).items() if groups.get(name, live) != live]
    if moved:
        raise UnknownScaleError(
            f"RayCluster {metadata['namespace']}/{metadata['name']}: its autoscaler has just scaled "
            f"{', '.join(moved)}, and nothing was changed. Run `pulumi up` again. If this error "
            "repeats, run `pulumi refresh` first"
        )
    return current.version if current else None


def owned(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The autoscaler's fields of each worker group, by its name, in their order."""
    groups: Sequence[Mapping[str, Any]] = spec.get("workerGroupSpecs") or ()
    return {group["groupName"]: {key: group[key] for key in OWNED if key in group} for group in groups}


def _marked(body: Body, desired: str) -> Body:
    """The object with the digest of the stack's part, to be applied by force."""
    annotations = {**(body["metadata"].get("annotations") or {}), DIGEST: desired}
    return by_force({**body, "metadata": {**body["metadata"], "annotations": annotations}})
