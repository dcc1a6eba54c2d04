"""Python processes that begin as copies of one which has imported Pulumi's SDK and the checkout's code already.

Each command of Pulumi starts five Python processes: language hosts, plugins, the program; each rehearsal cluster has
two. Two thirds of their CPU time is the import of packages. With the variables of `warm_python`, Python asks a server
(server.py) to run its command when it starts (site/sitecustomize.py): the server forks, and the copy runs it.

A copy that would find other code than the checkout's forgets that, and imports the other as a new process does. Its
parent is the server, and not the process that started the command. It gets that process's signals, and ends with it. It
has the server's network, so programs of a real node, which has its own, start cold.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from local.paths import first_on_python_path

_HERE = Path(__file__).parent


@contextmanager
def warm_python() -> Iterator[Mapping[str, str]]:
    """A server. Yields the variables with which Python processes start warm while it runs."""
    # Pytest's folders may be longer than the address of a socket. Its name is the network's, by which a process knows
    # whether it has the same.
    with TemporaryDirectory() as folder:
        address = Path(folder, str(Path("/proc/self/ns/net").stat().st_ino))
        command = [sys.executable, str(_HERE / "server.py"), str(address)]
        # Whether the output of a copy is buffered depends on the copy's own command and variables.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n", "the server of warm Python processes has not started"
            path = first_on_python_path(_HERE / "site", os.environ)
            yield {"PYTHONPATH": path, "RAY_PLATFORM_WARM_PYTHON": str(address)}
            server.stdin.close()
