"""A server of S3 for tests: Versity's gateway, whose buckets are folders."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.install import install_missing
from local.tools import VERSITYGW

_SECONDS = 30.0


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
    keys = ("--access", "testing", "--secret", "not-for-files")
    command: list[str | Path] = [
        VERSITYGW.program("versitygw"),
        "--port",
        address,
        *keys,
        "--health",
        "/health",
        "--quiet",
    ]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen([*command, "posix", "--sidecar", attributes, objects], stdout=log, stderr=log) as server,
    ):
        try:
            _wait(f"http://{address}/health", server)
            environment = {"AWS_ACCESS_KEY_ID": keys[1], "AWS_SECRET_ACCESS_KEY": keys[3]}
            yield Bucket(made, f"http://{address}", environment)
        finally:
            server.terminate()


def _wait(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")
