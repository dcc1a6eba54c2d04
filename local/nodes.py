"""Simulated nodes: plain Node objects for the stack's `nodes`; KWOK keeps them Ready and simulates their pods."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kubernetes import client, utils

from core.nodes import GPU_PRODUCT_LABEL, NodePool, gpu_names
from local import supervision, tools, volumes
from local.host_pods import egress
from local.host_pods.programs import tools_of
from local.install import install_missing
from local.pki import Credentials
from local.supervision import Program, of_module

FAKE_NODE = {"kwok.x-k8s.io/node": "fake"}
"""Annotation of the nodes that KWOK simulates; other nodes are left to their kubelets."""

STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
"""KWOK's own stages: nodes are Ready and keep a lease, pods run and become Ready at once."""

_READY_AGAIN = Path(__file__).with_name("pod-ready-again.yaml")
"""A stage beside them."""

POOL_LABEL = "ray-platform.dev/pool"
"""Label of the rehearsal's nodes: their pool."""

LABELS = "ray-platform.dev/labels"
"""Annotation of the rehearsal's nodes: the names of the labels that the stack gave them, between spaces."""

PODS_PER_NODE = "110"
"""Kubernetes' own default for a kubelet (KubeletConfiguration maxPods)."""


class SimulatedNodes:
    """The placement on loopback: KWOK simulates the nodes, and host-pods runs the operator and the gang scheduler."""

    node_program = "kwok"

    address = "127.0.0.1"

    api_port = None

    credentials = Credentials(
        address, clients={name: (name, "system:masters") for name in ("kwok", "host-pods", volumes.NAME)}
    )
    """They replace kubelets and a provisioner, on processes of the rehearsal only."""

    def __init__(self, run: Path) -> None:
        self._run = run

    @property
    def apiserver_flags(self) -> Sequence[str]:
        return (
            # The API server refuses to advertise a loopback address; nothing connects to this one (RFC 5737, for
            # documentation).
            "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none",
            f"--egress-selector-config-file={egress.configuration(self._run)}",
        )

    @property
    def control_plane_priority(self) -> Sequence[str]:
        return ()

    def check(self, references: Iterable[str]) -> None:
        """Always possible: simulated nodes run wherever the tools run, and their pods need no images."""

    def build(self, references: Iterable[str]) -> None:
        """Installs the programs that run on this machine for images of these references."""
        install_missing(tools_of(references))

    def programs(self) -> list[Program]:
        return [
            Program("kwok", _kwok(self._run), {}),
            of_module("host-pods", "local.host_pods", self._run),
            volumes.program(self._run / "kubeconfigs" / volumes.NAME),
        ]

    def begin(self, supervisord: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        egress.write_configuration(self._run)
        supervision.daemonize(supervisord, environment, self._run)

    def started(self, program: str) -> None:
        """Nothing to do between two programs."""

    def load(self, references: Iterable[str]) -> None:
        """Nothing to do: simulated pods need no images."""

    def join(self, api: client.ApiClient, pools: Sequence[NodePool]) -> None:
        apply(api, pools)

    def ready(self, api: client.ApiClient, pools: Sequence[NodePool]) -> bool:
        return ready(api, sum(pool.count for pool in pools))

    def clean(self) -> None:
        egress.socket(self._run).unlink(missing_ok=True)


def manifests(pools: Iterable[NodePool]) -> dict[str, dict[str, Any]]:
    """Node objects by name: `<pool>-0`, `<pool>-1` and so on, with the pool's CPUs, memory, GPUs, labels and taints."""
    return {
        f"{pool.pool}-{index}": _node(pool, f"{pool.pool}-{index}") for pool in pools for index in range(pool.count)
    }


def _node(pool: NodePool, name: str) -> dict[str, Any]:
    capacity = {"cpu": pool.cpu, "memory": pool.memory, "pods": PODS_PER_NODE}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **pool_labels(pool),
    }
    if pool.gpus:
        capacity[pool.gpu_resource] = str(pool.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {**FAKE_NODE, LABELS: " ".join(sorted(labels))}},
        "spec": {"taints": [taint.model_dump() for taint in pool.taints]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def pool_labels(pool: NodePool) -> dict[str, str]:
    """The labels that identify the nodes of the pool."""
    product = {GPU_PRODUCT_LABEL: pool.gpu_product} if pool.gpu_product else {}
    return {POOL_LABEL: pool.pool, **pool.labels, **product}


def labelled(node: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """The patch of a live node's metadata that sets these labels, and removes others that the stack gave it."""
    former = node["metadata"].get("annotations", {}).get(LABELS, "").split()
    return {"labels": {**dict.fromkeys(former), **labels}, "annotations": {LABELS: " ".join(sorted(labels))}}


def live(api: client.ApiClient) -> list[dict[str, Any]]:
    """The live nodes of the stack's pools, from the API server."""
    nodes = api.sanitize_for_serialization(client.CoreV1Api(api).list_node(label_selector=POOL_LABEL))
    found: list[dict[str, Any]] = nodes["items"]
    return found


def ready(api: client.ApiClient, count: int) -> bool:
    """Whether there are that many simulated nodes and all of them are Ready."""
    found = live(api)
    conditions = [
        {condition["type"]: condition["status"] for condition in node["status"].get("conditions", [])} for node in found
    ]
    return len(found) == count and all(condition.get("Ready") == "True" for condition in conditions)


def apply(api: client.ApiClient, pools: Iterable[NodePool]) -> None:
    """Adds, changes and removes simulated nodes so that the cluster has those of the stack."""
    core = client.CoreV1Api(api)
    desired = manifests(pools)
    existing = {node["metadata"]["name"]: node for node in live(api)}
    for name in existing.keys() - desired.keys():
        core.delete_node(name)
    for name, body in desired.items():
        if name in existing:
            metadata = labelled(existing[name], body["metadata"]["labels"])
            core.patch_node(name, {"metadata": metadata, "spec": body["spec"]})
        else:
            utils.create_from_dict(api, body)
        # The API server ignores the status of a created Node; like a kubelet, this writes it through the subresource.
        before = existing[name]["status"]["capacity"] if name in existing else {}
        amounts = {**dict.fromkeys(gpu_names(before)), **body["status"]["capacity"]}
        core.patch_node_status(name, {"status": {"capacity": amounts, "allocatable": amounts}})


def _kwok(run: Path) -> list[str | Path]:
    stages = tools.KWOK.share("kustomize/stage")
    (annotation,) = (f"{key}={value}" for key, value in FAKE_NODE.items())
    files = [file for stage in STAGES for file in sorted((stages / stage).glob("*.yaml"))]
    return [
        tools.KWOK.program("kwok"),
        f"--kubeconfig={run / 'kubeconfigs/kwok'}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={annotation}",
        "--node-lease-duration-seconds=40",
        *(f"--config={file}" for file in (*files, _READY_AGAIN) if file.name != "kustomization.yaml"),
    ]
