"""What a rehearsal changes in the copy of a stack file that Pulumi reads."""

from collections.abc import Iterator
from typing import Any

from core.stack_file import PREFIX
from local import tools
from local.placement import Kind


def adapt(config: dict[str, Any], nodes: Kind) -> list[str]:
    """Returns the jobs and services that no `up` waits for although the file says so.

    Changes a stack file's `config` so that its stack can be rehearsed on such nodes.

    The rehearsal is another cluster, and its kubeconfig has only one context. KubeRay, Volcano and Kueue
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
    return list(_without_waiting(config.get(f"{PREFIX}tenants"))) if nodes == "simulated" else []


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


def _without_waiting(tenants: Any) -> Iterator[str]:
    for tenant in tenants if isinstance(tenants, list) else ():
        for kind in ("jobs", "services"):
            found = tenant.get(kind) if isinstance(tenant, dict) else None
            for each in found if isinstance(found, list) else ():
                if isinstance(each, dict):
                    if each.pop("waitFor", "nothing") != "nothing":
                        yield f"{kind[:-1]} {tenant.get('namespace') or tenant.get('name')}/{each.get('name')}"
                    each.pop("waitTimeout", None)
