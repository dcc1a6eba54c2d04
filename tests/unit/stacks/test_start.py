"""Commands and the program start quickly, and a program that the engine cancels ends without a traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local import paths
from stacks.program.cancelled import EXIT_CODE

ROOT = Path(__file__).parents[3]

CLUSTER = {"kubernetes", "pulumi", "pulumi_kubernetes", "pulumi_policy", "grpc", "requests"}
SETTINGS = {"pydantic", "yaml", "jsonschema_rs"}
CLIENT = {"kubernetes", "requests", "urllib3", "websocket"}
"""The client of the API server and what it imports, which only a live call needs."""

NOT_OF_PULUMI = {"rich", "typer", "cryptography", "redis"}
RARE = {"cryptography", "redis", "supervisor", "psutil"}

CHECK = "from stacks.commands.check import findings; import stacks.__main__"
PLAN = "from stacks.commands.plan import text; import stacks.planning.plan, stacks.load, stacks.__main__"
PROVIDERS = """
from components.dynamic import definitions, generated, guards, pod_group, reached, redis_keys, rollout"""
IMPACT = (
    "from stacks.commands.impact import comparison, report, sources; from stacks import load; import stacks.__main__"
)

REVIEW = "from stacks.commands.review import comment, reports, reviewed; import stacks.__main__"

STARTS = {
    "a command of stacks": ("import stacks.__main__", 190, CLUSTER | SETTINGS | RARE),
    "check": (CHECK, 578, CLUSTER | RARE | {"rich"}),
    "plan": (PLAN, 625, CLUSTER | RARE),
    "impact": (IMPACT, 598, CLUSTER | RARE),
    "review": (REVIEW, 656, CLUSTER | RARE),
    "schema": ("import stacks.commands.schema.stack_file, stacks.__main__", 479, CLUSTER | RARE),
    "local": ("import local.__main__", 250, CLUSTER | SETTINGS | RARE),
    "the Pulumi program": ("import stacks.program.build, stacks.program.config", 872, CLIENT | NOT_OF_PULUMI),
    "the dynamic providers": (PROVIDERS, 629, CLIENT | NOT_OF_PULUMI),
}
"""The modules imported before the work begins, their largest number, and packages that must not be among them."""

MORE = 3 if sys.version_info >= (3, 12) else 0
"""Modules that later versions of Python add of their own."""


@pytest.mark.parametrize("start", STARTS)
def test_a_start_imports_no_more_than_its_budget(start: str) -> None:
    imports, most, not_needed = STARTS[start]
    count = f"{imports}; import sys; print(len(sys.modules), *{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", count], cwd=ROOT, capture_output=True, text=True, check=True)
    number, *packages = done.stdout.split()
    assert not not_needed & set(packages)
    assert int(number) <= most + MORE


def test_of_the_sdk_for_kubernetes_only_the_provider_is_imported() -> None:
    """Not its kinds, which are a thousand modules."""
    program = (
        "import stacks.program.build, sys; print(sum(name.startswith('pulumi_kubernetes.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 40


@pytest.mark.parametrize("words", [["check", "dev"], ["plan", "dev", "--format", "svg"]], ids=["check", "plan"])
def test_a_command_without_a_cluster_loads_neither_pulumi_nor_a_kubernetes_client(words: list[str]) -> None:
    """They take longer to load than a check takes."""
    program = (
        f"import sys\nfrom stacks.__main__ import app\nsys.argv = ['stacks', *{words}]\ntry:\n    app()\n"
        "finally:\n    print([each for each in ('pulumi', 'kubernetes', 'grpc', 'rich.table') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_python_without_the_packages_says_how_to_install_them() -> None:
    command = [sys.executable, "-S", "-m", "stacks", "check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "lacks the packages of ray-platform. In a checkout `make .venv/installed`" in done.stderr
    assert "Traceback" not in done.stderr


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
