"""Cursors of SCAN and HSCAN that survive a change of the master.

A cursor is a place in the hash table of one process, laid out by that process' own random seed: followed on another
one it skips elements without a word (Redis: src/dict.c, dictScan). So clients get numbers that the gateway makes, and
a scan whose cursor is of another process begins anew, which SCAN's guarantees allow: elements may come twice.
"""

import secrets
from collections import OrderedDict

OPEN_SCANS = 4096
"""Cursors that are remembered. A forgotten one begins its scan anew."""

END = b"0"


class Cursors:
    """What the numbers that clients got stand for."""

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, tuple[str, bytes]] = OrderedDict()

    def given(self, process: str, cursor: bytes) -> bytes:
        """The number for a cursor that a process answered. It fits 63 bits, as clients expect."""
        if cursor == END:
            return END
        number = str(secrets.randbelow(2**62) + 1).encode()
        self._places[number] = (process, cursor)
        if len(self._places) > OPEN_SCANS:
            self._places.popitem(last=False)
        return number

    def followed(self, process: str, number: bytes) -> tuple[bytes, bool]:
        """The cursor to send to a process, and whether that begins a scan anew that was under way."""
        known, cursor = self._places.get(number, ("", END))
        if known == process:
            return cursor, False
        return END, number != END
