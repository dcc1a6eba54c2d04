"""Rights of users, and their changes while Redis runs."""

import hiredis
import pytest

from components.redis.connection import NODES_USER, SENTINEL_PORT
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire
from tests.redis.pods import PASSWORDS, Pod, Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


def refusal(wire: Wire, *command: str) -> str:
    """The error with which a command is refused."""
    answer = wire.ask(*command)
    assert isinstance(answer, hiredis.ReplyError), f"{command} was answered {answer!r}"
    return str(answer)


def accepts(pod: Pod, user: str, password: str, port: int = 6379) -> bool:
    with Wire(port, host=pod.address) as wire:
        return not isinstance(wire.ask("AUTH", user, password), hiredis.ReplyError)


def everywhere(redis: Pods, user: str, password: str) -> bool:
    return all(accepts(pod, user, password, port) for pod in redis.pods for port in (6379, SENTINEL_PORT))


def nowhere(redis: Pods, user: str, password: str) -> bool:
    return not any(accepts(pod, user, password, port) for pod in redis.pods for port in (6379, SENTINEL_PORT))


def test_a_tenant_reaches_only_its_own_keys(redis: Pods) -> None:
    with redis.master.wire("a", "a-1") as wire:
        wire.must("HSET", "RAYa.training.x@KV", "field", "mine")
        wire.must("DEL", "DUMMY")
        for key in ("RAYa-b.training.x@KV", "RAYb", "other", "redis-gateway:a-b.1"):
            assert refusal(wire, "HGET", key, "field").startswith("NOPERM")
            assert refusal(wire, "EVAL", "return redis.call('HGET', KEYS[1], 'field')", "1", key).startswith("NOPERM")
            assert "access" in refusal(wire, "EVAL", f"return redis.call('HGET', '{key}', 'field')", "0")


@pytest.mark.parametrize(
    "command", ["CONFIG GET *", "KEYS *", "FLUSHALL", "FLUSHDB", "ACL LIST", "SHUTDOWN", "REPLICAOF NO ONE", "MONITOR"]
)
def test_a_tenant_may_not_administer(command: str, redis_of_module: Pods) -> None:
    for port in (6379, SENTINEL_PORT):
        with redis_of_module.master.wire("a", "a-1", port) as wire:
            assert refusal(wire, *command.split()).startswith(("NOPERM", "ERR unknown command"))


def test_a_tenant_may_ask_a_sentinel_for_the_master_but_not_change_it(redis_of_module: Pods) -> None:
    with redis_of_module.pods[1].wire("a", "a-1", SENTINEL_PORT) as wire:
        assert wire.must("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")
        # What Ray itself sends.
        assert b"sentinel_masters:1" in wire.must("INFO", "SENTINEL")
        assert len(wire.must("SENTINEL", "MASTERS")) == 1
        for command in ("FAILOVER mymaster", "SET mymaster quorum 1", "REMOVE mymaster"):
            assert refusal(wire, "SENTINEL", *command.split()).startswith("NOPERM")


def test_a_client_without_a_user_is_refused(redis_of_module: Pods) -> None:
    for port in (6379, SENTINEL_PORT):
        with Wire(port, host=redis_of_module.pods[0].address) as wire:
            assert refusal(wire, "PING").startswith("NOAUTH")
            assert refusal(wire, "AUTH", "nodes-1").startswith("WRONGPASS")


def test_a_new_tenant_is_accepted_and_a_removed_one_disconnected_while_others_stay(redis: Pods) -> None:
    with redis.master.wire("a", "a-1") as stays, redis.master.wire("a-b", "b-1") as removed:
        redis.set_users({NODES_USER: ["nodes-1"], "a": ["a-1"], "new": ["new-1"]})
        eventually("the new tenant is accepted", lambda: everywhere(redis, "new", "new-1"))
        eventually("the removed tenant is refused", lambda: nowhere(redis, "a-b", "b-1"))
        assert stays.must("PING") == b"PONG"
        with pytest.raises(ConnectionError):
            removed.ask("PING")


def test_a_rotation_in_two_steps_breaks_no_connection_and_no_failover(redis: Pods) -> None:
    master = redis.master
    with master.wire("a", "a-1") as open_before:
        redis.set_users({user: [known[0], f"{user}-2"] for user, known in PASSWORDS.items()})
        eventually("the new password is accepted", lambda: everywhere(redis, "a", "a-2"))
        assert everywhere(redis, "a", "a-1")
        newest = f"{NODES_USER}-2"
        eventually("replicas show the new one", lambda: all(shows(pod, newest) for pod in redis.pods))
        redis.set_users({user: [f"{user}-2"] for user in PASSWORDS})
        eventually("the old password is refused", lambda: nowhere(redis, "a", "a-1"))
        assert open_before.must("HSET", "RAYa.training.x@KV", "field", "kept") in (0, 1)
        assert open_before.must("WAIT", 2, 5000) == 2
    master.delete()

    def moved() -> bool:
        for pod in redis.pods:
            if pod is not master and pod.ask("ROLE", password=newest)[0] == b"master":
                with pod.wire("a", "a-2") as wire:
                    return bool(wire.must("HGET", "RAYa.training.x@KV", "field") == b"kept")
        return False

    eventually("another is the master, and has it", moved)
    master.start()
    eventually("the lost one is ready again", lambda: master.probe("redis"))


def shows(pod: Pod, password: str) -> bool:
    """Whether a node authenticates to its master with this password."""
    with pod.wire(password=password) as wire:
        return bool(wire.must("CONFIG", "GET", "masterauth")[1] == password.encode())
