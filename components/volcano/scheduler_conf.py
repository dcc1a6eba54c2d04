"""The file that configures Volcano's scheduler, `volcano-scheduler.conf`.

Plugins are in tiers. The scheduler asks the second tier only if the first has not decided
(pkg/scheduler/framework/session_plugins.go). It evicts pods that all plugins of a tier agree on (Reclaimable).
Volcano's own manifest has the shares of queues in the second tier. Then a queue loses all pods that its gangs do not
need, also those within its deserved share. So here the shares are in the first tier.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from .plugins import BinpackSettings
from .settings import VolcanoSchedulerSettings

FILE = "volcano-scheduler.conf"
"""Name of the file, and its key in the ConfigMap."""


def render(settings: VolcanoSchedulerSettings) -> str:
    """The text of the file. Names are those of pkg/scheduler/conf/scheduler_conf.go."""
    tiers = [{"plugins": list(_job_order(settings))}, {"plugins": list(_node_order(settings))}]
    conf = {"actions": ", ".join(settings.actions), "tiers": tiers}
    return yaml.safe_dump(conf, sort_keys=False)


def _job_order(settings: VolcanoSchedulerSettings) -> Iterator[dict[str, Any]]:
    """The plugins that order jobs, make them wait, and select pods to evict."""
    plugins = settings.plugins
    if plugins.priority:
        yield {"name": "priority"}
    if plugins.gang:
        # As in Volcano's manifest: preemption within a queue is by priority.
        yield {"name": "gang", "enablePreemptable": False, "enableReclaimable": not plugins.gang.reclaim_minimum}
    if plugins.conformance:
        yield {"name": "conformance"}
    if settings.queue_shares == "capacity":
        yield {"name": "capacity", "enableHierarchy": True}
    else:
        yield {"name": "proportion"}
    if plugins.overcommit:
        yield {"name": "overcommit", "arguments": {"overcommit-factor": plugins.overcommit.factor}}


def _node_order(settings: VolcanoSchedulerSettings) -> Iterator[dict[str, Any]]:
    """The plugins that choose nodes."""
    plugins = settings.plugins
    if plugins.drf:
        yield {"name": "drf", "enablePreemptable": False}
    if plugins.predicates:
        yield {"name": "predicates"}
    if plugins.node_order:
        arguments = {f"{name.replace('_', '')}.weight": weight for name, weight in plugins.node_order}
        yield {"name": "nodeorder", "arguments": arguments}
    if plugins.binpack:
        yield {"name": "binpack", "arguments": _binpack(plugins.binpack)}
    if plugins.network_topology_aware:
        yield {"name": "network-topology-aware"}
    for plugin in settings.extra_plugins:
        yield {"name": plugin.name, "arguments": plugin.arguments} if plugin.arguments else {"name": plugin.name}


def _binpack(binpack: BinpackSettings) -> dict[str, Any]:
    return {
        "binpack.weight": binpack.weight,
        "binpack.cpu": binpack.cpu,
        "binpack.memory": binpack.memory,
        "binpack.resources": ", ".join(binpack.resources),
        **{f"binpack.resources.{name}": weight for name, weight in binpack.resources.items()},
    }
