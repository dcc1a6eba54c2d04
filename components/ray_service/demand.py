"""The usage of a quota by a RayService, as Kubernetes counts it. Pure functions on rendered bodies."""

from dataclasses import replace
from decimal import Decimal

from ..tenant.demand import Body, Demand, demand, inside
from ..tenant.settings import LimitSettings

_SERVICES = 3
"""Services of the head's type: two of the heads, and that of Serve (ray-operator/controllers/ray/common/service.go:
BuildHeadServiceForRayService, BuildServeService)."""


def demand_of_service(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of a RayService with one RayCluster; paths are in the body of the RayService."""
    of_cluster = demand({"metadata": body["metadata"], "spec": body["spec"]["rayClusterConfig"]}, limits)
    objects = {"count/rayservices.ray.io": Decimal(1), **of_cluster.objects}
    for entry in ("services.loadbalancers", "services.nodeports"):
        if entry in objects:
            objects[entry] *= _SERVICES
    return replace(of_cluster, groups=inside(of_cluster.groups, ("spec", "rayClusterConfig")), objects=objects)


def demand_of_update(service: Demand) -> Demand:
    """The further usage while KubeRay replaces its RayCluster: that of a second one."""
    name = f"the second RayCluster of {service.name} during an update"
    objects = {"count/rayclusters.ray.io": Decimal(1)}
    return replace(service, name=name, objects=objects)
