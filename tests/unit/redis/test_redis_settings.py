"""Sizes, images, schedules and addresses that no Redis could use."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.redis.existing_server import ExternalSettings
from components.redis.settings import DEFAULT_IMAGE, RedisSettings, max_memory, resources
from core.problems import Problems
from core.quantities import amount


def rules(**configured: Any) -> set[str]:
    """The violated rules."""
    try:
        RedisSettings.model_validate(configured)
    except ValidationError as error:
        found = [each["ctx"]["error"] for each in error.errors()]
        return {problem.rule for each in found if isinstance(each, Problems) for problem in each.problems} or {"value"}
    return set()


@pytest.mark.parametrize(
    ("memory", "size", "violated"),
    [
        ("32Mi", "128Mi", set()),
        ("31Mi", "128Mi", {"redis-memory"}),
        ("1Gi", "127Mi", {"redis-storage"}),
        ("1Gi", "614Mi", {"redis-storage"}),
        ("1Gi", "615Mi", set()),
        ("16Mi", "1Mi", {"redis-memory", "redis-storage"}),
    ],
)
def test_redis_has_room_in_memory_and_on_its_volume(memory: str, size: str, violated: set[str]) -> None:
    assert rules(resources={"cpu": 1, "memory": memory}, storage={"size": size}) == violated


def test_the_volume_of_a_default_redis_is_not_compared_with_what_it_gets_for_many_clusters() -> None:
    assert max_memory(resources(RedisSettings(), 64).memory) > amount(RedisSettings().storage.size)
    assert rules() == set()


@pytest.mark.parametrize(
    ("image", "accepted"),
    [
        (DEFAULT_IMAGE, True),
        ("redis:7", True),
        ("redis:8.2.1-alpine", True),
        ("redis", True),
        ("redis:latest", True),
        ("redis:alpine3.20", True),
        ("redis:v7.0.15", True),
        ("valkey/valkey:8.1.4", True),
        ("example.com/tools/redis-with-modules:1.2", True),
        ("redis:20240501", True),
        ("redis:6", False),
        ("redis:6.2", False),
        ("redis:v6.2.14", False),
        ("registry.example.com:5000/library/redis:6.2.14-alpine", False),
        ("redis:5.0.14@sha256:" + "0" * 64, False),
    ],
)
def test_an_image_of_redis_is_of_a_release_that_its_scripts_can_use(image: str, accepted: bool) -> None:
    assert rules(image=image) == (set() if accepted else {"value"})


@pytest.mark.parametrize(
    ("schedule", "accepted"), [("@every 6h", True), ("TZ=UTC @daily", False), ("0 3 30 2 *", False)]
)
def test_the_schedule_of_backups_is_one_of_a_cron_job(schedule: str, accepted: bool) -> None:
    assert rules(backup={"schedule": schedule}) == (set() if accepted else {"value"})


ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))
NETWORKS = [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "128.0.0.0/1", "2001:db8::/32", "8000::/1")]


def external(**where: Any) -> ExternalSettings:
    return ExternalSettings.model_validate({"secretName": "redis", **where})


def broken(**where: Any) -> set[str]:
    """The violated rules."""
    try:
        external(**where)
    except ValidationError as error:
        found = [each["ctx"]["error"] for each in error.errors()]
        return {
            rule
            for each in found
            for rule in ([p.rule for p in each.problems] if isinstance(each, Problems) else ["value"])
        }
    return set()


def written(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int = 6379) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


@settings(max_examples=200)
@given(ADDRESSES)
def test_an_address_is_accepted_unless_it_is_no_servers(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    plain = (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address
    nobodys = (
        plain.is_loopback
        or plain.is_unspecified
        or plain.is_link_local
        or plain.is_multicast
        or (plain.version == 4 and plain.is_reserved)
    )
    assert broken(address=written(address)) == ({"value"} if nobodys else set())


@settings(max_examples=200)
@given(st.integers(1, 2**32 - 1).map(ipaddress.IPv4Address) | st.ip_addresses(v=6), st.sets(st.sampled_from(NETWORKS)))
def test_an_address_is_in_one_of_its_own_networks(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: set[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> None:
    cidrs = [str(each) for each in networks]
    if broken(address=written(address)) or (address.version == 6 and address.ipv4_mapped):
        return
    outside = bool(networks) and not any(address in each for each in networks)
    assert broken(address=written(address), cidrs=cidrs) == ({"redis-address"} if outside else set())
    assert broken(sentinels=["s.example.com:1", written(address)], cidrs=cidrs) == (
        {"redis-address"} if outside else set()
    )


@pytest.mark.parametrize(
    "address",
    [
        *(
            "redis",
            "redis:",
            ":6379",
            "redis:0",
            "redis:65536",
            "redis:06379",
            "redis:\uff16379",
            "redis:²",
            "redis:+1",
        ),
        *(
            "redis:6379:6379",
            "a b:1",
            "a,b:1",
            "redis://a:1",
            "a/b:1",
            "-a:1",
            "a-:1",
            "a..b:1",
            ".a:1",
            "a\n:1",
            "é:1",
        ),
        *("10.0.0.256:1", "10.0.0:1", "10.1:1", "0177.0.0.1:1", "2130706433:1", "0x7f000001:1", "1.2.3.4.5:1"),
        *("2001:db8::1:6379", "[2001:db8::1]", "[10.0.0.1]:1", "[redis]:1", "[::1%lo]:1", "[]:1", f"{'a' * 64}:1"),
        *("localhost:1", "LOCALHOST.:1", "redis.localhost:1", "localhost.localdomain:1", "127.0.0.1:1", "127.8.9.1:1"),
        *("[::1]:1", "[::]:1", "0.0.0.0:1", "[::ffff:127.0.0.1]:1", "169.254.169.254:80", "[fe80::1]:1", "224.0.0.1:1"),
        *("255.255.255.255:1", "[ff02::1]:1", ".".join(["a" * 60] * 5) + ":1"),
        *(6379, None, True, ["redis:6379"]),
    ],
)
def test_what_is_no_address_of_a_server(address: Any) -> None:
    assert broken(sentinels=[address]) == {"value"}


@pytest.mark.parametrize(
    "address",
    ["redis:6379", "Redis-0.example.com.:1", "a_b.example:65535", "10.0.0.1:1", "[2001:DB8::1]:1", "1a:1", "xn--e1a:1"],
)
def test_what_is_an_address(address: str) -> None:
    assert broken(address=address) == set()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a:1", "a:1"),
        ("A.example:1", "a.EXAMPLE.:1"),
        ("[2001:db8::1]:1", "[2001:0DB8:0::1]:1"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.1:1"),
    ],
)
def test_a_sentinel_is_named_once(first: str, second: str) -> None:
    assert broken(sentinels=[first, "b:1", second]) == {"redis-sentinel-twice"}
    assert broken(sentinels=[first, "b:1", second.removesuffix("1") + "2"]) == set()


@pytest.mark.parametrize(
    ("host", "where", "refused"),
    [
        ("redis.data.svc", {"namespace": "data"}, False),
        ("redis-0.redis.data.svc.cluster.local", {"namespace": "data"}, False),
        ("redis.data.svc", {}, False),
        ("redis.data.svc", {"namespace": "redis"}, True),
        ("redis.data.svc.cluster.local.", {"cidrs": ["10.0.0.0/8"]}, True),
        ("redis.data.svc.example.com", {"cidrs": ["10.0.0.0/8"]}, False),
        ("redis.example.com", {"namespace": "data"}, False),
    ],
)
def test_the_name_of_a_service_is_in_the_namespace_that_heads_may_connect_to(
    host: str, where: dict[str, Any], refused: bool
) -> None:
    assert broken(address=f"{host}:6379", **where) == ({"redis-address"} if refused else set())


@pytest.mark.parametrize("name", ["", " ", "my master", "a\nb"])
def test_the_name_of_a_master_has_no_space(name: str) -> None:
    with pytest.raises(ValidationError):
        external(sentinels=["a:1"], masterName=name)
