"""How the language host is asked to end, in a process of its own: signals are of the whole process."""

import subprocess
import sys

import pytest

from local import paths

pytestmark = pytest.mark.timeout(60)


def output_of(code: str) -> str:
    head = "import os, signal, threading\nfrom local.plugins.stop import Stop\nstop = Stop()\n"
    run = subprocess.run(
        [sys.executable, "-c", head + code], cwd=paths.ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    return run.stdout


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_a_signal_before_the_wait_is_not_lost(signal: str) -> None:
    assert output_of(f"os.kill(os.getpid(), signal.{signal}); print(stop.wait(), stop.wait())") == "True True\n"


def test_a_signal_that_another_thread_receives_ends_the_wait_of_the_main_thread() -> None:
    """The kernel gives a signal to any thread: here the main thread does not take it."""
    code = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
def other():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.2, other).start()
print(stop.wait())
"""
    assert output_of(code) == "True\n"


def test_a_thread_ends_the_wait_of_others() -> None:
    assert output_of("threading.Timer(0.2, stop.set).start(); print(stop.wait())") == "True\n"


def test_nothing_ends_the_wait_before_its_time() -> None:
    assert output_of("print(stop.wait(0.1))") == "False\n"


def test_more_signals_than_its_buffer_has_room_for() -> None:
    assert output_of("[stop.set() for _ in range(100_000)]; print(stop.wait())") == "True\n"
