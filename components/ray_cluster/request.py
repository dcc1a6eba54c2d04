"""From the body of a RayCluster to the request of an update, step by step. Pure functions.

A body is made in this order, and each step stands in one place:

1. defaults of stack and tenant (stacks/objects/ray_clusters.py), the settings rendered, and the overrides merged into
   them (`spec.cluster_spec`);
2. what the scheduler needs (`manifests.ray_cluster`);
3. mirrors of images (components/objects.py, `Part.finished`). Up to here `check`, `impact` and `render` have the same
   body;
4. values that only an update knows: the account of another stack, and the prefix of the keys in Redis;
5. `suspend: false`, where this stack has suspended it and no longer does;
6. the stamp by which old pods are recognized (components/rollout/templates.py);
7. the digest of all of it, and the autoscaler's values (`scaled`);
8. namespace and field manager (components/kubernetes.py).

So a stamp and a digest differ whenever one of the steps before them does.
"""

from dataclasses import dataclass
from typing import Any

from components.bodies import by_force, digest
from components.ray_cluster.pods import OPTIONS
from components.ray_cluster.scaled import Scaled, as_scaled, as_scaled_once, scales
from components.rollout.templates import stamped
from core.body import Body


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
    stack. `queued`: whether Kueue may suspend it: then its live values stay, because Kueue writes into the list of
    worker groups, too.
    """
    body = _known(body, later)
    if queued:
        return Request(body, version=digest(body))
    body = stamped(_resumed(body, live, manager), live.spec if live else None)
    if scales(body):
        sent, ignored = as_scaled(body, live)
        return Request(sent, tuple(ignored), digest(body), scales=True)
    return Request(as_scaled_once(by_force(body) if later.keys is not None else body, live), version=digest(body))


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
