"""The usage of a quota by a RayService, as Kubernetes counts it. Pure functions on rendered bodies.

The head of each RayCluster has a Service. A further one for the head, and one for Serve, are of the RayCluster that
serves; all are of the head's type (ray-operator/controllers/ray/common/service.go: BuildHeadServiceForRayService,
BuildServeService).
"""

from dataclasses import replace
from decimal import Decimal

from components.ray_cluster.manifests import serve_ports
from components.tenant.demand import Body, Demand, Usage, demand, head_service, inside, service_usage, total
from components.tenant.settings import LimitSettings
from kuberay.ray_service import INCREMENTAL


def demand_of_service(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of a RayService with one RayCluster; paths are in the body of the RayService."""
    spec = body["spec"]["rayClusterConfig"]
    of_cluster = demand({"metadata": body["metadata"], "spec": spec}, limits)
    counted = {"count/rayservices.ray.io": Decimal(1)}
    objects = total([counted, of_cluster.objects, head_service(spec["headGroupSpec"]), _serve_service(body)])
    return replace(of_cluster, groups=inside(of_cluster.groups, ("spec", "rayClusterConfig")), objects=objects)


def demand_of_update(service: Demand, body: Body) -> Demand:
    """The further usage while KubeRay replaces its RayCluster: that of a second one. `body`: the RayService's."""
    name = f"the second RayCluster of {service.name} during an update"
    counted = {"count/rayclusters.ray.io": Decimal(1)}
    strategy = (body["spec"].get("upgradeStrategy") or {}).get("type")
    serve = _serve_service(body) if strategy == INCREMENTAL else {}
    objects = total([counted, head_service(body["spec"]["rayClusterConfig"]["headGroupSpec"]), serve])
    return replace(service, name=name, objects=objects)


def _serve_service(body: Body) -> Usage:
    """Usage of Serve's Service. During an incremental upgrade each of the two RayClusters has one."""
    spec = body["spec"]["rayClusterConfig"]
    return service_usage(spec["headGroupSpec"], len(serve_ports(spec)))
