"""With any commands and any broken connections the answers are those of a Redis that never fails."""

from collections.abc import Iterator

import hiredis
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.gateway.cable import Cable
from tests.gateway.nodes import Node
from tests.gateway.process import Gateway
from tests.gateway.wire import Wire

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

Command = tuple[str, ...]

KEYS = st.sampled_from(("KV", "JOB"))
FIELDS = st.sampled_from(("f", "g", "h"))
VALUES = st.sampled_from(("", "1", "value"))

COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.tuples(st.just("HSET"), KEYS, FIELDS, VALUES),
    st.tuples(st.just("HSETNX"), KEYS, FIELDS, VALUES),
    st.tuples(st.just("HDEL"), KEYS, FIELDS, FIELDS),
    st.tuples(st.just("INCRBY"), st.sampled_from(("counter", "KV")), st.just("1")),
    st.tuples(st.sampled_from(("DEL", "UNLINK")), st.sampled_from(("KV", "counter"))),
    st.tuples(st.sampled_from(("HGET", "HEXISTS")), KEYS, FIELDS),
    st.tuples(st.just("HMGET"), KEYS, FIELDS, FIELDS),
    st.tuples(st.just("HLEN"), KEYS),
    st.tuples(st.just("HSCAN"), KEYS, st.just("0")),
)

BREAKS = st.sampled_from(("mute", "cut"))
"""`mute`: answers are lost from now on; `cut`: all connections break, and new ones work."""

ANSWER = "answer"
"""The client receives the next answer."""


@pytest.fixture(scope="module")
def gateway(cable: Cable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway at the other end of the cable."""
    folder = tmp_path_factory.mktemp("gateway")
    one = Gateway(folder, redis=f"127.0.0.1:{cable.port}", wait_replicas=0, reply_seconds=2).wait_ready()
    try:
        yield one
    finally:
        one.kill()


def sent(wire: Wire, prefix: str, command: Command) -> None:
    """Sends a command for keys with that prefix."""
    name, key, *others = command
    wire.send(name, prefix + key, *others)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.one_of(COMMANDS, BREAKS, st.just(ANSWER)), max_size=40))
@example(
    steps=[("INCRBY", "KV", "1"), ("HSET", "KV", "g", ""), ("UNLINK", "KV"), "cut"]
)  # an error, which must not be repeated
def test_breaking_connections_change_no_answer(
    gateway: Gateway, cable: Cable, node: Node, steps: list[Command | str]
) -> None:
    node.ask("FLUSHALL")
    with gateway.wire() as wire, node.wire() as model:
        expected: list[object] = []
        answers: list[object] = []

        def answer() -> None:
            if len(answers) < len(expected):
                cable.cut()  # A lost answer is only sent again over a new connection.
                got = wire.answer()
                answers.append(str(got) if isinstance(got, hiredis.ReplyError) else got)

        for step in steps:
            match step:
                case "mute":
                    cable.mute()
                case "cut":
                    cable.cut()
                case "answer":
                    answer()
                case (_, *_) as command:
                    sent(wire, "RAYgateway@", command)
                    sent(model, "RAYmodel@", command)
                    modelled = model.answer()
                    expected.append(str(modelled) if isinstance(modelled, hiredis.ReplyError) else modelled)
        while len(answers) < len(expected):
            answer()
        assert answers == expected
        for key in ("KV", "JOB", "counter"):
            assert node.ask("DUMP", f"RAYgateway@{key}") == node.ask("DUMP", f"RAYmodel@{key}")
