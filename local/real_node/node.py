"""The placement with one real node: the whole rehearsal in a box, with the stack's pods as containers."""

import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes import client

from core.nodes import GPU_RESOURCE, NodePool
from local import images, tools, volumes
from local.commands import run
from local.errors import RehearsalError
from local.images import Image
from local.install import install_missing
from local.nodes import labelled, pool_labels
from local.pki import Credentials
from local.real_node import network_policies
from local.real_node.box import Box
from local.real_node.programs import Member, members, programs
from local.real_node.requirements import unmet
from local.supervision import URGENT, Program

SOCKET_SECONDS = 30.0
"""Seconds until containerd's socket exists."""

ARCHIVE_LABEL = "ray-platform.dev/archive"
"""Label of containerd's images: the archive of the image."""


class RealNode:
    """The placement in a box: one node, `real-0`, with the labels and GPUs of the stack's first pool.

    The GPUs are counted, but do not exist. CPUs and memory are this machine's. The pool's other nodes and the other
    pools do not exist: pods that fit only there stay Pending. `count`: more such nodes, `real-1` and so on, so that
    one of them can be drained; each counts the whole machine as its own.
    """

    node_program = "kubelet"

    def __init__(self, run_folder: Path, count: int = 1) -> None:
        self._run = run_folder
        self._nodes = members(count)
        self.box = Box(run_folder)

    @property
    def address(self) -> str:
        return self.box.inside

    @property
    def api_port(self) -> int:
        return 6443  # as kubeadm has it; the box's network is its own

    @property
    def credentials(self) -> Credentials:
        return Credentials(
            self.address,
            servers={"kubelet-serving": (self.address,)},
            clients={
                **{each.kubelet: (f"system:node:{each.name}", "system:nodes") for each in self._nodes},
                "kube-proxy": ("system:kube-proxy", None),
                # These are programs of the rehearsal.
                "coredns": ("coredns", "system:masters"),
                network_policies.NAME: (network_policies.NAME, "system:masters"),
                volumes.NAME: (volumes.NAME, "system:masters"),
                "kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
            },
        )

    @property
    def apiserver_flags(self) -> Sequence[str]:
        keys = self._run / "pki"
        return (
            f"--kubelet-client-certificate={keys / 'kubelet-client.crt'}",
            f"--kubelet-client-key={keys / 'kubelet-client.key'}",
            f"--kubelet-certificate-authority={keys / 'ca.crt'}",
            # The node's name is in no DNS.
            "--kubelet-preferred-address-types=InternalIP",
        )

    @property
    def control_plane_priority(self) -> Sequence[str]:
        return URGENT

    def check(self, references: Iterable[str]) -> None:
        if reasons := [*unmet(), *_unknown(references)]:
            raise RehearsalError("the real node cannot run here:\n  " + "\n  ".join(reasons))

    def build(self, references: Iterable[str]) -> None:
        named = images.named(references)
        needed = [*tools.NODE_TOOLS, *(tool for image in named for tool in image.tools)]
        install_missing(tuple(each for at, each in enumerate(needed) if each not in needed[:at]))
        for image in (images.PAUSE, *named):
            image.build()

    def programs(self) -> list[Program]:
        return programs(self._run, self.address, self.box.cgroup, self._nodes)

    def begin(self, supervisord: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        cgroups = [each.folder for each in self._nodes]
        self.box.start([*supervisord, "--nodaemon"], environment, self._run / "logs" / "box.log", cgroups)

    def started(self, program: str) -> None:
        for node in self._nodes:
            if program == node.containerd:
                self._wait_for_containerd(node)
                self._load(node, images.PAUSE)

    def load(self, references: Iterable[str]) -> None:
        for image in images.named(references):
            for node in self._nodes:
                self._load(node, image)

    def join(self, api: client.ApiClient, pools: Sequence[NodePool]) -> None:
        """The node joins by its kubelet."""

    def ready(self, api: client.ApiClient, pools: Sequence[NodePool]) -> bool:
        return all(self._ready(api, pools, each.name) for each in self._nodes)

    def clean(self) -> None:
        self.box.clean()

    @staticmethod
    def _ready(api: client.ApiClient, pools: Sequence[NodePool], name: str) -> bool:
        core = client.CoreV1Api(api)
        try:
            node: Any = api.sanitize_for_serialization(core.read_node(name))
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        labels, resource, gpus = _of_pool(pools)
        core.patch_node(name, {"metadata": labelled(node, labels)})
        # The kubelet keeps unknown (extended) resources that are in the status, so they are set there.
        if node["status"]["allocatable"].get(resource, "0") != gpus:
            amounts = {resource: gpus}
            core.patch_node_status(name, {"status": {"capacity": amounts, "allocatable": amounts}})
            return False
        conditions = {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
        return conditions.get("Ready") == "True"

    def _wait_for_containerd(self, node: Member) -> None:
        deadline = time.monotonic() + SOCKET_SECONDS
        while True:
            try:
                self._ctr(node, "version")
            except RehearsalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _load(self, node: Member, image: Image) -> None:
        """Loads an image into containerd, unless it was loaded from the same archive."""
        with image.held() as archive:
            if not self._ctr(node, "images", "list", "-q", f'labels."{ARCHIVE_LABEL}"=={archive.name}'):
                self._ctr(node, "images", "import", str(archive))
                self._ctr(node, "images", "label", image.reference, f"{ARCHIVE_LABEL}={archive.name}")

    def _ctr(self, node: Member, *arguments: str) -> str:
        # The socket's path relative to its folder, because the path of a Unix socket may have 107 characters.
        socket = f"/proc/self/cwd/{node.socket}"
        return run("ctr", "--address", socket, "--namespace", "k8s.io", *arguments, cwd=self.box.folder)


def _of_pool(pools: Sequence[NodePool]) -> tuple[dict[str, str], str, str]:
    """The labels of the node, and the resource and number of its GPUs."""
    if not pools:
        return {}, GPU_RESOURCE, "0"
    return pool_labels(pools[0]), pools[0].gpu_resource, str(pools[0].gpus)


def _unknown(references: Iterable[str]) -> list[str]:
    """Images that this machine cannot provide; the node pulls none."""
    existing = {image.reference for image in images.IMAGES}
    return [
        f"image {name} does not exist here, and the node pulls none: use one of {', '.join(sorted(existing))}"
        for name in sorted(references)
        if images.full_name(name) not in existing
    ]
