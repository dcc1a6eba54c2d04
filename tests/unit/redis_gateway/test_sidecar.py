"""The gateway beside a head, as the pod has it, which Kubernetes has what it needs, and its image, which no registry
has."""

from pathlib import Path
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
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
from components.redis_gateway.settings import IMAGE, GatewaySettings
from core.problems import StackFileError
from gateway.settings import LONGEST_HOLD, Settings
from local.rehearsed_file import adapt
from stacks.load import installable, parse
from testbed.fake_cluster import FakeCluster

SENTINELS = RedisConnection(("s-0.redis:26379", "s-1.redis:26379"), "mymaster", replicas=2, namespace="ray-system")
SINGLE = RedisConnection(("redis:6379",), None, replicas=0)


def made(connection: RedisConnection = SENTINELS, **configured: Any) -> dict[str, Any]:
    return sidecar(GatewaySettings.model_validate(configured), connection, "team-a", 65532, "IfNotPresent")


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
    with pytest.raises(UnsupportedKubernetesError, match=r"needs Kubernetes 1\.29 .*remove redis\.gateway"):
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


def refused(redis: dict[str, Any], images: dict[str, Any] | None = None, **tenant: Any) -> bool:
    tenant = tenant or {"clusters": [KEPT]}
    settings = parse({"redis": redis, "images": images or {}, "tenants": [{"name": "team-a", **tenant}]})
    rules = []
    try:
        installable(settings)
    except StackFileError as error:
        rules = [each.rule for each in error.findings]
    assert rules in ([], ["gateway-image"])
    return bool(rules)


def test_the_default_image_is_refused_where_heads_have_a_gateway_without_a_mirror_of_it() -> None:
    assert refused({"gateway": {}})
    assert refused({"mode": "single", "gateway": {}})
    assert refused({"gateway": {}}, clusterNames=["own"])
    assert not refused({"gateway": {"image": "registry.example.com/redis-gateway:1.0.0"}})
    assert not refused({"gateway": {}}, images={"mirrors": {"docker.io/ray-platform": "registry.example.com/ours"}})
    assert refused({"gateway": {}}, images={"mirrors": {"docker.io/rayproject": "registry.example.com/ray"}})


@pytest.mark.parametrize("redis", [{}, {"mode": "single"}, EXTERNAL])
def test_no_image_is_necessary_without_a_gateway(redis: dict[str, Any]) -> None:
    assert not refused(redis)
    assert not refused({"gateway": {}}, clusters=[])


def test_a_rehearsal_names_the_image_that_it_has() -> None:
    redis: dict[str, Any] = {"gateway": {}}
    adapt({"ray-platform:operator": {"install": "existing"}, "ray-platform:redis": redis}, "real")
    assert redis == {"gateway": {"image": IMAGE}}
    assert not refused(redis)
