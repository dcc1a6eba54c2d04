"""How the Pulumi program ends when the engine cancels it, because a step was refused or somebody pressed Ctrl-C."""

import os
import signal
import threading

EXIT_CODE = 128 + signal.SIGINT
"""As a shell reports a program that was interrupted."""


def end_at_once_when_cancelled() -> None:
    """The program ends without output when it is interrupted. Call it in the main thread.

    A program whose resources have hooks runs until the engine has finished. If a step fails, the engine reports why and
    interrupts the program. Python would raise KeyboardInterrupt in Pulumi's language host, which does not catch it
    (pulumi 3.276, sdk/python/cmd/pulumi-language-python-exec). Its traceback would be shown below the reason.

    A thread ends it, because Python calls a handler in the main thread alone: a signal that comes right before that
    thread waits for the engine would be handled after the wait.
    """
    noticed, notice = os.pipe()
    os.set_blocking(notice, False)

    def end() -> None:
        while os.read(noticed, 1) != bytes([signal.SIGINT]):
            pass
        os._exit(EXIT_CODE)

    threading.Thread(target=end, daemon=True).start()
    signal.signal(signal.SIGINT, lambda _signal, _frame: None)
    signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
