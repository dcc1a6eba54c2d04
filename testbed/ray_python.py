"""A Python that has all of Ray's image, with dashboard, jobs and Serve, unlike that of the tests; and a head of it."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import psutil
from uv import find_uv_bin

from local import paths
from local.commands import run
from local.control_plane import free_ports
from local.images import ray_llm
from local.images.ray import PINS

_MODEL = "model"

TOKEN = "of-a-real-head"  # noqa: S105 (of a test)

ENVIRONMENT = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}


def serve_python() -> Path:
    """Installs it into the cache, if it is not there. Raises RehearsalError."""
    return _installed(PINS, PINS.read_text(), lambda _: None)


def vllm_python() -> tuple[Path, Path]:
    """The same with a real vLLM on CPUs, and the folder of a tiny model. Downloads 1.1 GB. Raises RehearsalError."""
    python = _installed(ray_llm.PINS, ray_llm.RAY_LLM.pins(), _with_model, "--no-deps")
    return python, python.parents[1] / _MODEL


def _with_model(folder: Path) -> None:
    (packages,) = folder.glob("lib/python3.*/site-packages")
    ray_llm.complete(packages)
    run(folder / "bin" / "python", "-c", ray_llm.MAKE_MODEL, folder / _MODEL)


def _installed(pins: Path, recipe: str, complete: Callable[[Path], object], *options: str) -> Path:
    """`recipe`: everything that decides the content. `complete` adds to the folder what the pins do not have."""
    digest = hashlib.sha256((recipe + sys.version).encode()).hexdigest()[:12]
    folder = paths.cache() / "runtimes" / digest
    python, done = folder / "bin" / "python", folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run(find_uv_bin(), "venv", "--quiet", f"--python={sys.executable}", folder)
            run(
                find_uv_bin(),
                "pip",
                "install",
                "--quiet",
                f"--python={python}",
                "--compile-bytecode",
                "--require-hashes",
                f"--requirements={pins}",
                *options,
            )
            complete(folder)
            done.touch()
    return python


@contextmanager
def head(python: Path) -> Iterator[tuple[list[str], str]]:
    """A head of Ray with a dashboard and a token; its addresses for drivers, and that of its dashboard."""
    port, client, agent, dashboard = islice(free_ports(), 4)
    # Sockets of Ray are below this folder, and a socket's path has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        process = psutil.Popen(
            [
                *(str(python.with_name("ray")), "start", "--head", "--block", "--node-ip-address=127.0.0.1"),
                *(f"--port={port}", f"--ray-client-server-port={client}", f"--dashboard-agent-listen-port={agent}"),
                *(f"--dashboard-port={dashboard}", "--min-worker-port=0", "--max-worker-port=0", "--num-cpus=2"),
                *(f"--temp-dir={folder}", "--disable-usage-stats", "--object-store-memory=80000000"),
            ],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield [f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"], f"127.0.0.1:{dashboard}"
        finally:
            ours = [process, *process.children(recursive=True)]
            for each in ours:
                # They end with the first of them.
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs(ours, timeout=10)
