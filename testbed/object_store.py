"""A server of S3 for tests: Versity's gateway, whose buckets are folders."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.install import install_missing
from local.tools import VERSITYGW
from testbed.pods.steps import until

_SECONDS = 30.0

_ID, _KEY = "testing", "not-for-files"


@dataclass(frozen=True)
class Bucket:
    """A bucket, and the variables with which clients of AWS may write it."""

    folder: Path
    endpoint: str
    environment: Mapping[str, str]

    @property
    def url(self) -> str:
        """As Pulumi writes it (gocloud.dev/blob/s3blob)."""
        return f"s3://{self.folder.name}?region=us-east-1&endpoint={self.endpoint}&use_path_style=true"


@contextmanager
def bucket(folder: Path, port: int) -> Iterator[Bucket]:
    """A bucket until the end of the block, served at this port of loopback."""
    install_missing((VERSITYGW,))
    objects, attributes = folder / "objects", folder / "attributes"
    made = objects / "states"
    for each in (made, attributes):
        each.mkdir(parents=True)
    address = f"127.0.0.1:{port}"
    serves = ("--port", address, "--health", "/health", "--quiet")
    keys = {**os.environ, "ROOT_ACCESS_KEY": _ID, "ROOT_SECRET_KEY": _KEY}
    program: Path = VERSITYGW.program("versitygw")
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            [program, *serves, "posix", "--sidecar", attributes, objects], env=keys, stdout=log, stderr=log
        ) as server,
    ):
        try:
            until(lambda: _answers(f"http://{address}/health"), "the S3 server answers", _SECONDS, 0.1)
            yield Bucket(made, f"http://{address}", {"AWS_ACCESS_KEY_ID": _ID, "AWS_SECRET_ACCESS_KEY": _KEY})
        finally:
            server.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False
