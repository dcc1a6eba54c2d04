"""The page of versions: which releases of other programs run here, which are known from their source, and are accepted.

`python -m local.versions` writes docs/versions.md from the pins of the rehearsal's programs and the components' tables.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from components.kueue import settings as kueue
from components.redis import settings as redis
from components.volcano import settings as volcano
from core.versions import release_of
from kuberay import releases
from local import paths, tools

PAGE = paths.ROOT / "docs" / "versions.md"

_INTRODUCTION = """\
# See which versions were run

After this page you know which versions work together, and how it was found out. Written by `python -m local.versions`
from the pinned versions. **Run**: built from its source and run by the tests of the last column, on simulated nodes
unless the path begins with `tests/pods`. **From source**: its fields and rules were compared with its source, and
nothing was run. **Accepted**: `check` and `up` take it.
"""

_UPGRADES = """\
## Upgrades

| Program | From | To | Shown by |
| --- | --- | --- | --- |
"""

_REST = """\
Any other upgrade of these programs was not tried. For KubeRay's see [upgrades](upgrades.md).
"""


@dataclass(frozen=True)
class Row:
    """A program. Fields: `run`, `known` and `accepted` as the page explains; `shown`: the test that runs it."""

    program: str
    run: tuple[str, ...]
    accepted: str
    shown: str
    known: tuple[str, ...] = ()


def rows() -> Iterable[Row]:
    """The programs that a stack relies on."""
    oldest_ray = next(iter(releases.RELEASES.values())).oldest_ray
    run = (_number(tools.KUBERAY), _number(tools.KUBERAY_1_5))
    known = {release: each.first for release, each in releases.RELEASES.items()}
    later = tuple(first for release, first in known.items() if release not in map(release_of, run))
    yield Row("KubeRay", run, releases.SUPPORTED, "tests/engine/test_operator_upgrade.py", later)
    yield Row(
        "Ray", (_pinned("local/images/ray.in", "ray"),), f"{oldest_ray} or later", "tests/pods/test_autoscaler.py"
    )
    yield Row("Kubernetes", (_number(tools.KUBERNETES),), "1.30 or later", "tests/engine/test_platform.py")
    yield Row("Volcano", (_number(tools.VOLCANO),), volcano.SUPPORTED, "tests/engine/test_volcano.py")
    yield Row("Kueue", (_number(tools.KUEUE),), kueue.SUPPORTED, "tests/engine/test_kueue.py")
    yield Row("Argo CD", (_number(tools.ARGO_CD),), "2.10 or later", "tests/engine/test_argo_cd.py")
    yield Row("cert-manager", (_number(tools.CERT_MANAGER),), "1.x", "tests/engine/test_cert_manager.py")
    accepted = f"{redis.OLDEST} or later, Valkey too; by default {redis.DEFAULT_IMAGE.rpartition(':')[2]}"
    yield Row("Redis", ("7.0, Debian 12's",), accepted, "tests/pods/test_redis.py")
    own = tools.prometheus_release(tools.PROMETHEUS.version)
    yield Row("Prometheus", (own,), "2.43 or later", "tests/pods/test_monitoring.py")
    yield Row(
        "Alertmanager", (_number(tools.ALERTMANAGER),), "0.26 or later", "tests/unit/monitoring/test_alertmanager.py"
    )
    yield Row("VictoriaLogs", (_number(tools.VICTORIA_LOGS),), "1.x", "tests/pods/test_logs.py")
    engine = _number(tools.PULUMI)
    yield Row("Pulumi, engine", (engine,), f"{engine} or later", "tests/engine/test_platform.py")
    provider = tools.KUBERNETES_PROVIDER
    accepted = f"{provider} or later; the SDK is {_pinned('requirements.txt', 'pulumi-kubernetes')}"
    yield Row("Pulumi, Kubernetes provider", (provider,), accepted, "tests/engine/test_platform_edits.py")
    sdk = _pinned("requirements.txt", "pulumi")
    yield Row("Pulumi, Python SDK", (sdk,), f"{sdk}, pinned", "tests/engine/test_platform.py")


def page() -> str:
    """The page as Markdown."""
    lines = ["| Program | Run | From source | Accepted | Shown by |", "| --- | --- | --- | --- | --- |"]
    for row in rows():
        cells = (row.program, ", ".join(row.run), ", ".join(row.known), row.accepted, f"`{row.shown}`")
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    old, new = _number(tools.KUBERAY_1_5), _number(tools.KUBERAY)
    upgrades = (
        f"| KubeRay, with its CRDs | {old} | {new} | `tests/engine/test_operator_upgrade.py` |\n"
        f"| Kubernetes, beneath a stack | 1.33, emulated | {_number(tools.KUBERNETES)} | "
        "`tests/engine/test_kubernetes_upgrade.py` |\n"
    )
    return "\n".join([_INTRODUCTION, *lines, "", f"{_UPGRADES}{upgrades}", _REST])


def _number(tool: tools.Tool) -> str:
    return tool.version.removeprefix("v")


def _pinned(file: str, package: str) -> str:
    found = re.search(rf"(?m)^{package}(?:\[[a-z,]*\])?==(\S+)", (paths.ROOT / file).read_text())
    assert found, f"{file} pins no {package}"
    return found[1]


if __name__ == "__main__":
    PAGE.write_text(page())
