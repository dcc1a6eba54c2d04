"""Renders the settings of a RayService into the body for the API server, maps a part of that to its setting, so that a
problem is reported where the author can fix it, and counts its usage of a quota. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from components.objects import Object, below
from components.ray_cluster.manifests import API_VERSION
from components.ray_cluster.objects import beside_ray_clusters, certificates
from components.ray_cluster.origin import cut
from components.ray_service.api_key import config_map
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from components.tenant.demand import Demand, Usage, demand, head_service, inside, service_usage, total
from components.tenant.settings import LimitSettings
from core.body import Body
from core.problems import Path
from core.yaml_writer import go_yaml
from kuberay.ports import serve_ports
from kuberay.ray_service import INCREMENTAL

RAY_SERVICE = "ray-service"
"""Name of the object that is the RayService itself."""


def ray_service(settings: RayServiceSettings, own: Body) -> Body:
    """The `ray.io/v1` RayService. KubeRay defaults the fields that are not set.

    `own`: the body of `settings.own_cluster` as a RayCluster. KubeRay copies the RayService's labels and annotations to
    the RayClusters that it creates (rayservice_controller.go: constructRayClusterForRayService).
    """
    labels, annotations = own["metadata"].get("labels"), own["metadata"].get("annotations")
    strategy, delay = settings.upgrade_strategy, settings.ray_cluster_deletion_delay_seconds
    spec = {
        "serveConfigV2": serve_config(settings),
        "upgradeStrategy": strategy.model_dump(by_alias=True, exclude_none=True) if strategy else None,
        "rayClusterDeletionDelaySeconds": delay,
        "excludeHeadPodFromServeSvc": settings.exclude_head_pod_from_serve_svc or None,
        # KubeRay writes the object to add its finalizer, without empty lists: a refresh would find a difference.
        "rayClusterConfig": {key: value for key, value in own["spec"].items() if value != []},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "RayService",
        "metadata": {
            "name": settings.name,
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def serve_config(settings: RayServiceSettings) -> str:
    """The Serve config as text, with what is set. Its order is fixed: KubeRay submits another text again."""
    config = settings.config.model_dump(mode="json", exclude_unset=True)
    return go_yaml(config, sort_keys=False, allow_unicode=True)


HEADS = 2
"""The most heads at a time: that of the second RayCluster during an update, too."""


def ray_service_objects(settings: RayServiceSettings, body: Body) -> Iterator[Object]:
    """A RayService and the objects beside its RayClusters, for one namespace. `body`: of the RayService
    (`ray_service`)."""
    beside = beside_ray_clusters(settings.own_cluster, SERVICE_LABEL, HEADS)
    first = certificates(beside)
    yield from below(beside, ("cluster",))
    if settings.api_key:
        yield Object("api-key", config_map(settings.name), ("apiKey",))
        first = (*first, "api-key")
    yield Object(RAY_SERVICE, body, after=first)


def connection(settings: RayServiceSettings, namespace: str, port: int) -> dict[str, str]:
    """Where the service can be reached. An incremental upgrade serves through KubeRay's Gateway, whose address its
    class decides. `port`: that of Serve."""
    name, strategy = settings.name, settings.upgrade_strategy
    found = {"namespace": namespace, "service": name, "headService": f"{name}-head-svc"}
    if strategy and strategy.cluster_upgrade_options:
        return {**found, "gateway": f"{name}-gateway"}
    serve = f"{name}-serve-svc"
    endpoint = f"http://{serve}.{namespace}.svc:{port}"
    of_llm = {"openaiBaseUrl": f"{endpoint}/v1", "model": settings.llm.model} if settings.llm else {}
    return {**found, "serveService": serve, "endpoint": endpoint, **of_llm}


def service_setting_at(settings: RayServiceSettings, path: Path) -> Path:
    """The path in the service's settings that the part of its body at `path` comes from; `()` for the service itself.

    Parts of `rayClusterConfig` come from the settings of its cluster (ray_cluster.origin).
    """
    configured = settings.model_dump(by_alias=True, exclude_unset=True)
    match path:
        case ("metadata", "name", *_):
            return ("name",)
        case ("metadata", "labels" | "annotations" as part, *rest):
            return cut(configured, ("cluster", part, *rest))
        case ("spec", "serveConfigV2", *_) if settings.llm:
            return ("llm",)
        case ("spec", str(field), *rest):
            return cut(configured, (field, *rest))
    return ()


def demand_of_service(body: Mapping[str, Any], limits: LimitSettings | None) -> Demand:
    """The usage of a RayService with one RayCluster; paths are in the body of the RayService."""
    spec = body["spec"]["rayClusterConfig"]
    of_cluster = demand({"metadata": body["metadata"], "spec": spec}, limits)
    counted = {"count/rayservices.ray.io": Decimal(1)}
    objects = total([counted, of_cluster.objects, head_service(spec["headGroupSpec"]), _serve_service(body)])
    return replace(of_cluster, groups=inside(of_cluster.groups, ("spec", "rayClusterConfig")), objects=objects)


def demand_of_update(service: Demand, body: Mapping[str, Any]) -> Demand:
    """The further usage while KubeRay replaces its RayCluster: that of a second one. `body`: the RayService's."""
    name = f"the second RayCluster of {service.name} during an update"
    counted = {"count/rayclusters.ray.io": Decimal(1)}
    strategy = (body["spec"].get("upgradeStrategy") or {}).get("type")
    serve = _serve_service(body) if strategy == INCREMENTAL else {}
    objects = total([counted, head_service(body["spec"]["rayClusterConfig"]["headGroupSpec"]), serve])
    return replace(service, name=name, objects=objects)


def _serve_service(body: Mapping[str, Any]) -> Usage:
    """Usage of Serve's Service. During an incremental upgrade each of the two RayClusters has one."""
    spec = body["spec"]["rayClusterConfig"]
    return service_usage(spec["headGroupSpec"], len(serve_ports(spec)))
