"""Clusters on Cloudera ML in the form of objects, so that rules judge them as they judge those of Kubernetes."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.values import UNKNOWN, Node, Object

CML_CLUSTER = "CmlRayCluster"
"""Their kind."""


def cluster_on_cml(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """A cluster. `inputs`: of its applications (components/cml/manifests.py: nodes). What Pulumi adds to them, and the
    token, is not part of it."""
    spec = {key: value for key, value in inputs.items() if not key.startswith("__") and key != "token"}
    metadata = {"name": inputs.get("cluster", UNKNOWN)}
    return {"apiVersion": "cml/v2", "kind": CML_CLUSTER, "metadata": metadata, "spec": spec}


def groups_of(owner: Object) -> Iterator[Node]:
    """The head and the worker groups of a cluster. Raises NotKnownYetError."""
    spec = owner.root.at("spec")
    yield spec.at("head")
    yield from (group for _, group in spec.at("groups").entries())
