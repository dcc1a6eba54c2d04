"""Settings of a RayService."""

import functools
import math
from typing import Annotated, Literal

from pydantic import Field, Strict

from components.external_cluster.settings import SecretKeySettings
from components.ray_cluster.settings import ClusterTemplateSettings, OwnedClusterSettings, cluster_of_owner
from components.ray_job.settings import Seconds, SecondsOrZero
from components.ray_service.api_key import with_key
from components.ray_service.llm import LlmSettings, cluster_of, serve_config_of
from core.types import DnsSubdomain, Settings, Timeout, dns_1035_label
from core.versions import version_tuple
from kuberay.formats import LONGEST
from kuberay.releases import FIRST_SERVE_WITH_DRAIN
from kuberay.serve_config import ServeConfigSettings

ServiceName = Annotated[str, dns_1035_label(LONGEST["RayService"])]
"""KubeRay's limit, so that derived names have at most 63 characters (MaxRayServiceNameLength)."""

Percent = Annotated[int, Strict(), Field(ge=0, le=100)]

SERVICE_LABEL = "ray-platform/ray-service"
"""Label of the RayClusters of a RayService, and of their pods: the RayService's name. KubeRay generates the names of
these RayClusters."""


_SHORTEST_DRAIN, _BESIDE_REQUESTS, _LONGEST_DRAIN = 60, 40, 3600
"""Seconds of a service's default drain: the least, those beside the longest request, and the most."""

BESIDE_REPLICAS = 20
"""Seconds of a drain on a spot node beside those that replicas take to end: for Serve to start others elsewhere."""

NOTHING = ServeConfigSettings.model_construct(applications=())
"""What a service without `serveConfigV2` and `llm` serves, which `rules` refuses."""


class ClusterUpgradeOptionsSettings(Settings):
    """The steps of an incremental upgrade."""

    gateway_class_name: DnsSubdomain
    """GatewayClass of the Gateway that KubeRay creates for the service."""

    step_size_percent: Percent
    """Share of the requests that each step moves to the new RayCluster. From KubeRay 1.7 on no more than
    `maxSurgePercent`."""

    interval_seconds: Seconds
    """Seconds between steps."""

    max_surge_percent: Percent = 100
    """Share of the replicas that each step adds on the new RayCluster."""


class UpgradeStrategySettings(Settings):
    """What KubeRay does when the RayCluster of a service changes."""

    type: Literal["NewCluster", "NewClusterWithIncrementalUpgrade", "None"]
    """`NewCluster`: a second RayCluster starts, gets all requests once its applications run, and the first is deleted.
    So an update needs the pods twice. `NewClusterWithIncrementalUpgrade`: requests move step by step; it needs the
    operator's feature gate `RayServiceIncrementalUpgrade`, the Gateway API and autoscaling. `None`: KubeRay ignores
    changes of the RayCluster."""

    cluster_upgrade_options: ClusterUpgradeOptionsSettings | None = None
    """With `NewClusterWithIncrementalUpgrade`: its steps."""


class RayServiceSettings(Settings):
    """Applications of Ray Serve, on a RayCluster that KubeRay creates for them and replaces without a lost request.

    The keys are KubeRay's, except `cluster`, `llm`, `apiKey`, `waitFor` and `waitTimeout`, and `serveConfigV2` is a
    mapping.
    """

    name: ServiceName
    """Name of the RayService; applications can be reached at the Service `<name>-serve-svc`. It must differ from those
    of the tenant's RayClusters and RayJobs, because each names a Service `<name>-head-svc`."""

    serve_config_v2: ServeConfigSettings | None = None
    """What is served. A change is applied to the running RayCluster; no pod ends. Either this or `llm` is needed."""

    llm: LlmSettings | None = None
    """A language model with OpenAI's API, in place of `serveConfigV2` and of the cluster's workers."""

    api_key: SecretKeySettings | None = None
    """Key of a Secret with API keys, one a line. Serve then answers only requests with one of them in the header
    `Authorization: Bearer KEY`. A changed Secret applies within two minutes. Default: whoever reaches the service may
    use it."""

    cluster: ClusterTemplateSettings
    """Its RayCluster, with the keys of `clusters` except `name`, `adopt`, `readyTimeout`, `updates`, `ingress`
    and `idleTerminationOptions`. A change replaces it, see `upgradeStrategy`."""

    upgrade_strategy: UpgradeStrategySettings | None = None
    """How a change of `cluster` is applied. Default: `NewCluster`."""

    ray_cluster_deletion_delay_seconds: SecondsOrZero | None = None
    """Seconds for which the old RayCluster stays after an update, for requests that run there. Default: 60."""

    exclude_head_pod_from_serve_svc: bool = False
    """True: the head takes no requests."""

    wait_for: Literal["nothing", "ready"] = "nothing"
    """What `up` waits for. `nothing`: until the API server has the RayService. `ready`: until this version of it
    serves; an `up` fails if an application does."""

    wait_timeout: Timeout = "10m"
    """Time for which `up` waits. Afterwards it reports why the service is not ready, and KubeRay continues."""

    @functools.cached_property
    def own_cluster(self) -> OwnedClusterSettings:
        """Its RayCluster, with the service's name, and with its label."""
        template = cluster_of(self.llm, self.cluster) if self.llm else self.cluster
        if template.drain_timeout is None and template.drains_by_default:
            template = template.model_copy(update={"drain_timeout": f"{self.shortest_drain or 0}s"})
        return with_key(cluster_of_owner(template, self.name, SERVICE_LABEL), self.api_key)

    @property
    def shortest_drain(self) -> int | None:
        """Seconds for which a worker has to drain so that no request is lost: Serve ends a replica that it has moved
        after its graceful_shutdown_timeout_s, and takes 36 s to move its proxy (measured on Ray 2.60:
        RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S, and its next look). None: this Serve does not leave a draining node."""
        if version_tuple(self.cluster.ray_version) < version_tuple(FIRST_SERVE_WITH_DRAIN):
            return None
        longest = max((each or 0.0 for each in self._shutdown_timeouts), default=0.0)
        return min(max(_SHORTEST_DRAIN, math.ceil(longest) + _BESIDE_REQUESTS), _LONGEST_DRAIN)

    @property
    def shortest_spot_drain(self) -> int | None:
        """Seconds for which a worker on a spot node has to drain so that requests on new connections are not lost,
        where all deployments say how long they take to end (docs/measurements/draining.md). None: some do not."""
        timeouts = [each for each in self._shutdown_timeouts if each is not None]
        listed = all(each.deployments for each in self.config.applications)
        whole = timeouts and listed and len(timeouts) == len(self._shutdown_timeouts)
        return math.ceil(max(timeouts)) + BESIDE_REPLICAS if whole else None

    @property
    def _shutdown_timeouts(self) -> list[float | None]:
        """graceful_shutdown_timeout_s of each deployment."""
        deployments = [each for application in self.config.applications for each in application.deployments]
        found = [each.graceful_shutdown_timeout_s for each in deployments]
        return [None if each is None else float(each) for each in found]

    @functools.cached_property
    def config(self) -> ServeConfigSettings:
        """What is served, by either key."""
        return serve_config_of(self.llm) if self.llm else self.serve_config_v2 or NOTHING

    @property
    def upgrades(self) -> bool:
        """Whether a change of its RayCluster starts a second one."""
        return self.upgrade_strategy is None or self.upgrade_strategy.type != "None"
