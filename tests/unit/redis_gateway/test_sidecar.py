"""The gateway beside a head, as the pod has it, and which Kubernetes has what it needs."""

from pathlib import Path
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.payloads.redis_gateway.settings import LONGEST_HOLD, Settings
from components.redis.connection import RedisConnection
from components.redis_gateway import settings as ours
from components.redis_gateway.manifests import (
    METRICS_PORT,
    UnsupportedKubernetesError,
    check_kubernetes,
    sidecar,
    volume,
    volume_keys,
)
from components.redis_gateway.settings import GatewaySettings
from stacks.load import parse
from stacks.objects.ray_clusters import rendered
from stacks.objects.redis import gateway_program
from stacks.objects.tenant import parts_of_tenant
from testbed.fake_cluster import FakeCluster

SENTINELS = RedisConnection(("s-0.redis:26379", "s-1.redis:26379"), "mymaster", replicas=2, namespace="ray-system")
SINGLE = RedisConnection(("redis:6379",), None, replicas=0)


def made(connection: RedisConnection = SENTINELS, **configured: Any) -> dict[str, Any]:
    return sidecar(GatewaySettings.model_validate(configured), connection, "team-a", "ray:1", 1000, "IfNotPresent")


def environment(body: dict[str, Any], folder: Path) -> dict[str, str]:
    """What the program sees, with the files of the volume in a folder."""
    folder.mkdir(exist_ok=True)
    for name in ("passwords", "gateway-passwords", "ca.crt"):
        (folder / name).write_text("x")
    variables = {each["name"]: each.get("value", "team-a") for each in body["env"]}
    return {name: value.replace("/etc/ray/redis", str(folder)) for name, value in variables.items()}


@pytest.mark.parametrize("connection", [SENTINELS, SINGLE])
def test_the_program_accepts_all_its_variables(connection: RedisConnection, tmp_path: Path) -> None:
    settings = Settings.of(environment(made(connection), tmp_path))
    assert settings.listen == ("127.0.0.1", 6399)
    assert settings.journal_prefix == "redis-gateway:team-a."
    assert (settings.wait_replicas, settings.hold_seconds) == (min(1, connection.replicas), 60)
    assert {settings.redis_username, settings.client_username} == {"team-a"}
    assert settings.redis_password_file == tmp_path / "passwords"
    assert settings.client_password_file == tmp_path / "gateway-passwords"
    assert volume_keys(connection) == ("passwords", "gateway-passwords")


def test_sentinels_have_the_name_of_their_master(tmp_path: Path) -> None:
    settings = Settings.of(environment(made(), tmp_path))
    assert [str(each) for each in settings.sentinels] == list(SENTINELS.nodes)
    assert (settings.master_name, settings.sentinel_username) == ("mymaster", "team-a")


def test_tls_is_validated_with_the_authority_in_the_tenants_secret(tmp_path: Path) -> None:
    encrypted = RedisConnection(("redis:6379",), None, replicas=0, tls=True)
    assert Settings.of(environment(made(encrypted), tmp_path)).tls_ca_file == tmp_path / "ca.crt"
    assert "ca.crt" in volume_keys(encrypted)
    assert "ca.crt" not in volume_keys(SINGLE)


def test_configured_values_reach_the_program(tmp_path: Path) -> None:
    body = made(waitReplicas=2, holdTimeout="2m", unreplicated="answer")
    settings = Settings.of(environment(body, tmp_path))
    assert (settings.wait_replicas, settings.hold_seconds, settings.unreplicated) == (2, 120, "answer")


@pytest.mark.parametrize(("memory", "largest"), [("512Mi", 224 << 20), ("64Mi", 1 << 20), ("8Gi", 512 << 20)])
def test_a_value_that_its_memory_cannot_hold_twice_is_refused(memory: str, largest: int, tmp_path: Path) -> None:
    body = made(resources={"cpu": "250m", "memory": memory})
    assert Settings.of(environment(body, tmp_path)).max_command_bytes == largest


def test_it_keeps_running_and_the_head_waits_until_it_is_ready() -> None:
    container = made(resources={"cpu": "250m", "memory": "1Gi"})
    assert container["restartPolicy"] == "Always"
    assert container["startupProbe"]["httpGet"] == {"path": "/readyz", "port": METRICS_PORT}
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert "readinessProbe" not in container
    resources = container["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "250m", "memory": "1Gi"}
    assert (
        container["securityContext"].items()
        >= {
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }.items()
    )


def test_no_password_is_in_the_pod_spec() -> None:
    container = made()
    assert [each["name"] for each in container["env"] if "PASSWORD" in each["name"] and "value" in each] == [
        f"REDIS_GATEWAY_{who}_PASSWORD_FILE" for who in ("REDIS", "SENTINEL", "CLIENT")
    ]
    assert volume(SENTINELS, "passwords")["secret"]["secretName"] == "ray-redis"


@pytest.mark.parametrize("wrong", ["0s", "301s"])
def test_the_hold_timeout_has_the_programs_limit(wrong: str) -> None:
    assert ours.LONGEST_HOLD == LONGEST_HOLD
    with pytest.raises(ValueError, match="from 1s to 300s"):
        GatewaySettings.model_validate({"holdTimeout": wrong})


@pytest.mark.parametrize("minor", ["28", "28+", "9"])
def test_a_kubernetes_without_native_sidecars_is_refused_with_a_fix(minor: str) -> None:
    cluster = FakeCluster()
    cluster.objects["/version"] = {"major": "1", "minor": minor}
    with pytest.raises(UnsupportedKubernetesError, match=r"needs Kubernetes 1\.29 .*set redis\.gateway: false"):
        check_kubernetes(cluster)


def test_newer_and_unknown_versions_are_accepted() -> None:
    cluster = FakeCluster()
    for answer in (*({"major": "1", "minor": each} for each in ("29", "29+", "36", "?")), {}):
        cluster.objects["/version"] = answer
        check_kubernetes(cluster)
    cluster.fail(ClusterUnreachableError("no answer"))
    check_kubernetes(cluster)


KEPT = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "faultTolerance": True}
EXTERNAL = {
    "mode": "external",
    "external": {"address": "redis.example.com:6379", "secretName": "r", "cidrs": ["10.0.0.7/32"]},
}


@pytest.mark.parametrize(
    ("redis", "there"),
    [
        ({}, True),
        ({"mode": "single"}, True),
        ({"gateway": False}, False),
        (EXTERNAL, False),
        ({**EXTERNAL, "gateway": {}}, True),
    ],
)
def test_a_redis_of_the_stack_has_a_gateway_beside_each_head_with_rays_image(
    redis: dict[str, Any], there: bool
) -> None:
    stack = parse({"redis": redis, "tenants": [{"name": "team-a", "clusters": [KEPT]}]})
    [tenant] = stack.tenants
    head = rendered(stack, tenant, tenant.clusters[0])["spec"]["headGroupSpec"]["template"]["spec"]
    assert [each["image"] for each in head.get("initContainers", [])] == [KEPT["image"]] * there
    programs = [part for part in parts_of_tenant(stack, tenant) if part.name == "redis-gateway"]
    assert len(programs) == there
    volumes = [each["configMap"]["name"] for each in head.get("volumes", ()) if "configMap" in each]
    assert volumes == [each.body["metadata"]["name"] for part in programs for each in part.objects]


def test_a_tenant_without_fault_tolerance_has_no_program() -> None:
    stack = parse({"redis": {}, "tenants": [{"name": "team-a"}]})
    assert gateway_program(stack, stack.tenants[0]) is None
