"""How a Ray cluster on Cloudera ML is provisioned."""

from dataclasses import dataclass
from typing import Any

import pulumi

from components.cml.manifests import claim, connection, nodes
from components.cml.settings import CmlRayClusterSettings, CmlSettings
from components.dynamic.cml import CmlClaim, CmlNodes
from components.payloads.cml_application import serve_key


@dataclass(frozen=True)
class CmlRayClusterArgs:
    settings: CmlSettings
    cluster: CmlRayClusterSettings


class CmlRayCluster(pulumi.ComponentResource):
    """A Ray cluster whose nodes are Applications of Cloudera ML. `up` waits until head and workers have joined.

    Each `up` replaces applications that have failed. Fewer workers: idle ones are removed first, busy ones once they
    have ended their tasks. If they do not in time, the update fails, and the next one continues. Deletion ends
    everything at once.

    Outputs, with the meaning of those of a RayCluster:
        connection: addresses through HTTPS; `rayAddress` is empty, because Ray's client port is not reached there. With
            applications of Serve also `endpoint`, and with a language model `openaiBaseUrl` and `model`.
        token: Ray's token, a secret, which callers of the addresses need.
        serve_key: the key for `endpoint`, a secret; None if nothing is served.
        worker_groups: name, GPUs, CPUs, memory and replicas of each group.
        largest_gpus: GPUs of the largest worker.
        status: state, the head's application, the numbers of workers, and the status of each application.
        state: the state in `status`.
        summary: all of it but the token, with the keys that a stack's output has for a RayCluster.
    """

    connection: dict[str, str]
    token: pulumi.Output[str]
    serve_key: pulumi.Output[str] | None
    worker_groups: list[dict[str, Any]]
    largest_gpus: int
    status: pulumi.Output[dict[str, Any]]
    state: pulumi.Output[str | None]
    summary: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: CmlRayClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:CmlRayCluster", name, None, opts)
        cluster = args.cluster
        inputs = nodes(args.settings, cluster, pulumi.get_stack())
        names = CmlClaim(f"{name}-claim", claim(inputs), pulumi.ResourceOptions(parent=self))
        made = CmlNodes(f"{name}-nodes", inputs, names, pulumi.ResourceOptions(parent=self, depends_on=[names]))
        self.connection = connection(cluster, inputs)
        self.token = names.token
        self.serve_key = names.token.apply(serve_key) if inputs["serve"] else None
        self.worker_groups = [
            {
                "name": group.name,
                "gpus": group.resources.gpus,
                "cpu": f"{group.resources.cpu:g}",
                "memory": f"{group.resources.memory:g}G",
                "maxReplicas": group.replicas,
            }
            for group in cluster.groups
        ]
        self.largest_gpus = max((group.resources.gpus for group in cluster.groups if group.replicas), default=0)
        self.status = pulumi.Output.all(made.state, made.joined, made.applications).apply(
            lambda known: {
                "state": known[0],
                "head": {"application": f"{inputs['prefix']}head"},
                "worker": {"desired": cluster.workers, "readyReplicas": known[1]},
                "applications": known[2],
            }
        )
        self.state = made.state
        self.summary = self.status.apply(
            lambda status: {
                **self.connection,
                "state": status["state"],
                "status": status,
                "largestGpus": self.largest_gpus,
                "workerGroups": self.worker_groups,
            }
        )
        self.register_outputs({"connection": self.connection, "status": self.status, "state": self.state})
