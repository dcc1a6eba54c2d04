"""Rules for combinations of RayService settings.

What KubeRay and Ray refuse in the rendered object is checked in kuberay/.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from components.ray_cluster.rules import problems_of_template
from components.ray_service.llm import problems_of_llm
from components.ray_service.settings import RayServiceSettings
from core.problems import Problem, raise_problems
from kuberay.demands import problems_of_endpoints
from kuberay.ray_service import INCREMENTAL
from kuberay.serve import problems_of_serve_config


def _valid(service: RayServiceSettings) -> RayServiceSettings:
    raise_problems(problems_of(service))
    return service


ValidRayService = Annotated[RayServiceSettings, AfterValidator(_valid)]
"""Settings of a RayService without conflicts."""


def problems_of(service: RayServiceSettings) -> Iterator[Problem]:
    """All conflicts between settings; paths in the service's settings."""
    if service.llm and service.serve_config_v2:
        message = "llm makes the Serve config: remove one of them"
        yield Problem(("serveConfigV2",), None, message, "said-twice")
    elif service.serve_config_v2:
        yield from (each.below(("serveConfigV2",)) for each in problems_of_serve_config(service.serve_config_v2))
    elif service.llm:
        yield from problems_of_llm(service.llm, service.cluster)
    else:
        yield Problem((), None, "nothing is served: add serveConfigV2, or llm for a language model", "service-config")
    yield from problems_of_endpoints(service.config, service.exclude_head_pod_from_serve_svc)
    yield from (problem.below(("cluster",)) for problem in problems_of_template(service.cluster))
    strategy = service.upgrade_strategy
    if strategy and strategy.cluster_upgrade_options and strategy.type != INCREMENTAL:
        message = f"KubeRay ignores it with {strategy.type}: remove it, or set type to {INCREMENTAL}"
        yield Problem(("upgradeStrategy", "clusterUpgradeOptions"), None, message, "service-incremental-upgrade")
    if "wait_timeout" in service.model_fields_set and service.wait_for == "nothing":
        message = "has no effect, because `up` does not wait for the service: remove it, or set waitFor"
        yield Problem(("waitTimeout",), service.wait_timeout, message, "service-waits")
