"""Creates the volumes of a rehearsal: a folder for each PersistentVolumeClaim of its StorageClass, on the pod's own
node.

It replaces a provisioner of a real cluster (kubernetes.io, Dynamic volume provisioning): once the scheduler has chosen
the node for a claim's first pod, it creates a PersistentVolume; after the claim is deleted, it deletes volume and
folder. On simulated nodes there is no folder, because nothing is ever written there.

The volumes are of the kind `local`, because a kubelet lets a pod's `fsGroup` write to those, as to a cloud's disks.
"""

import json
import shutil
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from local import paths
from local.supervision import Program

NAME = "volumes"

STORAGE_CLASS = "standard"
"""Name of the default class."""

PROVISIONER = "ray-platform.dev/volumes"

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation with the node that the scheduler has chosen for a claim's pod."""

EVERY_SECONDS = 0.5

NO_FOLDER = Path("/simulated")


class Volumes:
    """Keeps the volumes in line with the claims. `folder`: their folder, as the node sees it; None: there is none."""

    def __init__(self, kubeconfig: Path, folder: Path | None) -> None:
        self._folder = folder
        api = config.new_client_from_config(str(kubeconfig))
        self._core: Any = client.CoreV1Api(api)
        self._storage: Any = client.StorageV1Api(api)

    def serve(self) -> None:
        """Runs for ever. Requests that the API server refuses are repeated."""
        classes = False
        while True:
            try:
                classes = classes or self._made_class()
                self.reconcile()
            except (client.ApiException, HTTPError) as error:
                print(f"{NAME}: {error}", flush=True)
            time.sleep(EVERY_SECONDS)

    def reconcile(self) -> None:
        """Once: creates missing volumes, and deletes those without a claim."""
        volumes = {item["metadata"]["name"]: item for item in self._list(self._core.list_persistent_volume)}
        for item in self._list(self._core.list_persistent_volume_claim_for_all_namespaces):
            body = volume(item, self._folder or NO_FOLDER)
            if body and body["metadata"]["name"] not in volumes:
                self._make(body)
        for name, item in volumes.items():
            if item["spec"].get("storageClassName") == STORAGE_CLASS and item["status"]["phase"] == "Released":
                self._core.delete_persistent_volume(name)
                if self._folder:
                    shutil.rmtree(self._folder / name, ignore_errors=True)

    def _make(self, body: dict[str, Any]) -> None:
        if self._folder:
            Path(body["spec"]["local"]["path"]).mkdir(parents=True, exist_ok=True)
        self._core.create_persistent_volume(body)

    def _made_class(self) -> bool:
        try:
            self._storage.create_storage_class(storage_class())
        except client.ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        return True

    def _list(self, call: Any) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(call(_preload_content=False).data)["items"]
        return listed


def program(kubeconfig: Path, *folder: Path) -> Program:
    """The program that runs it. `folder`: their folder, as the node and this program see it; none: there is none."""
    command: list[str | Path] = [sys.executable, "-m", "local.volumes", kubeconfig, *folder]
    return Program(NAME, command, {"PYTHONPATH": str(paths.ROOT)})


def storage_class() -> dict[str, Any]:
    """The cluster's default StorageClass."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": default},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(claim: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """The PersistentVolume for a claim; None if it must not be created, or not yet."""
    metadata, spec = claim["metadata"], claim["spec"]
    node = metadata.get("annotations", {}).get(SELECTED_NODE)
    if spec.get("storageClassName") != STORAGE_CLASS or spec.get("volumeName") or not node:
        return None
    name = f"pvc-{metadata['uid']}"
    reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
    on_node: dict[str, Any] = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    if "ReadWriteMany" in spec["accessModes"]:
        # As a network filesystem, for pods on all nodes. A real node is the only one with processes.
        on_node = {"key": "kubernetes.io/hostname", "operator": "Exists"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "local": {"path": str(folder / name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            # The folder is removed here, because no controller could reach it.
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
        },
    }


if __name__ == "__main__":
    kubeconfig, *folders = map(Path, sys.argv[1:])
    Volumes(kubeconfig, folders[0] if folders else None).serve()
