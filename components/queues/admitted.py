"""What Kueue writes into the RayCluster that it admits, and how an update keeps it. Pure functions.

Kueue adds its labels and annotations, and the node selector of a flavor, to the pod templates (kueue,
pkg/podset/podset.go: Merge). For server-side apply the list of worker groups is one value with one owner, so an update
takes the list by force, with what Kueue has written: without it new workers would lack it, and KubeRay would replace
the RayCluster of a service.
"""

from collections.abc import Mapping
from typing import Any

from core.nodes import GPU_PRODUCT_LABEL

Spec = Mapping[str, Any]


def kept_by_kueue(spec: Spec, live: Spec) -> dict[str, Any]:
    """The spec of a RayCluster with what Kueue has written into the worker groups of the live one."""
    there = _templates(live)
    groups = [_kept(each, there.get(each["groupName"], {})) for each in spec.get("workerGroupSpecs") or ()]
    return {**spec, **({"workerGroupSpecs": groups} if groups else {})}


def as_admitted(spec: Spec, live: Spec) -> dict[str, Any]:
    """The spec as the API server has it once it was sent: also with what Kueue has written into the head."""
    head = _kept(spec["headGroupSpec"], live["headGroupSpec"]["template"])
    suspended = {"suspend": live["suspend"]} if "suspend" in live else {}
    return {**suspended, **kept_by_kueue(spec, live), "headGroupSpec": head}


def holds(live: Spec, spec: Spec) -> bool:
    """Whether the live templates have all labels, annotations and node selectors of the spec.

    When Kueue suspends an edited RayCluster, it restores these as they were when it was admitted (kueue,
    pkg/controller/jobframework/reconciler.go: stopJob).
    """
    there = _templates(live)
    return all(
        values.items() <= _part(there.get(name, {}), path).items()
        for name, template in _templates(spec).items()
        for path, values in ((path, _part(template, path)) for path in _PARTS)
    )


_PARTS = (("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector"))


def _templates(spec: Spec) -> dict[str, Mapping[str, Any]]:
    return {group["groupName"]: group["template"] for group in spec.get("workerGroupSpecs") or ()}


def _part(template: Mapping[str, Any], path: tuple[str, str]) -> dict[str, Any]:
    return (template.get(path[0]) or {}).get(path[1]) or {}


def _kept(group: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    template = dict(group["template"])
    for path in _PARTS:
        written = {key: value for key, value in _part(live, path).items() if _is_kueues(key)}
        if values := {**written, **_part(template, path)}:
            template[path[0]] = {**(template.get(path[0]) or {}), path[1]: values}
    return {**group, "template": template}


def _is_kueues(key: str) -> bool:
    return key.startswith("kueue.x-k8s.io/") or key == GPU_PRODUCT_LABEL
