"""An existing Redis is checked before RayClusters use it."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from components.redis.connection import SENTINEL_PORT
from components.redis.existing import NotReachedError, UnfitError, check, look
from components.redis.existing_server import ExternalSettings
from tests.gateway.nodes import PASSWORD, Node, Nodes
from tests.redis.pods import Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

SECRET = {"username": "default", "password": PASSWORD}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """An existing Redis without Sentinels."""
    made = Nodes(tmp_path_factory.mktemp("nodes")).redis[0]
    made.start()
    yield made
    made.kill()


def settings(**where: Any) -> ExternalSettings:
    # A stack file may not name the machine that it is read on.
    external = ExternalSettings(address="redis:6379", secret_name="redis")  # noqa: S106 (a Secret's name)
    return external.model_copy(update={"address": None, **where})


def at(port: int) -> ExternalSettings:
    return settings(address=f"127.0.0.1:{port}")


def test_a_redis_that_keeps_everything_is_accepted(alone: Node) -> None:
    check(look(at(alone.port), SECRET))


def test_a_redis_that_evicts_is_refused(alone: Node) -> None:
    alone.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with pytest.raises(UnfitError, match=r"has maxmemory-policy allkeys-lru.*: set it to noeviction"):
        check(look(at(alone.port), SECRET))
    alone.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_wrong_password_is_reported_but_not_shown(alone: Node) -> None:
    with pytest.raises(UnfitError, match="refuses the username and password in Secret 'redis'") as raised:
        look(at(alone.port), {"username": "default", "password": "hunter2"})
    assert "hunter2" not in str(raised.value)


def test_a_redis_that_does_not_answer_from_here_is_another_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotReachedError):
        look(at(port), SECRET)


def test_sentinels_are_asked_for_the_master(redis: Pods) -> None:
    sentinels = tuple(f"{pod.address}:{SENTINEL_PORT}" for pod in redis.pods)
    mine = {"username": "a", "password": "a-1"}
    check(look(settings(sentinels=sentinels), mine))
    with pytest.raises(UnfitError, match="has no master 'other'"):
        look(settings(sentinels=sentinels, master_name="other"), mine)
    replica = redis.pods[1].address
    with pytest.raises(UnfitError, match="is a slave, which accepts no writes"):
        check(look(settings(address=f"{replica}:6379"), mine))
