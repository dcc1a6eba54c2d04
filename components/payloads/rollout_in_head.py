"""Runs in the head of a RayCluster with Ray's own Python: reports the states of the workers, and drains workers.

Never imported by the stack. Its argument is JSON: {"drain": {pod: seconds from now, or null}}. A node with a time is
drained because of preemption at that time, by the head's clock; a node without one is drained if it is idle. A drained
node takes no new work, and its Ray ends as soon as it is idle. At the deadline itself Ray does nothing.

Prints JSON: {"ray": version, "nodes": {pod: "RUNNING", "IDLE", "DRAINING" or "DEAD"}, "accepted": [pod]}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray._raylet import GcsClient  # type: ignore[attr-defined] # missing in Ray's stub
from ray.autoscaler.v2.sdk import get_cluster_resource_state
from ray.core.generated.autoscaler_pb2 import DrainNodeReason, NodeStatus  # type: ignore[attr-defined] # made by protoc

REASON = "its pod is replaced by one with the stack's present settings"


def drained(address: str, drain: Mapping[str, float | None]) -> dict[str, Any]:
    """Drains nodes; returns the states that they had before."""
    gcs = GcsClient(address=address)
    # A Ray node has the name of its pod (RAY_CLOUD_INSTANCE_ID; ray-operator/controllers/ray/common/pod.go).
    nodes = {node.instance_id: node for node in get_cluster_resource_state(gcs).node_states}
    accepted = []
    for pod, seconds in drain.items():
        kind = "IDLE_TERMINATION" if seconds is None else "PREEMPTION"
        until = 0 if seconds is None else round((time.time() + seconds) * 1000)
        reason = DrainNodeReason.Value(f"DRAIN_NODE_REASON_{kind}")
        if pod in nodes and gcs.drain_node(nodes[pod].node_id.hex(), reason, REASON, until)[0]:
            accepted.append(pod)
    states = {pod: NodeStatus.Name(node.status) for pod, node in nodes.items()}
    return {"ray": ray.__version__, "nodes": states, "accepted": accepted}


if __name__ == "__main__":
    print(json.dumps(drained(os.environ.get("RAY_ADDRESS", "127.0.0.1:6379"), json.loads(sys.argv[1])["drain"])))
