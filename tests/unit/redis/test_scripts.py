"""The output of a node before it starts its server."""

import subprocess
from pathlib import Path

import pytest

from components.redis import manifests

pytestmark = [pytest.mark.unit, pytest.mark.thorough]

SCRIPT = Path(manifests.__file__).parent / "scripts" / "redis.sh"

RESOLV_CONF = """
nameserver 10.96.0.10
search svc.svc.corp.example svc.corp.example corp.example example.com
options ndots:5
"""


def test_a_wrong_domain_ends_it_with_the_setting_to_change(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text(RESOLV_CONF)
    env = {
        "ME": "ray-redis-0.ray-redis.svc.svc.cluster.local",
        "RESOLV_CONF": str(tmp_path / "resolv.conf"),
        "DATA": str(tmp_path),
    }
    ended = subprocess.run(
        ["/bin/sh", SCRIPT], env={"PATH": "/usr/bin:/bin", **env}, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "redis.clusterDomain is 'cluster.local'" in ended.stderr
    assert "the names of this cluster end with 'corp.example'" in ended.stderr


GETENT = """#!/bin/sh
echo "$*" >> "$0.asked"
case $4 in
  there) printf '10.0.0.7      STREAM there\\n10.0.0.7      DGRAM\\n' ;;
  gone) exit 2 ;;
  unanswered) sleep 5 ;;
esac
"""


def names_written(tmp_path: Path, known: str) -> list[str]:
    """The output of one run of names.sh, with a DNS that knows one node, does not know another, and does not answer
    for a third."""
    getent = tmp_path / "getent"
    getent.write_text(GETENT)
    getent.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text(known)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOSTS": str(hosts), "NODES": "unanswered there gone"}
    subprocess.run(["/bin/sh", SCRIPT.with_name("names.sh"), "once"], env=env, check=True)
    assert "-s hosts:dns ahosts there" in (tmp_path / "getent.asked").read_text().splitlines()
    return hosts.read_text().splitlines()


def test_names_are_kept_while_dns_does_not_answer_and_removed_if_it_has_none(tmp_path: Path) -> None:
    known = "10.0.0.8 unanswered\n10.0.0.9 unanswered-too\n10.0.0.9 gone\n10.0.0.6 there\n"
    assert names_written(tmp_path, known)[2:] == ["10.0.0.7 there", "10.0.0.8 unanswered"]


def test_localhost_is_always_resolved(tmp_path: Path) -> None:
    assert names_written(tmp_path, "")[:2] == ["127.0.0.1 localhost", "::1 localhost"]
