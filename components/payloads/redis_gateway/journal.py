"""Journal of the writes that a master has. It is on that master, so that each write is done once despite failovers.

The gateway sends a write as a script, which does the write and records its number and answer in a hash. That is atomic:
a replica has both or neither. After a failover the gateway reads the hash of the new master. Writes in the hash are
done, and their answers are known; the gateway sends the others again. So the client gets 1, not 0, for an HSETNX that
was done but whose answer was lost with the master.

An error that the data cause (`WRONGTYPE`, `ERR`) is an answer like any other: sent again after later writes, the write
might succeed. An error that the node causes, such as `OOM`, is not recorded.

A node whose memory is full refuses a script's first write if that may need memory, and no later one (Redis 7.0:
src/script.c, scriptVerifyOOM). So the gateway can still record a write that frees memory. And it can take over a
journal, because that script first removes a field.

Numbers of a script are exact up to 53 bits. Only INCRBY returns larger ones; the script reads these as text.

The hash has one field for each of the last `WINDOW` writes, as a ring, and the field `epoch`: the number of the
connection that may write. A new connection raises it, so that writes in the buffers of an older one are refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from .commands import Kind
from .protocol import ReplyError, command_parts, packed
from .settings import JOURNAL_SECONDS

WINDOW = 4096
"""Number of writes that a journal records, and that can be unanswered or kept at once; about 400 KB when full."""

FENCED = "FENCED"
"""Prefix of the error for a write of an older connection."""

_WRITE = b"""
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and epoch ~= ARGV[1] then return redis.error_reply('FENCED a newer connection writes') end
local command, keys = {ARGV[3]}, #KEYS
for i = 2, keys do command[i] = KEYS[i] end
for i = 4, #ARGV do command[keys + i - 3] = ARGV[i] end
local answer = redis.pcall(unpack(command))
local note = answer
if type(answer) == 'number' then
  note = string.format('%.0f', answer)
  if math.abs(answer) >= 2 ^ 53 then
    answer = redis.pcall('GET', KEYS[2])
    note = answer.err or answer
  end
elseif type(answer) == 'table' and answer.err then
  local kind = string.match(answer.err, '^%u+')
  if kind ~= 'ERR' and kind ~= 'WRONGTYPE' then return answer end
  note = answer.err
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], ARGV[2] % %(window)d, ARGV[2] .. ' ' .. note)
redis.call('EXPIRE', KEYS[1], %(seconds)d)
return answer
""".replace(b"%(window)d", str(WINDOW).encode()).replace(b"%(seconds)d", str(JOURNAL_SECONDS).encode())

_OPEN = b"""
redis.call('HDEL', KEYS[1], 'epoch')
redis.call('HSET', KEYS[1], 'epoch', ARGV[1])
redis.call('EXPIRE', KEYS[1], %(seconds)d)
return redis.call('HGETALL', KEYS[1])
""".replace(b"%(seconds)d", str(JOURNAL_SECONDS).encode())


def new_key(prefix: str) -> bytes:
    """A key for the journal of one client connection. The Redis user of the gateway needs access to the prefix."""
    return f"{prefix}{uuid.uuid4().hex}".encode()


def write(journal: bytes, epoch: int, number: int, command: Sequence[bytes], kind: Kind) -> Iterator[bytes]:
    """The script that does a write and records it, in parts for `protocol.chunks`."""
    keys = command[1:] if kind.all_keys else command[1:2]
    others = command[1 + len(keys) :]
    counted = str(len(keys) + 1).encode()
    stamp = (str(epoch).encode(), str(number).encode())
    return command_parts(b"EVAL", _WRITE, counted, journal, *keys, *stamp, command[0], *others)


def opening(journal: bytes, epoch: int) -> bytes:
    """The packed command that takes over a journal for a new connection; `done` reads its answer."""
    return packed(b"EVAL", _OPEN, b"1", journal, str(epoch).encode())


def done(answer: Any) -> dict[int, int | ReplyError]:
    """The writes that a master has: answers by number."""
    notes = [answer[at + 1] for at in range(0, len(answer), 2) if answer[at] != b"epoch"]
    return {int(number): _answered(text) for number, _, text in (note.partition(b" ") for note in notes)}


def _answered(text: bytes) -> int | ReplyError:
    try:
        return int(text)
    except ValueError:
        return ReplyError(text.decode())
