"""The gateway with the environment of a head's pod, as the user of one tenant, with a real GCS."""

import subprocess
import sys
from pathlib import Path

import pytest

from components.redis.connection import RedisConnection, gateway_password
from components.redis.manifests import tenant_secret
from components.redis_gateway.manifests import FOLDER, sidecar, volume_keys
from components.redis_gateway.settings import GatewaySettings
from tests.gateway.nodes import MASTER, RIGHTS, SENTINEL_RIGHTS, Nodes
from tests.gateway.process import Gateway
from tests.gateway.ray_head import Head
from tests.gateway.wire import Wire

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

TENANT = "team-a"

KEYS = f"resetkeys ~RAY{TENANT}.* ~DUMMY ~redis-gateway:{TENANT}.*"
"""The keys that the user of a tenant may access."""

SECRET = "the-password-of-the-tenant"  # noqa: S105 - of processes that live as long as a test

RAYS = gateway_password(SECRET)
"""What Ray gets as its password for Redis, and its clean-up."""

CLEANUP = """
import sys
from ray._private.gcs_utils import cleanup_redis_storage
host, port, user, password, namespace = sys.argv[1:]
done = cleanup_redis_storage(host=host, port=int(port), username=user, password=password, use_ssl=False,
                             storage_namespace=namespace)
sys.exit(not done)
"""
"""The script of KubeRay's Job (KubeRay 1.6.2: raycluster_controller.go, buildRedisCleanupJob)."""


@pytest.fixture
def of_tenant(nodes: Nodes) -> Nodes:
    """Nodes and Sentinels that know the user of a tenant."""
    others = " ".join(right for right in RIGHTS.split() if not right.startswith("~"))
    for node in nodes.redis:
        node.ask("ACL", "SETUSER", TENANT, "on", f">{SECRET}", *KEYS.split(), *others.split())
    for sentinel in nodes.sentinels:
        sentinel.ask("ACL", "SETUSER", TENANT, "on", f">{SECRET}", *SENTINEL_RIGHTS.split())
    return nodes


def environment(nodes: Nodes, volume: Path) -> dict[str, str]:
    """The environment of the sidecar's container, with the Secret's volume in a folder."""
    connection = RedisConnection(tuple(f"127.0.0.1:{each.port}" for each in nodes.sentinels), MASTER, replicas=2)
    volume.mkdir()
    texts = tenant_secret(TENANT, [SECRET])
    for name in volume_keys(connection):
        (volume / name).write_text(texts[name])
    body = sidecar(GatewaySettings(), connection, TENANT, "rayproject/ray:2.60.0", None, "IfNotPresent")
    variables = {each["name"]: each.get("value", TENANT).replace(FOLDER, str(volume)) for each in body["env"]}
    own_ports = {"REDIS_GATEWAY_LISTEN", "REDIS_GATEWAY_HTTP_LISTEN"}
    return {name.removeprefix("REDIS_GATEWAY_").lower(): variables[name] for name in variables.keys() - own_ports}


def test_a_gcs_uses_only_keys_of_its_tenant_and_leaves_none(of_tenant: Nodes, tmp_path: Path) -> None:
    namespace = f"{TENANT}.training.0a1b2c3d4e"
    gateway = Gateway(tmp_path / "gateway-0", None, (), **environment(of_tenant, tmp_path / "secret"))
    try:
        gateway.wait_ready()
        with Head(gateway.port, namespace, tmp_path / "ray.log", RAYS, TENANT):
            keys = {key.decode() for key in of_tenant.master.ask("KEYS", "*")}
        assert any(key.startswith(f"RAY{namespace}@") for key in keys)
        assert {key for key in keys if not key.startswith((f"RAY{namespace}@", f"redis-gateway:{TENANT}."))} == set()
        who = ("127.0.0.1", str(gateway.port), TENANT, RAYS, namespace)
        subprocess.run([sys.executable, "-c", CLEANUP, *who], cwd=tmp_path, check=True, timeout=60)
        assert of_tenant.master.ask("KEYS", "RAY*") == []
        # What a job finds in the head's environment opens the gateway alone.
        for node in (*of_tenant.redis, *of_tenant.sentinels):
            with Wire(node.port) as wire:
                assert str(wire.ask("AUTH", TENANT, RAYS)).startswith("WRONGPASS")
    finally:
        gateway.kill()
