"""Redis: settings that none could use, and the objects for the others."""

import ipaddress
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.network.manifests import redis_metrics_policy, redis_policy
from components.network.settings import DnsSettings
from components.redis.connection import EXPORTER_USER, LABELS, NODES_USER, SELECTOR, connection, gateway_password
from components.redis.existing_server import ExternalSettings
from components.redis.manifests import (
    backup_objects,
    disruption_budget,
    redis_objects,
    services,
    stateful_set,
    tenant_secret,
    users_files,
)
from components.redis.settings import (
    DEFAULT_IMAGE,
    RedisBackupSettings,
    RedisExporterSettings,
    RedisSettings,
    RedisTlsSettings,
    max_memory,
    resources,
)
from core.problems import Problems
from core.quantities import amount
from local.images import REDIS_EXPORTER

EVERYTHING = RedisSettings(tls=RedisTlsSettings(), exporter=RedisExporterSettings(), backup=RedisBackupSettings())


def pod(settings: RedisSettings, clusters: int = 1) -> dict[str, Any]:
    made: dict[str, Any] = stateful_set(settings, "ray-system", clusters)["spec"]["template"]["spec"]
    return made


def all_pods() -> list[dict[str, Any]]:
    bodies = backup_objects(EVERYTHING, RedisBackupSettings(), "ray-system", 1)
    jobs = [body["spec"]["jobTemplate"]["spec"]["template"]["spec"] for body in bodies if body["kind"] == "CronJob"]
    return [pod(EVERYTHING), *jobs]


