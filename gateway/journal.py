"""Which writes a master has, kept on that master, so that each is done once over any number of failovers.

A write is sent as a script that does it and notes its number and its answer in a hash, in one step: a replica has both
or neither. A new master is asked for that hash. What is in there has been done, and the answer is known; what is not
is sent again. So an HSETNX that was done, but whose answer was lost with the master, is answered 1 and not 0.

An error that the data are the cause of (`WRONGTYPE`, `ERR`) is an answer like any other: sent again after the writes
that followed it, the write might succeed. One that the node is the cause of, such as `OOM`, is not noted.

The hash has one field for each of the last `WINDOW` writes, used in turn, and the field `epoch`: the number of the
connection that may write. A new connection raises it, so that what an older one has still in its buffers is refused.
"""

import uuid
from collections.abc import Sequence
from typing import Any, cast

from hiredis import ReplyError, pack_command

from .commands import Kind
from .settings import JOURNAL_SECONDS

WINDOW = 4096
"""Writes that a journal remembers, so many can be unanswered or kept at once; about 400 KB when full."""

FENCED = "FENCED"
"""How the error begins that a write of an older connection gets."""

_WRITE = b"""
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and epoch ~= ARGV[1] then return redis.error_reply('FENCED a newer connection writes') end
local command, keys = {ARGV[3]}, #KEYS
for i = 2, keys do command[i] = KEYS[i] end
for i = 4, #ARGV do command[keys + i - 3] = ARGV[i] end
local answer = redis.pcall(unpack(command))
local note = answer
if type(answer) == 'table' and answer.err then
  local kind = string.match(answer.err, '^%u+')
  if kind ~= 'ERR' and kind ~= 'WRONGTYPE' then return answer end
  note = answer.err
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], ARGV[2] % %(window)d, ARGV[2] .. ' ' .. note)
redis.call('EXPIRE', KEYS[1], %(seconds)d)
return answer
""".replace(b"%(window)d", str(WINDOW).encode()).replace(b"%(seconds)d", str(JOURNAL_SECONDS).encode())

_OPEN = b"""
redis.call('HSET', KEYS[1], 'epoch', ARGV[1])
redis.call('EXPIRE', KEYS[1], %(seconds)d)
return redis.call('HGETALL', KEYS[1])
""".replace(b"%(seconds)d", str(JOURNAL_SECONDS).encode())


def new_key(prefix: str) -> bytes:
    """A key for the journal of one client's connection. The gateway's Redis user has to have a right to the prefix."""
    return f"{prefix}{uuid.uuid4().hex}".encode()


def write(journal: bytes, epoch: int, number: int, command: Sequence[bytes], kind: Kind) -> bytes:
    """A write as it is sent: done and noted in one step."""
    keys = command[1:] if kind.all_keys else command[1:2]
    others = command[1 + len(keys) :]
    counted = str(len(keys) + 1).encode()
    stamp = (str(epoch).encode(), str(number).encode())
    return packed(b"EVAL", _WRITE, counted, journal, *keys, *stamp, command[0], *others)


def opening(journal: bytes, epoch: int) -> bytes:
    """Takes a journal over for a new connection; answers what `done` reads."""
    return packed(b"EVAL", _OPEN, b"1", journal, str(epoch).encode())


def done(answer: Any) -> dict[int, int | ReplyError]:
    """The writes that a master has, by number, with what each answered."""
    notes = [value for field, value in zip(answer[::2], answer[1::2], strict=True) if field != b"epoch"]
    return {int(number): _answered(said) for number, _, said in (note.partition(b" ") for note in notes)}


def _answered(said: bytes) -> int | ReplyError:
    try:
        return int(said)
    except ValueError:
        return ReplyError(said.decode())


def packed(*command: bytes) -> bytes:
    """A command as the protocol writes it."""
    # hiredis' stub takes tuples of one element only.
    text: bytes = pack_command(cast(Any, command))
    return text
