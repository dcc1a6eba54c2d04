"""By what a pod of a RayCluster is known to be old. Pure functions.

KubeRay 1.6 does not say of a pod what it was made from, so each pod template carries a digest of all in the RayCluster
that becomes a pod, in an annotation, which KubeRay copies to the pods (ray-operator/controllers/ray/common/pod.go).
"""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from core.quantities import amount

Body = dict[str, Any]

ANNOTATION = "ray-platform/template"

_OF_PODS = ("template", "rayStartParams", "labels", "resources")
"""Fields of head and worker groups that KubeRay makes pods from."""

_NOT_OF_THE_HEAD = ("idleTimeoutSeconds", "upscalingMode")
"""Of autoscalerOptions: what the autoscaler reads in the RayCluster again and again (Ray: autoscaler/v2/
instance_manager/config.py), and what is no part of its container."""


def recreates(spec: Mapping[str, Any]) -> bool:
    """Whether KubeRay itself deletes all pods at each edit, an edit of the annotation included."""
    return (spec.get("upgradeStrategy") or {}).get("type") == "Recreate"


def stamped(body: Body, live: Mapping[str, Any] | None) -> Body:
    """The RayCluster with the annotation in its pod templates.

    `live`: the spec that is there, None where there is none. A template that is there without the annotation, and that
    the stack says the same, stays without: what is taken in as it runs is not edited.
    """
    spec = body["spec"]
    if recreates(spec):
        return body
    there = {group["groupName"]: group for group in (live or {}).get("workerGroupSpecs") or ()}
    groups = [
        _stamped(group, _worker(spec, group), there.get(group["groupName"]), lambda there: _worker(live or {}, there))
        for group in spec.get("workerGroupSpecs") or ()
    ]
    head = _stamped(
        spec["headGroupSpec"], _head(spec), (live or {}).get("headGroupSpec"), lambda _there: _head(live or {})
    )
    return {**body, "spec": {**spec, "headGroupSpec": head, **({"workerGroupSpecs": groups} if groups else {})}}


def unstamped(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without the annotations."""
    bare = {key: _bare(said) if key == "headGroupSpec" else said for key, said in spec.items()}
    if "workerGroupSpecs" in spec:
        bare["workerGroupSpecs"] = [_bare(group) for group in spec["workerGroupSpecs"] or ()]
    return bare


def parts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What pods of this RayCluster are held against: of the head and of each worker group, by its name."""
    return {
        "head": _part(spec["headGroupSpec"]),
        "groups": {group["groupName"]: _part(group) for group in spec.get("workerGroupSpecs") or ()},
    }


def is_old(pod: Mapping[str, Any], part: Mapping[str, Any] | None) -> bool:
    """Whether a pod was made from something else than `part`, one of `parts`; None: its group is gone.

    A pod without the annotation, where the template has it, is from before the template had it. It is old where image,
    resources or variables of Ray's container are not those of the template.
    """
    if part is None:
        return True
    stamp = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    if stamp is not None or "stamp" not in part:
        return bool(stamp != part.get("stamp"))
    ray, said = pod["spec"]["containers"][0], part["container"]
    env = _values(ray)
    return (
        ray.get("image") != said["image"]
        or any(env.get(name) != value for name, value in said["env"].items())
        or any(
            _amount((ray.get("resources") or {}).get(kind, {}).get(name)) != _amount(quantity)
            for kind, amounts in said["resources"].items()
            if kind in ("limits", "requests")
            for name, quantity in amounts.items()
        )
    )


def _stamped(group: Body, told: str, there: Mapping[str, Any] | None, tell: Any) -> Body:
    if there is not None and _stamp(there) is None and tell(there) == told:
        return group
    template = group["template"]
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: _digest(told)}
    return {**group, "template": {**template, "metadata": {**metadata, "annotations": annotations}}}


def _bare(group: Mapping[str, Any]) -> Mapping[str, Any]:
    if _stamp(group) is None:
        return group
    template = dict(group["template"])
    metadata = dict(template.pop("metadata"))
    others = {key: value for key, value in metadata.pop("annotations").items() if key != ANNOTATION}
    if left := {**metadata, **({"annotations": others} if others else {})}:
        template["metadata"] = left
    return {**group, "template": template}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _stamp(group: Mapping[str, Any]) -> str | None:
    annotations = (group["template"].get("metadata") or {}).get("annotations") or {}
    return annotations.get(ANNOTATION)


def _part(group: Mapping[str, Any]) -> dict[str, Any]:
    ray = group["template"]["spec"]["containers"][0]
    container = {"image": ray.get("image"), "env": _values(ray), "resources": ray.get("resources") or {}}
    stamp = _stamp(group)
    return {**({"stamp": stamp} if stamp else {}), "hosts": group.get("numOfHosts") or 1, "container": container}


def _worker(spec: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    return _text([_of_pods(group), group.get("numOfHosts"), spec.get("authOptions")])


def _head(spec: Mapping[str, Any]) -> str:
    container = {
        key: said for key, said in (spec.get("autoscalerOptions") or {}).items() if key not in _NOT_OF_THE_HEAD
    }
    scales = spec.get("enableInTreeAutoscaling")
    kept = spec.get("gcsFaultToleranceOptions")
    return _text([_of_pods(spec["headGroupSpec"]), spec.get("authOptions"), scales, container, kept])


def _of_pods(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: group[key] for key in _OF_PODS if key in group}


def _text(told: Any) -> str:
    """What is known only later, such as another resource's name, does not count."""
    return json.dumps(told, sort_keys=True, default=lambda _later: None)


def _values(container: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the variables' values, which may be what nobody should read in a state. What is no plain text is left
    out."""
    said = {each["name"]: each.get("value") for each in container.get("env") or ()}
    return {name: _digest(value) for name, value in said.items() if isinstance(value, str)}


def _amount(quantity: Any) -> Decimal | None:
    return None if quantity is None else amount(str(quantity))
