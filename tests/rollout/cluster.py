"""Starts a small Ray with nodes that are named as KubeRay names them, prints its address, and ends with its input.

Arguments: the names of the workers. Each has a CPU, two simulated GPUs, and its name as a resource.
"""

import os
import sys

from ray.cluster_utils import Cluster

STORE = 80_000_000
"""Bytes; Ray requires at least 75 MiB."""

os.environ["RAY_CLOUD_INSTANCE_ID"] = "head"
cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
)
try:
    for name in sys.argv[1:]:
        os.environ["RAY_CLOUD_INSTANCE_ID"] = name
        cluster.add_node(num_cpus=1, num_gpus=2, object_store_memory=STORE, resources={name: 1})
    print(cluster.address, flush=True)
    sys.stdin.read()
finally:
    cluster.shutdown()  # type: ignore[no-untyped-call] # Ray's own
