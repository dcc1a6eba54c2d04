"""The image of Redis: redis-server, redis-sentinel and redis-cli of this machine's distribution.

It runs like Redis' own image (redis/docker-library-redis): user and group `redis` with number 999, working directory
and volume /data, an entrypoint that drops root and accepts options and a file like redis-server, no protected mode. It
does not have gosu and TLS certificates, and its programs are only on the PATH.
"""

from pathlib import Path

from local.errors import RehearsalError
from local.images import distribution
from local.images.image import Image
from local.progress import Report

PACKAGES = ("redis-server", "redis-sentinel")

VERSIONS = {"bookworm": "7.0.15", "trixie": "8.0.2", "jammy": "6.0.16", "noble": "7.0.15"}
"""The versions in the supported releases of Debian and Ubuntu (packages.debian.org/redis-server and
packages.ubuntu.com/redis-server). The image's name must be known before apt is asked."""

NUMBER = "999"

DATA = "/data"

ENTRYPOINT = Path(__file__).with_name("redis-entrypoint.sh")

DEBIANS_OWN = ("etc/redis", "etc/init.d", "var/lib/redis", "var/log/redis")
"""Files of the packages for a service of the system."""


def _fill(files: Path, report: Report) -> None:
    report(0.0, "packages of the distribution")
    distribution.install(files, PACKAGES)
    served = distribution.run_in(files, "redis-server", "--version")
    if f" v={VERSION} " not in served:
        raise RehearsalError(
            f"the image of Redis is of {VERSION}, and {distribution.codename()} has {served.strip()!r}: "
            f"correct VERSIONS in {Path(__file__).name}"
        )
    for folder in DEBIANS_OWN:
        distribution.run_in(files, "rm", "-rf", f"/{folder}")
    distribution.run_in(files, "groupmod", f"--gid={NUMBER}", "redis")
    distribution.run_in(files, "usermod", f"--uid={NUMBER}", f"--gid={NUMBER}", f"--home={DATA}", "redis")
    distribution.run_in(files, "install", "--directory", "--owner=redis", "--group=redis", DATA)
    entrypoint = files / "usr/local/bin" / "docker-entrypoint.sh"
    entrypoint.write_text(ENTRYPOINT.read_text())
    entrypoint.chmod(0o755)


def _pins() -> str:
    return "".join([Path(__file__).read_text(), ENTRYPOINT.read_text(), distribution.pins()])


VERSION = VERSIONS.get(distribution.codename() or "", VERSIONS["bookworm"])
"""The version of Redis in it."""

REDIS = Image(
    "redis",
    f"docker.io/library/redis:{VERSION}",
    {
        "Entrypoint": ["docker-entrypoint.sh"],
        "Cmd": ["redis-server"],
        "WorkingDir": DATA,
        "Volumes": {DATA: {}},
        "ExposedPorts": {"6379/tcp": {}},
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    },
    _fill,
    _pins,
)