def test_a_backup_deletes_what_failed_ones_have_left(tmp_path: Path) -> None:
    """They would fill the volume, and no later backup would succeed."""
    for name in ("2026-01-01T00-00-00Z.rdb", "2026-01-02T00-00-00Z.rdb.part"):
        (tmp_path / name).write_text("")
    _, backup, _ = backup_objects(EVERYTHING, RedisBackupSettings(), "ray-system", 1)
    pod = backup["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    *before, shell, script = pod["containers"][0]["command"]
    assert (shell, script) == ("sh", "/etc/redis/scripts/backup.sh")
    ran = subprocess.run([*before, "echo", script], env={"BACKUP": str(tmp_path)}, capture_output=True, text=True)
    assert ran.stdout == f"{script}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["2026-01-01T00-00-00Z.rdb"]


def test_jobs_of_backups_have_the_memory_of_a_node() -> None:
    """redis-check-rdb holds the largest hash: 107 MiB for one of six values of 16 MiB."""
    node, *jobs = (pod["containers"][0]["resources"] for pod in all_pods())
    assert [job["limits"] for job in jobs] == [node["limits"]] * 2


def test_every_pod_meets_pod_security_restricted_and_writes_only_into_volumes() -> None:
    for each in all_pods():
        assert each["securityContext"]["runAsNonRoot"] is True
        assert each["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert each["automountServiceAccountToken"] is False
        volumes = {"data", *(volume["name"] for volume in each["volumes"])}
        for container in [*each.get("initContainers", []), *each["containers"]]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_memory_is_guaranteed_and_cpu_is_not_throttled() -> None:
    for amounts in (container["resources"] for each in all_pods() for container in each["containers"]):
        assert amounts["limits"] == {"memory": amounts["requests"]["memory"]}
        assert "cpu" in amounts["requests"]


@pytest.mark.parametrize(("clusters", "counted"), [(0, 1), (1, 1), (2, 2), (33, 64), (64, 64)])
def test_data_lagging_replicas_and_clients_leave_room_in_the_memory(clusters: int, counted: int) -> None:
    redis = pod(RedisSettings(), clusters)["containers"][0]
    env = {each["name"]: each.get("value") for each in redis["env"]}
    limit = amount(redis["resources"]["limits"]["memory"])
    assert limit == (256 + 64 * counted) * 2**20
    assert int(env["MAXMEMORY"]) + int(env["OUTPUT_BUFFER"]) + int(env["CLIENTS"]) < limit * 95 / 100


def test_the_default_exporter_is_the_one_that_is_tested() -> None:
    assert RedisExporterSettings().image == REDIS_EXPORTER.reference


def test_no_password_is_in_the_pods_nor_in_acl_files() -> None:
    passwords = {NODES_USER: ["secret-0"], EXPORTER_USER: ["secret-1"], "team-a": ["secret-2", "secret-3"]}
    files = users_files(passwords)
    assert "secret-" not in files["redis.acl"] + files["sentinel.acl"]
    assert files["passwords"] == "secret-0\n"
    assert files["exporter-password"] == "secret-1"
    assert files["redis.acl"].startswith("user default off ")
    assert files["sentinel.acl"].startswith("user default off\n")
    assert EXPORTER_USER not in files["sentinel.acl"]


def test_a_tenants_secret_has_the_newest_and_all_accepted_passwords() -> None:
    made = tenant_secret("team-a", ["old", "new"], "PEM")
    gateways = made.pop("gateway-password"), made.pop("gateway-passwords")
    assert made == {"username": "team-a", "password": "new", "passwords": "new\nold\n", "ca.crt": "PEM"}
    assert gateways == (gateway_password("new"), f"{gateway_password('new')}\n{gateway_password('old')}\n")
    assert not {"new", "old"} & set(gateways[1].split())


def test_one_node_needs_no_sentinel_and_no_budget() -> None:
    single = RedisSettings(mode="single")
    assert [container["name"] for container in pod(single)["containers"]] == ["redis"]
    assert [each.body["kind"] for each in redis_objects(single, "ray-system", 1)] == [
        "ConfigMap",
        "Service",
        "StatefulSet",
    ]
    assert not {"affinity", "initContainers"} & pod(single).keys()


def test_three_nodes_are_spread_and_drained_one_at_a_time() -> None:
    assert disruption_budget()["spec"]["maxUnavailable"] == 1
    affinity = pod(RedisSettings(spread="required"))["affinity"]["podAntiAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"


def test_nodes_find_each_other_before_they_are_ready() -> None:
    for body in services(RedisSettings()):
        assert body["spec"]["publishNotReadyAddresses"] is True


def test_servers_resolve_names_by_a_file_that_exists_before_they_start() -> None:
    made = pod(RedisSettings())
    [init] = made["initContainers"]
    written = {each["name"]: each.get("value") for each in init["env"]}["HOSTS"]
    [folder] = [each["mountPath"] for each in init["volumeMounts"] if each["name"] == "names"]
    for container in made["containers"]:
        [file] = [each for each in container["volumeMounts"] if each["name"] == "names"]
        assert file["mountPath"] == "/etc/hosts"
        assert f"{folder}/{file['subPath']}" == written


def test_only_heads_clean_up_jobs_and_its_own_pods_may_connect() -> None:
    spec = redis_policy(LABELS, (6379, 26379), ["team-a"], DnsSettings())["spec"]
    [rule] = spec["ingress"]
    own, clients = rule["from"]
    assert own == {"podSelector": {"matchLabels": LABELS}}
    [namespaces] = clients["namespaceSelector"]["matchExpressions"]
    assert namespaces["values"] == ["team-a"]
    [types] = clients["podSelector"]["matchExpressions"]
    assert types["values"] == ["head", "redis-cleanup"]
    assert [port["port"] for port in rule["ports"]] == [6379, 26379]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert len(spec["egress"]) == 2
    [nobody] = redis_policy(LABELS, (6379,), [], DnsSettings())["spec"]["ingress"]
    assert nobody["from"] == [own]
    [metrics] = redis_metrics_policy(SELECTOR, 9121, ["monitoring"])["spec"]["ingress"]
    assert [port["port"] for port in metrics["ports"]] == [9121]


def test_a_connection_has_the_stable_names_of_sentinels_or_configured_values() -> None:
    made = connection(RedisSettings(), "ray-system")
    assert made.nodes[2] == "ray-redis-2.ray-redis.ray-system.svc.cluster.local:26379"
    assert made.address == "ray-redis-sentinels.ray-system.svc:26379"
    assert (made.master_name, made.replicas, made.namespace) == ("mymaster", 2, "ray-system")
    alone = connection(RedisSettings(mode="single"), "team-a")
    assert (alone.nodes, alone.master_name) == (("ray-redis-0.ray-redis.team-a.svc.cluster.local:6379",), None)
    external = {"sentinels": ["sentinel.example.com:5000"], "secretName": "redis", "cidrs": ["10.20.0.0/24"]}
    made = connection(RedisSettings(mode="external", external=ExternalSettings.model_validate(external)), "")
    assert (made.ports, made.secret, made.cidrs) == ((5000, 6379), "redis", ("10.20.0.0/24",))


def test_in_a_secret_that_the_tenant_created_the_gateway_has_the_password_of_redis() -> None:
    external = {"address": "redis.example.com:6379", "secretName": "redis"}

    def keys(**more: str) -> set[str]:
        where = ExternalSettings.model_validate({**external, **more})
        made = connection(RedisSettings(mode="external", external=where), "")
        return {made.passwords_key, made.gateway_password_key, made.gateway_passwords_key}

    assert keys() == {"password"}
    assert keys(secretNamespace="platform") == {"passwords", "gateway-password", "gateway-passwords"}


def violated(validate: Callable[[], object]) -> set[str]:
    """The violated rules; `value` for each other error."""
    try:
        validate()
    except ValidationError as error:
        found = [each["ctx"]["error"] for each in error.errors()]
        problems = [each.problems if isinstance(each, Problems) else None for each in found]
        return {rule for each in problems for rule in ([p.rule for p in each] if each is not None else ["value"])}
    return set()


def rules(**configured: Any) -> set[str]:
    return violated(lambda: RedisSettings.model_validate(configured))


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
NETWORKS = [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "128.0.0.0/8", "2001:db8::/32", "8000::/8")]


def external(**where: Any) -> ExternalSettings:
    return ExternalSettings.model_validate({"secretName": "redis", **where})


def broken(**where: Any) -> set[str]:
    """The violated rules of an external Redis."""
    return violated(lambda: external(**where))


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
@given(
    st.one_of(
        st.integers(1, 2**32 - 1).map(ipaddress.IPv4Address),
        st.ip_addresses(v=6),
        *(st.ip_addresses(network=each) for each in NETWORKS),
    ),
    st.sets(st.sampled_from(NETWORKS)),
)
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
