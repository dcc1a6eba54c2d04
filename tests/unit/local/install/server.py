"""A web server on loopback that serves a folder and can fail, and checks of the cache."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from local import paths
from local.tools import Tool
from testbed import web_server
from testbed.web_server import Answers


@dataclass
class Server:
    """A web server: its address, the requests, and how often it closes the connection half-way."""

    folder: Path
    url: str = ""
    requests: list[str] = field(default_factory=list)
    cuts: int = 0


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve a folder."""
    served = Server(folder)

    class Handler(Answers, SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append(self.path.removeprefix("/"))
            file = served.folder / self.path.removeprefix("/")
            if served.cuts and file.suffix == ".gz":
                served.cuts -= 1
                half = file.stat().st_size // 2
                self.reply(200, file.read_bytes()[:half], missing=file.stat().st_size - half)
            else:
                super().do_GET()

        def translate_path(self, path: str) -> str:
            return str(served.folder / path.removeprefix("/"))

    with web_server.serving(Handler) as served.url:
        yield served


def remains() -> list[str]:
    """The content of the cache of tools."""
    folder = paths.cache() / "tools"
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def remove(tool: Tool) -> None:
    """Removes the tool from the cache."""
    shutil.rmtree(tool.folder)
