"""Servers for tests that speak as AWS does: of S3, Versity's gateway, whose buckets are folders; of KMS, Local KMS."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.control_plane import free_ports
from local.install import install_missing
from local.tools import LOCAL_KMS, VERSITYGW
from testbed.pods.steps import until

_SECONDS = 30.0

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
    with _served(command, f"http://{address}/health", folder, keys):
        yield Bucket(made, f"http://{address}")


@contextmanager
def key(folder: Path) -> Iterator[str]:
    """A key of a key service until the end of the block, as Pulumi writes it (gocloud.dev/secrets/awskms)."""
    install_missing((LOCAL_KMS,))
    folder.mkdir()
    address = _address()
    with _served([LOCAL_KMS.program("local-kms"), address, folder / "keys"], f"http://{address}", folder, {}):
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "TrentService.CreateKey"}
        answer = httpx.post(f"http://{address}", headers=headers, content="{}", trust_env=False)
        name = answer.raise_for_status().json()["KeyMetadata"]["KeyId"]
        yield f"awskms://{name}?region=us-east-1&endpoint=http://{address}"


def _address() -> str:
    return f"127.0.0.1:{next(free_ports())}"


@contextmanager
def _served(command: Sequence[str | Path], url: str, folder: Path, more: Mapping[str, str]) -> Iterator[None]:
    """Runs a server, which answers before the block begins."""
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, env={**os.environ, **more}, stdout=log, stderr=log) as server,
    ):
        try:
            until(lambda: _answers(url), f"{url} answers", _SECONDS, 0.1)
            yield
        finally:
            server.terminate()


def _answers(url: str) -> bool:
    try:
        return bool(httpx.get(url, trust_env=False).status_code)
    except httpx.TransportError:
        return False
