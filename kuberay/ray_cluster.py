"""A RayCluster's spec: the head, the worker groups and their bounds (validation.go: ValidateRayClusterSpec)."""

import re

from core.body import Body
from core.problems import Path
from kuberay import features, formats, options
from kuberay.rules import Cluster, Found, problem

_RESOURCE_PARAMS = ("num-cpus", "num-gpus", "memory", "resources")
"""Flags of `ray start` that set the same as `resources` of a group."""

_GROUP_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")

_ORIGIN = "ray.io/originated-from-crd"
"""Label of a RayCluster that the operator created for another object."""

SERVE_ANNOTATION = "ray.io/enable-serve-service"


def check(cluster: Cluster) -> Found:
    """All rules on a RayCluster's spec, in an object of any kind."""
    yield from _groups(cluster)
    yield from features.check_autoscaler(cluster)
    yield from features.check_gcs_fault_tolerance(cluster)
    yield from features.check_authentication(cluster)
    yield from options.check(cluster)


def standalone(body: Body, cluster: Cluster) -> Found:
    """The rules on a manifest of kind RayCluster."""
    yield from check(cluster)
    owner = body["metadata"].get("labels", {}).get(_ORIGIN)
    if owner in ("RayJob", "RayService"):
        yield from owned(cluster, owner)
    if cluster.annotations.get(SERVE_ANNOTATION) == "true":
        yield from serve_port(cluster)


def owned(cluster: Cluster, owner: str) -> Found:
    """The rules on a RayCluster that the operator creates for another object (ValidateRayClusterUpgradeOptions)."""
    strategy = cluster.spec.get("upgradeStrategy", {}).get("type")
    if strategy is not None:
        message = f"KubeRay does not allow upgradeStrategy for the cluster of a {owner}: remove it"
        yield problem("cluster-upgrade-strategy", (*cluster.path, "upgradeStrategy", "type"), strategy, message)


def serve_port(cluster: Cluster) -> Found:
    """The operator creates the Service of Ray Serve from the ports of the head (service.go: getServicePorts,
    isServingPort)."""
    containers = cluster.spec["headGroupSpec"]["template"].get("spec", {}).get("containers", ())
    ports = containers[0].get("ports", ()) if containers else ()
    if ports and not any(_serves(port.get("name", ""), cluster) for port in ports):
        path = (*cluster.path, "headGroupSpec", "template", "spec", "containers", 0, "ports")
        message = "Ray Serve's Service needs a port named serve of the head: add {name: serve, containerPort: 8000}"
        yield problem("serve-port", path, [port.get("name") for port in ports], message)


def _serves(name: str, cluster: Cluster) -> bool:
    return name == "serve" or (name.startswith("serve-") and cluster.operator.since("1.6"))


def _groups(cluster: Cluster) -> Found:
    seen = set()
    for path, group in cluster.groups:
        yield from _group(path, group)
        name = group.get("groupName")
        if name is None:
            continue
        yield from _worker_group(path, group)
        yield from features.check_scaled_group(cluster, path, group)
        if name in seen:
            message = f"the worker group name {name!r} is used twice: give each group a unique name"
            yield problem("group-name-unique", (*path, "groupName"), name, message)
        seen.add(name)


def _group(path: Path, group: Body) -> Found:
    """Head or workers (validateRayGroupResources, validateRayGroupLabels)."""
    if not group["template"].get("spec", {}).get("containers"):
        message = "there is no container: add the Ray container as the first"
        yield problem("group-containers", (*path, "template", "spec", "containers"), None, message)
    params = group.get("rayStartParams", {})
    resource_params = [name for name in _RESOURCE_PARAMS if params.get(name)]
    if resource_params and group.get("resources"):
        params_set = ", ".join(resource_params)
        message = f"resources and rayStartParams ({params_set}) both set the resources of Ray: keep one of them"
        yield problem("group-resources", (*path, "resources"), group["resources"], message)
    if "labels" in params:
        message = "KubeRay does not allow rayStartParams.labels: set labels of the group instead"
        yield problem("group-start-labels", (*path, "rayStartParams", "labels"), params["labels"], message)
    yield from formats.check_labels(group.get("labels", {}), (*path, "labels"), "group-label")


def _worker_group(path: Path, group: Body) -> Found:
    name, least, most = group["groupName"], group["minReplicas"], group["maxReplicas"]
    for field in ("minReplicas", "maxReplicas"):
        if group[field] < 0:
            message = f"{field} is {group[field]}: give 0 or more"
            yield problem("negative-replicas", (*path, field), group[field], message)
    if least > most:
        message = f"minReplicas {least} is more than maxReplicas {most}: raise maxReplicas or lower minReplicas"
        yield problem("replica-bounds", (*path, "minReplicas"), least, message)
    elif group["replicas"] and not least <= group["replicas"] <= most:
        message = f"replicas {group['replicas']} is not between minReplicas {least} and maxReplicas {most}"
        yield problem(
            "replicas-within-bounds",
            (*path, "replicas"),
            group["replicas"],
            f"{message}, and KubeRay enforces these bounds: change one",
        )
    if group["numOfHosts"] < 1:
        message = f"numOfHosts is {group['numOfHosts']}, so the group would have no pods: give 1 or more"
        yield problem("num-of-hosts", (*path, "numOfHosts"), group["numOfHosts"], message)
    if len(name) > 63 or not _GROUP_NAME.fullmatch(name):
        message = (
            f"{name!r} is not valid in a pod name: use at most 63 letters, digits and hyphens, no hyphen at an end"
        )
        yield problem("group-name", (*path, "groupName"), name, message)
