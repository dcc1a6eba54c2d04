"""A program that the engine cancels ends without a traceback, with either language host."""

import signal
import subprocess
import sys

from local import paths
from stacks.program.cancelled import EXIT_CODE

HOST = """
import asyncio, logging, runpy, sys
from concurrent.futures import ThreadPoolExecutor
logging.getLogger("asyncio").setLevel(logging.CRITICAL)
loop = asyncio.new_event_loop()
executor = ThreadPoolExecutor(max_workers=4)
loop.set_default_executor(executor)
async def run():
    exec(sys.argv[1])
    await asyncio.get_running_loop().run_in_executor(None, lambda: (print("waits", flush=True), time.sleep(60)))
import time
try:
    loop.run_until_complete(run())
finally:
    executor.shutdown(wait=True)
"""
"""How Pulumi's own host runs a program (pulumi-language-python-exec): it waits for the engine in a thread."""

QUIET = "from stacks.program.cancelled import end_at_once_when_cancelled; end_at_once_when_cancelled()"


def test_a_cancelled_program_shows_no_traceback() -> None:
    command = [sys.executable, "-c", HOST, QUIET]
    with subprocess.Popen(
        command, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=30)
    assert (process.returncode, shown) == (EXIT_CODE, "")
