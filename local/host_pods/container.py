"""Environment, arguments and mounted files of a Deployment's container."""

import base64
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client

from components.bodies import first_container

Deployment = Mapping[str, Any]
"""A Deployment as the API server returns it."""


def key_of(deployment: Deployment) -> str:
    """`<namespace>/<name>`."""
    return f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}"


def account_of(deployment: Deployment) -> str:
    """The ServiceAccount that the pods run as."""
    account: str = deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
    return account


def _unchanged(_name: str, content: bytes) -> bytes:
    return content


class Container:
    """The container of a Deployment, with its files below a folder of this machine instead of its own root."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self._deployment = deployment
        self._container = first_container(deployment)
        self._root = folder / "mounts"

    def arguments(self) -> list[str]:
        """Its arguments, with paths of this machine for its files."""
        return [self._here(argument) for argument in self._container.get("args", [])]

    def environment(self) -> dict[str, str]:
        """Its environment, as far as the Deployment sets or determines it."""
        metadata = self._deployment["metadata"]
        fields = {"metadata.namespace": metadata["namespace"], "metadata.name": metadata["name"]}
        found = {}
        for entry in self._container.get("env", []):
            path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            if path is None:
                found[entry["name"]] = self._here(entry.get("value", ""))
            elif path in fields:
                found[entry["name"]] = fields[path]
        return found

    def write_files(self, core: client.CoreV1Api, adapted: Callable[[str, bytes], bytes] = _unchanged) -> None:
        """Creates its folders, with the files of the ConfigMaps and Secrets that it mounts.

        ConfigMaps also get paths of this machine for its files. `adapted`: returns the content to write for a file's
        name and content.

        Raises client.ApiException if one of these is missing, which keeps a pod from starting, too.
        """
        shutil.rmtree(self._root, ignore_errors=True)
        volumes = {volume["name"]: volume for volume in self._deployment["spec"]["template"]["spec"].get("volumes", [])}
        for mount in self._mounts():
            target = self._local(mount["mountPath"])
            alone = mount.get("subPath")
            (target.parent if alone else target).mkdir(parents=True, exist_ok=True, mode=0o700)
            for name, content in self._content(core, volumes[mount["name"]]).items():
                if alone in (None, name):
                    file = target if alone else target / name
                    file.touch(mode=0o600)
                    file.write_bytes(adapted(name, content))

    def _content(self, core: client.CoreV1Api, volume: Mapping[str, Any]) -> dict[str, bytes]:
        namespace = self._deployment["metadata"]["namespace"]
        if "configMap" in volume:
            texts = core.read_namespaced_config_map(volume["configMap"]["name"], namespace).data or {}
            return {name: self._here(text).encode() for name, text in texts.items()}
        if "secret" in volume:
            encoded = core.read_namespaced_secret(volume["secret"]["secretName"], namespace).data or {}
            return {name: base64.b64decode(text) for name, text in encoded.items()}
        return {}

    def _mounts(self) -> list[dict[str, Any]]:
        return list(self._container.get("volumeMounts", []))

    def _local(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _here(self, text: str) -> str:
        for mount in self._mounts():
            text = text.replace(mount["mountPath"], str(self._local(mount["mountPath"])))
        return text
