"""How the Pulumi program ends when the engine cancels it, because a step was refused or somebody pressed Ctrl-C."""

import os
import signal

EXIT_CODE = 128 + signal.SIGINT
"""As a shell reports a program that was interrupted."""


def end_at_once_when_cancelled() -> None:
    """The program ends without output when it is interrupted. Call it in the main thread.

    A program whose resources have hooks runs until the engine has finished. If a step fails, the engine reports why and
    interrupts the program. Python would raise KeyboardInterrupt in Pulumi's language host, which does not catch it
    (pulumi 3.259, sdk/python/cmd/pulumi-language-python-exec). Its traceback would be shown below the reason.
    """
    signal.signal(signal.SIGINT, lambda _signal, _frame: os._exit(EXIT_CODE))
