"""Ray's autoscaler without a cluster: its parser reads a RayCluster, its scheduler decides.

As of Ray 2.60 (python/ray/autoscaler/v2/scheduler.py and _private/kuberay/autoscaling_config.py).
"""

import copy
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler.v2.instance_manager.config import AutoscalingConfig
from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
from ray.autoscaler.v2.schema import AutoscalerInstance
from ray.autoscaler.v2.utils import ResourceRequestUtil
from ray.core.generated.autoscaler_pb2 import NodeState  # type: ignore[attr-defined]  # made when it is imported
from ray.core.generated.instance_manager_pb2 import Instance, NodeKind  # type: ignore[attr-defined]

from stacks.commands.plan.history.replay import Decision, Running, Size

HEAD = "headgroup"
"""Ray's name for the node type of the head."""

# It logs a line for each idle node that it keeps.
logging.getLogger("ray.autoscaler").setLevel(logging.ERROR)


class RaysAutoscaler:
    """The autoscaler of one RayCluster. A task has a CPU for each of its GPUs."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        """`body`: the RayCluster."""
        self._config = AutoscalingConfig(_derive_autoscaling_config_from_ray_cr(dict(body)), skip_content_hash=True)
        types = self._config.get_node_type_configs()
        self._types = types
        groups = {name: each for name, each in types.items() if name != HEAD}
        self.gpus: Mapping[str, int] = {name: int(each.resources.get("GPU", 0)) for name, each in groups.items()}
        self._most = self._config.get_max_num_nodes() or 0
        timeout = self._config.get_idle_timeout_s() or 60.0
        self.idle: Mapping[str, float] = {name: float(each.idle_timeout_s or timeout) for name, each in groups.items()}

    @property
    def sizes(self) -> dict[str, Size]:
        """The worker groups, for the model of `stacks.commands.plan.history`."""
        return {
            name: Size(
                gpus=gpus,
                cpus=int(self._types[name].resources["CPU"]),
                most=self._types[name].max_worker_nodes,
                idle=self.idle[name],
                others=len([each for each in self._types[name].resources.values() if each]) - 2,
            )
            for name, gpus in self.gpus.items()
        }

    def decide(self, tasks: Iterable[int], running: Iterable[Running], *, leave_out_full: bool = True) -> Decision:
        """The decision for waiting tasks, given by their GPUs, with all existing workers.

        Workers without a free GPU cannot run a task. Only their number matters, so it is subtracted from the maximum
        number of launches, which saves the scheduler most of its work.
        """
        useful, full = list(running), Counter[str]()
        if leave_out_full:
            full = Counter(each.group for each in useful if each.free_gpus == 0)
            useful = [each for each in useful if each.free_gpus > 0]
        types = {name: self._less(name, full[name]) if full[name] else each for name, each in self._types.items()}
        requests = [ResourceRequestUtil.make({"GPU": gpus, "CPU": gpus}) for gpus in tasks]
        reply = ResourceDemandScheduler().schedule(
            SchedulingRequest(
                disable_launch_config_check=True,
                node_type_configs=types,
                max_num_nodes=self._most - full.total(),
                idle_timeout_s=self._config.get_idle_timeout_s(),
                current_instances=[_head(), *(self._instance(each) for each in useful)],
                resource_requests=ResourceRequestUtil.group_by_count(requests),
            )
        )
        return Decision(
            {each.instance_type: each.count for each in reply.to_launch},
            tuple(each.instance_id for each in reply.to_terminate),
            len(reply.infeasible_resource_requests),
        )

    def _less(self, group: str, full: int) -> Any:
        fewer = copy.copy(self._types[group])
        fewer.max_worker_nodes -= full
        return fewer

    def _instance(self, worker: Running) -> AutoscalerInstance:
        total = dict(self._types[worker.group].resources)
        instance = Instance(
            instance_id=worker.name,
            instance_type=worker.group,
            status=Instance.ALLOCATED if worker.starting else Instance.RAY_RUNNING,
            node_id="" if worker.starting else worker.name,
            node_kind=NodeKind.WORKER,
        )
        if worker.starting:
            return AutoscalerInstance(cloud_instance_id=worker.name, im_instance=instance)
        busy = self.gpus[worker.group] - worker.free_gpus
        node = NodeState(
            node_id=worker.name.encode(),
            ray_node_type_name=worker.group,
            total_resources=total,
            available_resources={**total, "GPU": worker.free_gpus, "CPU": total["CPU"] - busy},
            idle_duration_ms=int(worker.idle * 1000),
        )
        return AutoscalerInstance(cloud_instance_id=worker.name, ray_node=node, im_instance=instance)


def _head() -> AutoscalerInstance:
    instance = Instance(
        instance_id="head", instance_type=HEAD, status=Instance.RAY_RUNNING, node_id="head", node_kind=NodeKind.HEAD
    )
    node = NodeState(node_id=b"head", ray_node_type_name=HEAD)
    return AutoscalerInstance(cloud_instance_id="head", ray_node=node, im_instance=instance)
