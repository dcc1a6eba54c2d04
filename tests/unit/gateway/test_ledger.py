"""Answers to a client stay true wherever connections break and whichever replica becomes the master."""

import copy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from components.payloads.redis_gateway.commands import kind_of
from components.payloads.redis_gateway.journal import WINDOW
from components.payloads.redis_gateway.ledger import IN_FLIGHT, KEPT_BYTES, Entry, Ledger

NOW = 1000.0


def count(ledger: Ledger, *, argument: bytes = b"1") -> None:
    """Adds a write to the ledger."""
    command = [b"INCRBY", b"counter", argument]
    ledger.add(command, kind_of(command), NOW)


@dataclass
class Store:
    """A node: its data, and the journal of one client."""

    data: dict[bytes, int] = field(default_factory=dict)
    journal: dict[int, tuple[int, int]] = field(default_factory=dict)

    def does(self, entry: Entry) -> int:
        """Does a command, and records writes as the script of the journal does."""
        answer = apply(self.data, entry.command)
        if entry.writes:
            self.journal[entry.number % WINDOW] = (entry.number, answer)
        return answer

    @property
    def done(self) -> dict[int, int]:
        """The writes that it has."""
        return dict(self.journal.values())


def apply(data: dict[bytes, int], command: list[bytes]) -> int:
    """Does a command; returns its answer."""
    match command:
        case [b"INCRBY", key, by]:
            data[key] = data.get(key, 0) + int(by)
            return data[key]
        case [b"DEL", key]:
            return int(data.pop(key, None) is not None)
        case [_, key]:
            return data.get(key, 0)
    raise AssertionError(command)


class Failovers(RuleBasedStateMachine):
    """One client, a master and a replica that lags behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.model: dict[bytes, int] = {}
        self.expected: list[int] = []
        self.answers: list[int] = []
        self.master = Store()
        self.history = [copy.deepcopy(self.master)]
        """The master after each step, for a replica that lags."""

        self.on_the_way: list[Entry] = []

    @rule(
        name=st.sampled_from((b"INCRBY", b"DEL", b"HGET")),
        key=st.sampled_from((b"k", b"l")),
        by=st.integers(min_value=1, max_value=9),
    )
    def ask(self, name: bytes, key: bytes, by: int) -> None:
        """The client sends a command."""
        command = [name, key, *([str(by).encode()] if name == b"INCRBY" else [])]
        known = [*command, b"field"] if name == b"HGET" else command
        self.ledger.add(command, kind_of(known), NOW)
        self.expected.append(apply(self.model, command))

    @rule()
    def send(self) -> None:
        """The gateway sends all that it may send."""
        self.on_the_way.extend(self.ledger.take_unsent())

    @precondition(lambda self: self.on_the_way)
    @rule(answered=st.booleans())
    def work(self, answered: bool) -> None:
        """The master does the next command. Its answer arrives, or is lost with all later ones."""
        entry = self.on_the_way.pop(0)
        answer = self.master.does(entry)
        self.history.append(copy.deepcopy(self.master))
        if answered:
            entry.answer = answer
        else:
            self.reconnect()

    @rule()
    def wait(self) -> None:
        """A replica confirms all answered commands."""
        for entry in self.ledger.pending:
            entry.covered |= entry.answered
        self.answers.extend(int(entry.answer) for entry in self.ledger.deliver())

    @rule()
    def reconnect(self) -> None:
        """The connection breaks; the same node is the master."""
        self.on_the_way = []
        self.ledger.settle(self.master.done, NOW)

    @rule(behind=st.integers(min_value=0, max_value=12))
    def fail_over(self, behind: int) -> None:
        """A replica without the last few steps becomes the master; acknowledged writes may be missing."""
        self.history = self.history[: max(len(self.history) - behind, 1)]
        self.master = copy.deepcopy(self.history[-1])
        self.reconnect()

    @invariant()
    def answers_are_true(self) -> None:
        """The client received the answers of a Redis that never fails."""
        assert self.answers == self.expected[: len(self.answers)]

    def teardown(self) -> None:
        """In the end all commands are answered, and the master has all writes."""
        while len(self.answers) < len(self.expected) or self.ledger.settle(self.master.done, NOW).replayed:
            self.reconnect()
            self.send()
            while self.on_the_way:
                self.work(answered=True)
            self.wait()
        assert self.answers == self.expected
        assert self.master.data == self.model


TestFailovers = Failovers.TestCase
TestFailovers.settings = settings(max_examples=200, stateful_step_count=40)


def test_a_repeated_read_does_not_see_later_writes() -> None:
    ledger = Ledger()
    read = [b"HGET", b"counter", b"field"]
    ledger.add(read, kind_of(read), NOW)
    count(ledger)
    (repeated,) = ledger.take_unsent()
    ledger.settle({}, NOW)
    assert list(ledger.take_unsent()) == [repeated]
    repeated.answer, repeated.covered = b"0", True
    assert list(ledger.deliver()) == [repeated]
    assert [entry.command[0] for entry in ledger.take_unsent()] == [b"INCRBY"]


def test_the_number_of_unanswered_writes_is_limited_by_the_journal() -> None:
    ledger = Ledger()
    for _ in range(IN_FLIGHT + 5):
        count(ledger)
    sent = list(ledger.take_unsent())
    assert [entry.number for entry in sent] == list(range(1, IN_FLIGHT + 1))
    assert list(ledger.take_unsent()) == []
    sent[0].answer, sent[0].covered = 1, True
    assert len(list(ledger.deliver())) == 1
    assert [entry.number for entry in ledger.take_unsent()] == [IN_FLIGHT + 1]


def answered(ledger: Ledger, writes: int, *, argument: bytes = b"1") -> None:
    """Acknowledges this number of writes."""
    for _ in range(writes):
        count(ledger, argument=argument)
        for entry in ledger.take_unsent():
            entry.answer, entry.covered = entry.number, True
        list(ledger.deliver())


def test_a_dropped_write_that_the_new_master_lacks_is_counted_as_lost() -> None:
    ledger = Ledger()
    answered(ledger, WINDOW)
    settled = ledger.settle({}, NOW)
    assert settled.lost == IN_FLIGHT
    assert settled.repaired == WINDOW - IN_FLIGHT


def test_the_size_of_kept_writes_is_limited() -> None:
    ledger = Ledger()
    answered(ledger, 5, argument=b"1".rjust(KEPT_BYTES // 3, b"0"))
    assert ledger.settle({}, NOW).repaired == 2


def test_an_old_write_is_not_repeated_after_its_journal_has_expired() -> None:
    ledger = Ledger()
    answered(ledger, 3)
    assert ledger.settle({}, NOW + 301) == (0, 0, 0, 0)


def test_old_commands_expire_in_order() -> None:
    ledger = Ledger()
    count(ledger)
    command = [b"PING"]
    ledger.add(command, kind_of(command), NOW + 5)
    assert [entry.command for entry in ledger.expire(NOW + 1)] == [[b"INCRBY", b"counter", b"1"]]
    assert [entry.command for entry in ledger.pending] == [[b"PING"]]
    assert ledger.pending_bytes == ledger.pending[0].size
