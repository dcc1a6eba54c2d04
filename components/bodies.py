"""Objects as `kubectl get -o json` shows them. Pure functions."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from core.body import Body as Body
from core.body import ReadOnlyBody
from core.pods import RESTRICTED_CONTAINER, RESTRICTED_POD, level_labels

FIELD_MANAGER_ANNOTATION = "pulumi.com/patchFieldManager"
"""Annotation with the name of the field manager, which the provider reads."""

_FORCE_ANNOTATION = "pulumi.com/patchForce"


def by_force(body: Body) -> dict[str, Any]:
    """The object, with the annotation by which the provider takes fields over that others have written.

    KubeRay adds its finalizer to RayServices, RayJobs and RayClusters with fault tolerance by writing the whole object
    as its types have it, with `scaleStrategy: {}` in each worker group (ray-operator/controllers/ray:
    controllerutil.AddFinalizer, then Update). The list of worker groups, which is one value to server-side apply, then
    has the operator as its owner, and without force each later update is a conflict.
    """
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _FORCE_ANNOTATION: "true"}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def in_namespace(body: Body, namespace: Any) -> dict[str, Any]:
    """The object in a namespace. `namespace`: a name or its Output. The object waits for an Output of another
    resource."""
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def restricted_namespace(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A Namespace of the platform's programs, with the strictest Pod Security level."""
    metadata = {"name": name, "labels": {**(labels or {}), **level_labels("restricted")}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def moved(body: Body, namespace: str, instead_of: str) -> dict[str, Any]:
    """A copy in which a namespace replaces that of a program's own manifests, wherever it is named."""
    copied: dict[str, Any] = json.loads(json.dumps(body).replace(instead_of, namespace))
    return copied


def restricted_sidecar(user: int | None) -> dict[str, Any]:
    """The security context of a sidecar in a pod of Ray, which meets Pod Security `restricted` and writes no file
    outside its volumes. `user`: None for that of the image."""
    own = {} if user is None else {"runAsUser": user}
    return {**RESTRICTED_CONTAINER, **RESTRICTED_POD, "readOnlyRootFilesystem": True, **own}


def disruption_budget(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A PodDisruptionBudget that keeps one of several replicas while nodes are drained."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(labels)}},
    }


def first_container(deployment: ReadOnlyBody) -> dict[str, Any]:
    """The first container of a Deployment's pods, to be edited in place."""
    container: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def digest(body: Body) -> str:
    """Digest of metadata and spec. Values that are known later, such as another resource's name, do not count."""
    desired = json.dumps([body["metadata"], body["spec"]], sort_keys=True, default=lambda _later: None)
    return hashlib.sha256(desired.encode()).hexdigest()[:16]
