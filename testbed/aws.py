"""Servers for tests that speak as AWS does: of S3, Versity's gateway, whose buckets are folders; of KMS, Local KMS."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.control_plane import free_ports
from local.install import install_missing
from local.tools import LOCAL_KMS, VERSITYGW
from testbed.pods.steps import until_successful

_ID, _KEY = "testing", "not-for-files"

CREDENTIALS = {"AWS_ACCESS_KEY_ID": _ID, "AWS_SECRET_ACCESS_KEY": _KEY}
"""The variables with which clients of AWS may use both."""


@dataclass(frozen=True)
class Bucket:
    """A bucket."""

    folder: Path
    endpoint: str

    @property
    def url(self) -> str:
        """As Pulumi writes it (gocloud.dev/blob/s3blob)."""
        return f"s3://{self.folder.name}?region=us-east-1&endpoint={self.endpoint}&use_path_style=true"


@contextmanager
def bucket(folder: Path) -> Iterator[Bucket]:
    """A bucket until the end of the block."""
    install_missing((VERSITYGW,))
    objects, attributes = folder / "objects", folder / "attributes"
    made = objects / "states"
    for each in (made, attributes):
        each.mkdir(parents=True)
    address = _address()
    serves = ("--port", address, "--health", "/health", "--quiet")
    keys = {"ROOT_ACCESS_KEY": _ID, "ROOT_SECRET_KEY": _KEY}
    command: list[str | Path] = [VERSITYGW.program("versitygw"), *serves, "posix", "--sidecar", attributes, objects]
    with _served(command, lambda: httpx.get(f"http://{address}/health", trust_env=False), folder, keys):
        yield Bucket(made, f"http://{address}")


@contextmanager
def key(folder: Path) -> Iterator[str]:
    """A key of a key service until the end of the block, as Pulumi writes it (gocloud.dev/secrets/awskms)."""
    install_missing((LOCAL_KMS,))
    folder.mkdir()
    address = _address()

    def asked(action: str) -> httpx.Response:
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"TrentService.{action}"}
        return httpx.post(f"http://{address}", headers=headers, content="{}", trust_env=False)

    command: list[str | Path] = [LOCAL_KMS.program("local-kms"), address, folder / "keys"]
    with _served(command, lambda: asked("ListKeys"), folder, {}):
        name = asked("CreateKey").raise_for_status().json()["KeyMetadata"]["KeyId"]
        yield f"awskms://{name}?region=us-east-1&endpoint=http://{address}"


def _address() -> str:
    return f"127.0.0.1:{next(free_ports())}"


@contextmanager
def _served(
    command: Sequence[str | Path], ask: Callable[[], httpx.Response], folder: Path, more: Mapping[str, str]
) -> Iterator[None]:
    """Runs a server, which answers before the block begins. `more`: variables of its environment."""
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, env={**os.environ, **more}, stdout=log, stderr=log) as server,
    ):
        try:
            until_successful(ask, f"{folder.name} answers")
            yield
        finally:
            server.terminate()
