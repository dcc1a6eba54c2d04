"""Python imports this file when it starts, because its folder is on PYTHONPATH.

A process with one of the commands below lets the server run it, and ends as that has ended. The file imports little, as
each Python process of the tests imports it.
"""

import os
import sys

MODULES = ("local.plugins.start", "pulumi.dynamic", "pulumi.policy", "local.host_pods", "local.volumes")
"""Commands that run warm: those that `python -m` runs."""

SCRIPTS = ("local/plugins/language/program.py", "local/plugins/language/installed.py")
"""Commands that run warm: files."""

OPTIONS = ("-u", "-P")
"""Options of Python that the server knows."""


def delegate(address: str, arguments: list[str]) -> None:
    """Lets the server at `address` run this process's command. Returns if it does not run warm, without a server, and
    in a network other than the server's."""
    options = []
    while arguments[:1] and arguments[0] in OPTIONS:
        options.append(arguments.pop(0))
    module = arguments[1] if arguments[:1] == ["-m"] else ""
    if module not in MODULES and not (arguments and arguments[0].endswith(SCRIPTS)):
        return
    if not address.endswith(f"/{os.stat('/proc/self/ns/net').st_ino}"):  # noqa: PTH116 - pathlib would be another import
        return

    import array
    import json
    import select
    import signal
    import socket

    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
    except OSError:
        return
    request = {
        "options": options,
        "command": arguments,
        "folder": os.getcwd(),  # noqa: PTH109 - the same
        "environment": dict(os.environ),
        "path": sys.path,
    }
    content = json.dumps(request).encode()
    descriptors = array.array("i", [0, 1, 2]).tobytes()
    signals = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    server.sendmsg([len(content).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    server.sendall(content)
    # Python sends the number of a signal as it comes. A function as handler would wait for the answer of the server, if
    # the signal came just before `recv`.
    server.setblocking(False)
    signal.set_wakeup_fd(server.fileno())
    for number in signals:
        signal.signal(number, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    select.select([server], [], [])
    code = int.from_bytes(server.recv(4) or (-signal.SIGKILL).to_bytes(4, "big", signed=True), "big", signed=True)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if warm := os.environ.get("RAY_PLATFORM_WARM_PYTHON"):
    delegate(warm, sys.orig_argv[1:])
