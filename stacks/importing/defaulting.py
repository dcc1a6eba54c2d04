"""What the API server makes of a RayCluster's spec before it keeps it, as far as two specs can differ by it."""

from collections.abc import Mapping
from typing import Any

_GROUP = {"replicas": 0, "minReplicas": 0, "maxReplicas": 2147483647, "numOfHosts": 1}
"""Defaults of a worker group (config/crd/bases/ray.io_rayclusters.yaml)."""


def defaulted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without nulls, with the definition's defaults, and with amounts of resources as text."""
    whole: dict[str, Any] = _without_nulls(spec)
    groups = whole.get("workerGroupSpecs")
    if isinstance(groups, list):
        whole["workerGroupSpecs"] = [_group(each) for each in groups]
    if isinstance(whole.get("headGroupSpec"), dict):
        whole["headGroupSpec"] = _with_template(whole["headGroupSpec"])
    return whole


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _group(group: Any) -> Any:
    return _with_template({**_GROUP, **group}) if isinstance(group, dict) else group


def _with_template(group: dict[str, Any]) -> dict[str, Any]:
    template = group.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(template, dict) or not isinstance(spec, dict):
        return group
    spec = {**spec}
    for kind in ("containers", "initContainers"):
        if isinstance(spec.get(kind), list):
            spec[kind] = [_container(each) for each in spec[kind]]
    return {**group, "template": {**template, "spec": spec}}


def _container(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    whole = {**container}
    if isinstance(whole.get("ports"), list):
        whole["ports"] = [{"protocol": "TCP", **each} if isinstance(each, dict) else each for each in whole["ports"]]
    resources = whole.get("resources")
    if isinstance(resources, dict):
        whole["resources"] = {
            kind: {name: _amount(each) for name, each in amounts.items()} if kind in ("limits", "requests") else amounts
            for kind, amounts in resources.items()
        }
    return whole


def _amount(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
