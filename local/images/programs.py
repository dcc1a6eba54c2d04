"""Images that contain one program and nothing else."""

import shutil
from pathlib import Path

from local import tools
from local.images.image import Image
from local.progress import Report
from local.tools import (
    KUBERAY,
    KUBERNETES_NODE,
    OTEL_COLLECTOR,
    PROM_LABEL_PROXY,
    VICTORIA_METRICS,
    VOLCANO,
    Tool,
    prometheus_release,
)


def _image(name: str, reference: str, tool: Tool, program: str, path: str, user: str) -> Image:
    def fill(files: Path, _report: Report) -> None:
        target = files / path.strip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tool.program(program), target)
        target.chmod(0o755)

    return Image(name, reference, {"Entrypoint": [path], "User": user}, fill, lambda: tool.folder.name, (tool,))


PAUSE = _image("pause", "localhost/pause:1", KUBERNETES_NODE, "pause", "/pause", "65535:65535")

OPERATOR = _image(
    "operator",
    f"quay.io/kuberay/operator:{KUBERAY.version}",
    KUBERAY,
    "ray-operator",
    "/manager",
    "65532:65532",
)
"""The program's path and user are those of KubeRay's own image (ray-operator/Dockerfile)."""

VOLCANO_PROGRAMS = tuple(
    _image(
        f"volcano-{program}",
        f"docker.io/volcanosh/vc-{program}:{VOLCANO.version}",
        VOLCANO,
        program,
        f"/vc-{program}",
        "1000:1000",
    )
    for program in VOLCANO.programs
)
"""Their paths are those of Volcano's own images (installer/dockerfile), their users those of its manifest."""

LOG_COLLECTOR = _image(
    "log-collector",
    f"docker.io/otel/opentelemetry-collector-contrib:{OTEL_COLLECTOR.version.removeprefix('v')}",
    OTEL_COLLECTOR,
    "otelcol",
    "/otelcol-contrib",
    "10001:10001",
)
"""The program's path and user are those of OpenTelemetry's own image, whose program has more components."""

REDIS_EXPORTER = _image(
    "redis-exporter",
    f"docker.io/oliver006/redis_exporter:{tools.REDIS_EXPORTER.version}",
    tools.REDIS_EXPORTER,
    "redis_exporter",
    "/redis_exporter",
    "59000:59000",
)
"""The program's path and user are those of its project's own image (redis_exporter, Dockerfile)."""

PROMETHEUS = _image(
    "prometheus",
    f"docker.io/prom/prometheus:v{prometheus_release(tools.PROMETHEUS.version)}",
    tools.PROMETHEUS,
    "prometheus",
    "/bin/prometheus",
    "65534:65534",
)
"""The program's path and user (`nobody`) are those of its project's own image (prometheus, Dockerfile)."""

PROMETHEUS_PROXY = _image(
    "prometheus-proxy",
    f"quay.io/prometheuscommunity/prom-label-proxy:{PROM_LABEL_PROXY.version}",
    PROM_LABEL_PROXY,
    "prom-label-proxy",
    "/bin/prom-label-proxy",
    "65534:65534",
)
"""As Prometheus' (prom-label-proxy, Dockerfile)."""

ALERTMANAGER = _image(
    "alertmanager",
    f"quay.io/prometheus/alertmanager:{tools.ALERTMANAGER.version}",
    tools.ALERTMANAGER,
    "alertmanager",
    "/bin/alertmanager",
    "65534:65534",
)
"""As Prometheus' (alertmanager, Dockerfile), without amtool."""

VICTORIA_LOGS = _image(
    "victoria-logs",
    f"docker.io/victoriametrics/victoria-logs:{tools.VICTORIA_LOGS.version}",
    tools.VICTORIA_LOGS,
    "victoria-logs",
    "/victoria-logs-prod",
    "65534:65534",
)
"""The program's path is that of its project's own image (VictoriaLogs, app/victoria-logs/multiarch/Dockerfile), which
names no user."""

LOGS_PROXY = _image(
    "logs-proxy",
    f"docker.io/victoriametrics/vmauth:{tools.VICTORIA_LOGS.version_of(VICTORIA_METRICS)}",
    tools.VICTORIA_LOGS,
    "vmauth",
    "/vmauth-prod",
    "65534:65534",
)
"""As VictoriaLogs' (VictoriaMetrics, app/vmauth/multiarch/Dockerfile)."""
