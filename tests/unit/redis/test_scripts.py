"""The scripts by themselves, with programs that stand in for those of the image."""

import subprocess
from pathlib import Path

import pytest

from components import payloads

pytestmark = pytest.mark.thorough

SCRIPT = Path(payloads.__file__).parent / "redis" / "redis.sh"

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


REDIS_CLI = """#!/bin/sh
folder=$(dirname "$0")
while [ $# -gt 0 ]; do
  case $1 in
    -h) host=$2 ;;
    --rdb) file=$2 ;;
  esac
  shift
done
if [ -z "$file" ]; then
  case $(cat) in
    PING) echo PONG ;;
    INFO*) cat "$folder/$host" ;;
  esac
  exit
fi
echo "$host" > "$file"
copies=$(ls "$BACKUP" | wc -l)
[ "$copies" -le "$ROOM" ] && exit
echo "Error writing data to file: $FAULT" >&2
exit 1
"""


MASTER = "role:master\nconnected_slaves:1\n"
LINKED = "role:slave\nmaster_host:master\nmaster_link_status:up\n"
UNLINKED = LINKED.replace(":up", ":down")
OLD = ["2026-01-01T00-00-00Z.rdb", "2026-01-02T00-00-00Z.rdb", "2026-01-03T00-00-00Z.rdb"]


def backed_up(
    tmp_path: Path, nodes: dict[str, str], copies: list[str], room: int = 9, fault: str = "short write"
) -> tuple["subprocess.CompletedProcess[str]", list[Path]]:
    """A run of backup.sh, and the copies after it. `nodes`: what each answers to INFO; `room`: copies that the volume
    holds."""
    programs, backup = tmp_path / "programs", tmp_path / "backup"
    for folder in (programs, backup):
        folder.mkdir()
    for name, text in {"redis-cli": REDIS_CLI, "redis-check-rdb": "#!/bin/sh\n", "passwords": "p\n", **nodes}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for copy in copies:
        (backup / copy).write_text("old")
    env = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "NODES": " ".join(nodes),
        "USERS": str(programs),
        "BACKUP": str(backup),
        "KEEP": "24",
        "ROOM": str(room),
        "FAULT": fault,
    }
    done = subprocess.run(
        ["/bin/sh", SCRIPT.with_name("backup.sh")], env=env, check=False, capture_output=True, text=True
    )
    return done, sorted(backup.glob("*.rdb"))


@pytest.mark.parametrize(
    ("nodes", "chosen"),
    [
        ({"first": UNLINKED, "master": MASTER, "last": LINKED}, "last"),
        ({"first": UNLINKED, "master": MASTER, "last": UNLINKED}, "master"),
        ({"first": UNLINKED, "last": UNLINKED}, None),
    ],
)
def test_a_replica_without_a_link_to_its_master_is_not_copied(
    nodes: dict[str, str], chosen: str | None, tmp_path: Path
) -> None:
    done, copies = backed_up(tmp_path, nodes, [])
    assert [copy.read_text() for copy in copies] == ([f"{chosen}\n"] if chosen else [])
    assert (done.returncode == 0) == bool(chosen)
    assert chosen or "no master answers, and no replica that has a link to one" in done.stdout


@pytest.mark.parametrize("fault", ["short write", "No space left on device", "Disk quota exceeded"])
def test_a_full_volume_loses_the_oldest_copies_until_a_new_one_fits(fault: str, tmp_path: Path) -> None:
    done, copies = backed_up(tmp_path, {"master": MASTER}, OLD, room=2, fault=fault)
    assert done.returncode == 0, done.stdout
    assert [copy.name for copy in copies[:-1]] == OLD[2:]
    assert copies[-1].read_text() == "master\n"


def test_the_last_copy_stays_even_if_no_new_one_fits(tmp_path: Path) -> None:
    done, copies = backed_up(tmp_path, {"master": MASTER}, OLD, room=1)
    assert done.returncode == 1
    assert [copy.name for copy in copies] == OLD[2:]


def test_no_copy_is_lost_to_a_failure_for_another_reason(tmp_path: Path) -> None:
    done, copies = backed_up(tmp_path, {"master": MASTER}, OLD, room=1, fault="Input/output error")
    assert done.returncode == 1
    assert [copy.name for copy in copies] == OLD
