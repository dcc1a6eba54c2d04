"""The objects that a RayCluster consists of, and those beside the RayClusters of a RayJob or RayService. Pure
functions."""

from collections.abc import Iterator

from components.network.manifests import ingress
from components.objects import Object
from components.ray_cluster.manifests import head_disruption_budget, head_service
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_cluster.settings import RayClusterSettings
from components.tls.manifests import authority_certificate
from core.body import Body
from kuberay.ports import head_ports

RAY_CLUSTER = "ray-cluster"
"""Name of the object that is the RayCluster itself."""


def ray_cluster_objects(settings: RayClusterSettings, body: Body) -> Iterator[Object]:
    """A RayCluster and its own objects, for one namespace. `body`: of the RayCluster (manifests.ray_cluster)."""
    beside = list(beside_ray_clusters(settings))
    yield from beside
    yield Object(RAY_CLUSTER, body, after=certificates(beside))
    if settings.ingress:
        service, port = head_service(settings.name, body["spec"]), head_ports(body["spec"])["dashboard"]
        made = ingress(settings.name, service, settings.ingress, port)
        yield Object("dashboard-ingress", made, ("ingress",), after=(RAY_CLUSTER,))


def beside_ray_clusters(settings: RayClusterSettings, label: str = CLUSTER_LABEL, heads: int = 1) -> list[Object]:
    """The objects beside the RayClusters of these settings: one, or those of a RayJob or RayService.

    `label`: label of their pods with the name. `heads`: the most heads that have it at a time.
    """
    made = []
    if settings.tls and settings.tls.issuer:
        made.append(Object("tls-certificate", authority_certificate(settings.name, settings.tls.issuer), ("tls",)))
    if not settings.head.evictable:
        budget = head_disruption_budget(settings, label, heads)
        made.append(Object("head-disruption-budget", budget, ("head",)))
    return made


def certificates(objects: list[Object]) -> tuple[str, ...]:
    """Names of the Certificates, which exist before the pods that mount their Secrets."""
    return tuple(each.name for each in objects if each.body["kind"] == "Certificate")
