"""What the API server makes of a RayCluster's spec before it keeps it: two specs are the same where this is."""

from collections.abc import Mapping
from typing import Any

from kuberay import OperatorContext
from kuberay.schema import stored


def defaulted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with the definition's defaults, without nulls, and with numbers for amounts of resources as text."""
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "any"}, "spec": spec}
    made, _ = stored(body, OperatorContext())
    whole: dict[str, Any] = made["spec"]
    for group in (whole.get("headGroupSpec"), *(whole.get("workerGroupSpecs") or ())):
        pod = ((group or {}).get("template") or {}).get("spec") or {}
        for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
            for amounts in (container.get("resources") or {}).values():
                if isinstance(amounts, dict):
                    amounts.update({name: str(each) for name, each in amounts.items() if isinstance(each, int | float)})
    return whole


def without_nulls(value: Any) -> Any:
    """The value without the keys that are null: the API server takes them for not there."""
    if isinstance(value, Mapping):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
