"""A web server on loopback that serves a folder and can fail, and checks of the cache."""

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local import paths
from local.tools import Tool


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

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append(self.path.removeprefix("/"))
            file = served.folder / self.path.removeprefix("/")
            if served.cuts and file.suffix == ".gz":
                served.cuts -= 1
                self.send_response(200)
                self.send_header("Content-Length", str(file.stat().st_size))
                self.end_headers()
                self.wfile.write(file.read_bytes()[: file.stat().st_size // 2])
            else:
                super().do_GET()

        def translate_path(self, path: str) -> str:
            return str(served.folder / path.removeprefix("/"))

        def log_message(self, format: str, *args: object) -> None:
            """The log of a test is its own."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield served
        server.shutdown()


def remains() -> list[str]:
    """The content of the cache of tools."""
    folder = paths.cache() / "tools"
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def remove(tool: Tool) -> None:
    """Removes the tool from the cache."""
    shutil.rmtree(tool.folder)
