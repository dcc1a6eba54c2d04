"""Creates the volumes of a rehearsal: a folder for each PersistentVolumeClaim of a StorageClass.

It replaces the provisioners of a real cluster (kubernetes.io, Dynamic volume provisioning). For a claim of the default
class it creates a PersistentVolume on the node that the scheduler has chosen for its first pod; after the claim is
deleted, it deletes volume and folder. A class that a claim names and the rehearsal lacks is created, too: it stands for
one of the real cluster, with volumes for all nodes. On simulated nodes there is no folder, because nothing is ever
written there.

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

from local.supervision import Program, of_module
from local.watching import changes

NAME = "volumes"

STORAGE_CLASS = "standard"
"""Name of the default class."""

PROVISIONER = "ray-platform.dev/volumes"

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation with the node that the scheduler has chosen for a claim's pod."""

PAUSE_SECONDS = 0.2

NO_FOLDER = Path("/simulated")


class Volumes:
    """Keeps the volumes in line with the claims. `folder`: their folder, as the node sees it; None: there is none."""

    def __init__(self, kubeconfig: Path, folder: Path | None) -> None:
        self._folder = folder
        api = config.new_client_from_config(str(kubeconfig))
        self._core: Any = client.CoreV1Api(api)
        self._storage: Any = client.StorageV1Api(api)
        self._classes: dict[str, bool] = {}
        """Whether this program provides the volumes of a class, by its name."""

    def serve(self) -> None:
        """Runs for ever. Requests that the API server refuses are repeated."""
        core = self._core
        changed = changes(core.list_persistent_volume_claim_for_all_namespaces, core.list_persistent_volume)
        while True:
            changed.wait()
            changed.clear()
            try:
                self.reconcile()
            except (client.ApiException, HTTPError) as error:
                print(f"{NAME}: {error}", flush=True)
                changed.set()
            # One list after several changes, and a pause before what was refused is tried again.
            time.sleep(PAUSE_SECONDS)

    def reconcile(self) -> None:
        """Once: creates missing classes and volumes, and deletes volumes without a claim."""
        self._provides(STORAGE_CLASS)
        volumes = {item["metadata"]["name"]: item for item in self._list(self._core.list_persistent_volume)}
        for item in self._list(self._core.list_persistent_volume_claim_for_all_namespaces):
            body = volume(item, self._folder or NO_FOLDER)
            if body and body["metadata"]["name"] not in volumes and self._provides(body["spec"]["storageClassName"]):
                self._make(body)
        for name, item in volumes.items():
            ours = (item["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == PROVISIONER
            if ours and item["status"]["phase"] == "Released":
                self._core.delete_persistent_volume(name)
                if self._folder:
                    shutil.rmtree(self._folder / name, ignore_errors=True)

    def _provides(self, name: str) -> bool:
        if name not in self._classes:
            self._classes[name] = self._made_class(name)
        return self._classes[name]

    def _made_class(self, name: str) -> bool:
        """Creates a class. False: it exists, and another program provides its volumes."""
        try:
            self._storage.create_storage_class(storage_class(name))
        except client.ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return bool(self._storage.read_storage_class(name).provisioner == PROVISIONER)
        return True

    def _make(self, body: dict[str, Any]) -> None:
        if self._folder:
            Path(body["spec"]["local"]["path"]).mkdir(parents=True, exist_ok=True)
        self._core.create_persistent_volume(body)

    def _list(self, call: Any) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(call(_preload_content=False).data)["items"]
        return listed


def program(kubeconfig: Path, *folder: Path) -> Program:
    """The program that runs it. `folder`: their folder, as the node and this program see it; none: there is none."""
    return of_module(NAME, "local.volumes", kubeconfig, *folder)


def storage_class(name: str) -> dict[str, Any]:
    """A StorageClass. The cluster's default one binds once a pod needs it, another one at once."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"} if name == STORAGE_CLASS else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": default},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer" if default else "Immediate",
    }


def volume(claim: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """The PersistentVolume for a claim; None if it must not be created, or not yet."""
    metadata, spec = claim["metadata"], claim["spec"]
    node = metadata.get("annotations", {}).get(SELECTED_NODE)
    of_class = spec.get("storageClassName")
    if not of_class or spec.get("volumeName") or not (node or of_class != STORAGE_CLASS):
        return None
    shared = of_class != STORAGE_CLASS or "ReadWriteMany" in spec["accessModes"]
    name = f"pvc-{metadata['uid']}"
    reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
    of_node = {"operator": "Exists"} if shared else {"operator": "In", "values": [node]}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", **of_node}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "local": {"path": str(folder / name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            # The folder is removed here, because no controller could reach it.
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": of_class,
        },
    }


if __name__ == "__main__":
    kubeconfig, *folders = map(Path, sys.argv[1:])
    Volumes(kubeconfig, folders[0] if folders else None).serve()
