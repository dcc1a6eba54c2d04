"""Signals that end a rehearsal."""

import signal
from typing import NoReturn


def end_as_after_ctrl_c() -> None:
    """Makes the first SIGTERM or SIGHUP raise KeyboardInterrupt, so that the rehearsal's cluster is stopped.

    Later ones change nothing, because they would interrupt the stop: `make` passes SIGTERM on to a command that may
    have it already. One that the caller ignores, as nohup(1) does, stays ignored.
    """
    signals = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]

    def end(*_: object) -> NoReturn:
        for each in signals:
            signal.signal(each, lambda *_: None)
        raise KeyboardInterrupt

    for each in signals:
        signal.signal(each, end)
