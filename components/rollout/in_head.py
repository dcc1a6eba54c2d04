"""Sent to the head of a RayCluster and run there with Ray's own Python: what the workers do, and draining them.

Never imported by the stack. Its argument is JSON: {"drain": {pod: milliseconds since 1970, or null}}. To a node with a
time it says that the node will be gone by then; to one without, that it shall end if it is idle. Either takes no new
work from then on, and Ray on it ends as soon as it is idle; at the time itself Ray does nothing.

Prints JSON: {"ray": version, "nodes": {pod: "RUNNING", "IDLE", "DRAINING" or "DEAD"}, "accepted": [pod]}.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import ray
from ray._raylet import GcsClient  # type: ignore[attr-defined] # Ray's stub leaves it out
from ray.autoscaler.v2.sdk import get_cluster_resource_state
from ray.core.generated.autoscaler_pb2 import DrainNodeReason, NodeStatus  # type: ignore[attr-defined] # made by protoc

REASON = "its pod is replaced by one with the stack's present settings"


def drained(address: str, drain: Mapping[str, int | None]) -> dict[str, Any]:
    """Drains, and tells how the nodes were before."""
    gcs = GcsClient(address=address)
    # KubeRay names each node of Ray as its pod (RAY_CLOUD_INSTANCE_ID; ray-operator/controllers/ray/common/pod.go).
    nodes = {node.instance_id: node for node in get_cluster_resource_state(gcs).node_states}
    accepted = []
    for pod, until in drain.items():
        kind = "IDLE_TERMINATION" if until is None else "PREEMPTION"
        reason = DrainNodeReason.Value(f"DRAIN_NODE_REASON_{kind}")
        if pod in nodes and gcs.drain_node(nodes[pod].node_id.hex(), reason, REASON, until or 0)[0]:
            accepted.append(pod)
    states = {pod: NodeStatus.Name(node.status) for pod, node in nodes.items()}
    return {"ray": ray.__version__, "nodes": states, "accepted": accepted}


if __name__ == "__main__":
    print(json.dumps(drained(os.environ.get("RAY_ADDRESS", "127.0.0.1:6379"), json.loads(sys.argv[1])["drain"])))
