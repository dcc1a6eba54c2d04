"""Cursors of SCAN and HSCAN that survive a change of the master.

A cursor is a position in the hash table of one process, whose layout depends on a random seed of that process. Another
process would silently skip elements (Redis: src/dict.c, dictScan). So clients get numbers of the gateway instead, and a
scan with a cursor of another process restarts. The guarantees of SCAN allow that: elements may come twice.
"""

import secrets
from collections import OrderedDict

OPEN_SCANS = 4096
"""Number of cursors that are remembered. A scan with a forgotten cursor restarts."""

END = b"0"


class Cursors:
    """Maps the numbers that clients have to cursors."""

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, tuple[str, bytes]] = OrderedDict()

    def given(self, process: str, cursor: bytes) -> bytes:
        """The number for a cursor of a process. It fits 63 bits, as clients expect."""
        if cursor == END:
            return END
        number = str(secrets.randbelow(2**62) + 1).encode()
        self._places[number] = (process, cursor)
        if len(self._places) > OPEN_SCANS:
            self._places.popitem(last=False)
        return number

    def followed(self, process: str, number: bytes) -> tuple[bytes, bool]:
        """The cursor to send to a process, and whether it restarts a scan that is in progress."""
        known, cursor = self._places.get(number, ("", END))
        if known == process:
            return cursor, False
        return END, number != END
