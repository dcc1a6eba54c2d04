"""What a rehearsal changes in the copy of a stack file that Pulumi reads."""

from typing import Any

from components.redis_gateway.settings import IMAGE as GATEWAY_IMAGE
from core.stack_file import PREFIX
from local import tools
from local.placement import Kind


def adapt(config: dict[str, Any], nodes: Kind) -> None:
    """Changes a stack file's `config` so that its stack can be rehearsed on such nodes.

    The rehearsal is another cluster, and its kubeconfig has only one context. KubeRay, Volcano, Kueue and the gateway
    come from the installed programs, so that no network is needed. On simulated nodes no process runs, so no `up` waits
    for a job or a service. Values of a wrong type stay; the program refuses them.
    """
    if isinstance(kubernetes := config.get(f"{PREFIX}kubernetes"), dict):
        kubernetes.pop("context", None)
        kubernetes.pop("cluster", None)
    if f"{PREFIX}platform" not in config:
        operator = config.setdefault(f"{PREFIX}operator", {})
        if isinstance(operator, dict) and operator.get("install") != "existing":
            kuberay = tools.kuberay(str(operator.get("version", "")))
            operator.setdefault("location", str(kuberay.share("config") / "default"))
        _with_own_scheduler(config.get(f"{PREFIX}scheduler"))
        _with_own_gateway(config.get(f"{PREFIX}redis"))
    if nodes == "simulated":
        _without_waiting(config.get(f"{PREFIX}tenants"))


def _with_own_scheduler(scheduler: Any) -> None:
    """Installs a stack's Volcano or Kueue from the manifests of its installed programs."""
    manifests = {
        "volcano": tools.VOLCANO.share("installer") / "volcano-development.yaml",
        "kueue": tools.KUEUE.share("config") / "default",
    }
    for name, manifest in manifests.items():
        configured = scheduler.get(name) if isinstance(scheduler, dict) else None
        if isinstance(configured, dict) and configured.get("install") != "existing":
            configured.setdefault("location", str(manifest))


def _with_own_gateway(redis: Any) -> None:
    """Names the gateway's image as that of this checkout, which a real node has."""
    if isinstance(redis, dict) and isinstance(gateway := redis.get("gateway"), dict):
        gateway.setdefault("image", GATEWAY_IMAGE)


def _without_waiting(tenants: Any) -> None:
    for tenant in tenants if isinstance(tenants, list) else ():
        for kind in ("jobs", "services"):
            found = tenant.get(kind) if isinstance(tenant, dict) else None
            for each in found if isinstance(found, list) else ():
                if isinstance(each, dict):
                    each.pop("waitFor", None)
                    each.pop("waitTimeout", None)
