"""Finds pods of a RayCluster that are older than its settings. Pure functions.

KubeRay 1.6 does not record the template of a pod. So each pod template has an annotation with a digest of all fields
that determine the pod. KubeRay copies it to the pods (ray-operator/controllers/ray/common/pod.go).
"""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from core.body import Body
from core.quantities import amount

ANNOTATION = "ray-platform/template"

_OF_PODS = ("template", "rayStartParams", "labels", "resources")
"""Fields of head and worker groups that determine their pods."""

_NOT_OF_THE_HEAD = ("idleTimeoutSeconds", "upscalingMode")
"""Fields of autoscalerOptions that are not part of the head's pod: the autoscaler reads them from the RayCluster again
and again (Ray: autoscaler/v2/instance_manager/config.py)."""


def recreates(spec: Mapping[str, Any]) -> bool:
    """Whether KubeRay itself deletes all pods at each edit, including an edit of the annotation."""
    return (spec.get("upgradeStrategy") or {}).get("type") == "Recreate"


def stamped(body: Body, live: Mapping[str, Any] | None) -> Body:
    """The RayCluster with the annotation in its pod templates.

    `live`: the live spec; None if there is none. A live template without the annotation that equals the desired one
    stays without it, so that adopting a RayCluster does not edit it.
    """
    spec = body["spec"]
    if recreates(spec):
        return body
    live_groups = {group["groupName"]: group for group in (live or {}).get("workerGroupSpecs") or ()}
    groups = [
        _stamped(
            group, _worker(spec, group), live_groups.get(group["groupName"]), lambda each: _worker(live or {}, each)
        )
        for group in spec.get("workerGroupSpecs") or ()
    ]
    head = _stamped(
        spec["headGroupSpec"], _head(spec), (live or {}).get("headGroupSpec"), lambda _each: _head(live or {})
    )
    return {**body, "spec": {**spec, "headGroupSpec": head, **({"workerGroupSpecs": groups} if groups else {})}}


def unstamped(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without the annotations."""
    bare = {key: _bare(value) if key == "headGroupSpec" else value for key, value in spec.items()}
    if "workerGroupSpecs" in spec:
        bare["workerGroupSpecs"] = [_bare(group) for group in spec["workerGroupSpecs"] or ()]
    return bare


def parts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The values that pods of this RayCluster are compared with: of the head, and of each worker group by its name."""
    return {
        "head": _part(spec["headGroupSpec"]),
        "groups": {group["groupName"]: _part(group) for group in spec.get("workerGroupSpecs") or ()},
    }


def is_old(pod: Mapping[str, Any], part: Mapping[str, Any] | None) -> bool:
    """Whether a pod does not match `part`, one of `parts`; None: its group does not exist any more.

    If only the template has the annotation, the pod was created before. It is old if image, resources or variables of
    Ray's container differ from the template.
    """
    if part is None:
        return True
    stamp = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    if stamp is not None or "stamp" not in part:
        return bool(stamp != part.get("stamp"))
    ray, desired = pod["spec"]["containers"][0], part["container"]
    env = _values(ray)
    return (
        ray.get("image") != desired["image"]
        or any(env.get(name) != value for name, value in desired["env"].items())
        or any(
            _amount((ray.get("resources") or {}).get(kind, {}).get(name)) != _amount(quantity)
            for kind, amounts in desired["resources"].items()
            if kind in ("limits", "requests")
            for name, quantity in amounts.items()
        )
    )


def _stamped(group: Body, desired: str, live: Mapping[str, Any] | None, text_of: Any) -> Body:
    if live is not None and _stamp(live) is None and text_of(live) == desired:
        return group
    template = group["template"]
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: _digest(desired)}
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
        key: value for key, value in (spec.get("autoscalerOptions") or {}).items() if key not in _NOT_OF_THE_HEAD
    }
    scales = spec.get("enableInTreeAutoscaling")
    kept = spec.get("gcsFaultToleranceOptions")
    return _text([_of_pods(spec["headGroupSpec"]), spec.get("authOptions"), scales, container, kept])


def _of_pods(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: group[key] for key in _OF_PODS if key in group}


def _text(value: Any) -> str:
    """JSON of a value. Parts that are known later, such as another resource's name, do not count."""
    return json.dumps(value, sort_keys=True, default=lambda _later: None)


def _values(container: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the variables' values, because the state must not contain secrets. Only plain text values are
    included."""
    variables = {each["name"]: each.get("value") for each in container.get("env") or ()}
    return {name: _digest(value) for name, value in variables.items() if isinstance(value, str)}


def _amount(quantity: Any) -> Decimal | None:
    return None if quantity is None else amount(str(quantity))
