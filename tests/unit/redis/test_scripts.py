"""What a node says before it starts its server."""

import subprocess
from pathlib import Path

import pytest

from components.redis import manifests

pytestmark = pytest.mark.unit

SCRIPT = Path(manifests.__file__).parent / "scripts" / "redis.sh"

RESOLV_CONF = """
nameserver 10.96.0.10
search svc.svc.corp.example svc.corp.example corp.example example.com
options ndots:5
"""


def test_a_domain_that_is_not_the_clusters_ends_it_with_what_to_say_instead(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text(RESOLV_CONF)
    said = {
        "ME": "ray-redis-0.ray-redis.svc.svc.cluster.local",
        "RESOLV_CONF": str(tmp_path / "resolv.conf"),
        "DATA": str(tmp_path),
    }
    ended = subprocess.run(
        ["/bin/sh", SCRIPT], env={"PATH": "/usr/bin:/bin", **said}, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "redis.clusterDomain is 'cluster.local'" in ended.stderr
    assert "the names of this cluster end with 'corp.example'" in ended.stderr
