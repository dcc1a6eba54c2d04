"""Settings of monitoring."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, WithJsonSchema

from components.monitoring.rules import ALERTS, Severity
from components.network.settings import Egress
from components.operator.settings import ComputeResources
from core.problems import Problem, repeats
from core.suggestions import names_hint
from core.types import (
    CheckedSettings,
    DnsLabel,
    DnsSubdomain,
    Duration,
    Image,
    Labels,
    Memory,
    NotEmpty,
    Settings,
    seconds,
)

Dashboard = Literal["fleet", "tenant", "queues", "redis", "default", "serve", "serveLlm", "data", "train"]
"""`fleet`: GPUs, GPU-hours, cost and what waits, by tenant; `tenant`: the same and more of one, by RayCluster; `queues`
of Volcano and Kueue; `redis`, and its gateways. Ray's own: `default` is about nodes, tasks, actors and the autoscaler;
the others are those of Ray's libraries."""

DEFAULT_NAMESPACE = "ray-monitoring"
"""Namespace of a Prometheus of the stack's own."""

_SHORTEST, _LONGEST = 5, 120
"""Seconds. Prometheus forgets a value after five minutes (prometheus.io, Querying basics: Staleness), and rules look
at the last five: that must be more than one value."""


def _known(name: str) -> str:
    if name in ALERTS:
        return name
    raise ValueError(f"there is no alert {name!r}: {names_hint(name, ALERTS)}")


AlertName = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": sorted(ALERTS)})]


class AlertSettings(Settings):
    """Changes of an alert."""

    enabled: bool = True
    """False: there is no such alert."""

    after: Duration | None = None
    """Time for which its condition has to hold. Default: that in docs/runbooks.md."""

    severity: Severity | None = None
    """Its label `severity`. Default: that in docs/runbooks.md."""


Url = Annotated[str, Field(pattern=r"^https?://[^\s#]+$")]


class RayDashboardSettings(Settings):
    """Where heads find Prometheus and Grafana, so that Ray's own dashboard shows the panels of `dashboards`.

    A change restarts heads. Heads must be able to connect there (`tenants[].network.egress`). `env` of a RayCluster or
    of its head goes before these values.
    """

    prometheus_host: Url | None = None
    """`RAY_PROMETHEUS_HOST`: the URL of Prometheus, as heads reach it. Default: Ray's, which is on the head."""

    grafana_host: Url | None = None
    """`RAY_GRAFANA_HOST`: the URL of Grafana, as heads reach it. Default: Ray's, which is on the head."""

    grafana_iframe_host: Url | None = None
    """`RAY_GRAFANA_IFRAME_HOST`: the URL of Grafana, as browsers reach it. Default: `grafanaHost`."""

    @property
    def env(self) -> dict[str, str]:
        """The variables of heads (ray 2.60, dashboard/modules/metrics/metrics_head.py)."""
        found = {
            "RAY_PROMETHEUS_HOST": self.prometheus_host,
            "RAY_GRAFANA_HOST": self.grafana_host,
            "RAY_GRAFANA_IFRAME_HOST": self.grafana_iframe_host,
        }
        return {name: url for name, url in found.items() if url}


class PrometheusSettings(Settings):
    """A Prometheus of the stack's own, and for each tenant a proxy to it that shows the tenant's metrics alone."""

    image: Image = "docker.io/prom/prometheus:v3.13.5"
    """Image of Prometheus 2.43 or newer. 3.13 has long-term support until July 2027."""

    proxy_image: Image = "quay.io/prometheuscommunity/prom-label-proxy:v0.11.1"
    """Image of the tenants' proxies, prom-label-proxy."""

    resources: ComputeResources = ComputeResources(cpu="500m", memory="2Gi")
    """CPU request and memory of Prometheus. Its memory follows the number of series."""

    storage: Memory = "20Gi"
    """Size of its volume, of which metrics fill four fifths at most. A change replaces the StatefulSet; an existing
    volume keeps its size, so enlarge its claim first."""

    storage_class_name: DnsSubdomain | None = None
    """StorageClass of the volume. Default: the cluster's default one."""

    retention_days: Annotated[int, Strict(), Field(ge=1, le=3650)] = 15
    """Days after which metrics are deleted."""


class ReceiverSettings(Settings):
    """Where alerts are sent, and which."""

    name: DnsLabel
    """Name of the receiver, and its key in the Secret."""

    type: Literal["pagerduty", "slack", "webhook"]
    """What the key has. `pagerduty`: the integration key of a service (Events API v2). `slack`: the URL of an incoming
    webhook. `webhook`: a URL to which Alertmanager posts its JSON."""

    severities: tuple[Severity, ...] = ()
    """Severities of the alerts that it gets. Default: all."""

    tenants: tuple[DnsLabel, ...] = ()
    """Tenants, by name, whose alerts it gets: those with the tenant's namespace. Default: all alerts, also those of the
    platform."""


class AlertmanagerSettings(CheckedSettings):
    """An Alertmanager of the stack's own, which sends the alerts of its Prometheus to receivers."""

    image: Image = "quay.io/prometheus/alertmanager:v0.31.1"
    """Image of Alertmanager 0.26 or newer."""

    receivers: Annotated[tuple[ReceiverSettings, ...], NotEmpty]
    """Where alerts are sent. Each receiver gets the alerts that match its keys, also those that others get."""

    secret: DnsSubdomain = "alert-receivers"  # noqa: S105 -- the name of a Secret
    """Name of a Secret in Prometheus' namespace, with a key for each receiver. You create it; Alertmanager starts once
    it exists, and reads changed values within two minutes."""

    egress: tuple[Egress, ...] = ()
    """Where Alertmanager may connect to: the receivers, `[{internet: true}]` for PagerDuty and Slack. As a tenant's
    `network.egress`. Required unless NetworkPolicies are off."""

    def problems(self) -> Iterator[Problem]:
        for path, name, first in repeats(
            (("receivers", at, "name"), each.name) for at, each in enumerate(self.receivers)
        ):
            message = f"{name!r} is used already, in receivers[{first[1]}]: set a unique name"
            yield Problem(path, name, message, "repeated-name")


class MonitoringSettings(CheckedSettings):
    """Metrics of RayClusters and of the platform, with recording rules and alerts: for an existing Prometheus, or with
    one of the stack's own.

    The namespaces in `network.monitoring` may read the metrics.
    """

    mode: Literal["install", "prometheusOperator", "scrapeConfig"] = "prometheusOperator"
    """`install`: a Prometheus of the stack's own. `prometheusOperator`: PodMonitors, ServiceMonitors and a
    PrometheusRule for an existing Prometheus operator. `scrapeConfig`: a ConfigMap with `scrape.yaml` and `rules.yaml`
    for an existing Prometheus without that operator."""

    prometheus: PrometheusSettings | None = None
    """The Prometheus of mode `install`. Default: with the defaults below."""

    alertmanager: AlertmanagerSettings | None = None
    """Where the Prometheus of mode `install` sends alerts. Default: nowhere."""

    namespace: DnsLabel | None = None
    """Namespace of these objects. With mode `install` the stack creates it, by default `ray-monitoring`. Otherwise it
    must exist; default: the operator's."""

    labels: Labels = Field(default_factory=dict)
    """Labels of these objects, by which Prometheus selects them: `{release: kube-prometheus-stack}`."""

    interval: Duration = "30s"
    """Time between two scrapes, 5s to 2m."""

    alerts: dict[AlertName, AlertSettings] = Field(default_factory=dict)
    """Changes of alerts, by their names: `{RayGpusIdle: {after: 2h}}`. Default: all of docs/runbooks.md as they are
    there."""

    runbooks: str | None = Field(default=None, pattern=r"^https?://[^\s#]+$")
    """URL of docs/runbooks.md, to which the alerts' annotation `runbook_url` points. Default: no such annotation."""

    dashboards: tuple[Dashboard, ...] = ()
    """Grafana dashboards as ConfigMaps. `fleet`: GPUs, GPU-hours, cost and what waits, by tenant; `tenant`: one tenant,
    by RayCluster; `queues`; `redis`, with its gateways. `default`, `serve`, `serveLlm`, `data`, `train`: Ray's own, of
    Ray 2.60, each of which adds 0.1 to 0.4 MB to the state of the stack. Default: none."""

    dashboard_labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels of these ConfigMaps, by which Grafana's sidecar selects them. Default: those of Grafana's Helm chart."""

    ray_dashboard: RayDashboardSettings | None = None
    """Prometheus and Grafana for the panels in Ray's own dashboard. Default: Ray's dashboard has none."""

    @property
    def installed(self) -> PrometheusSettings | None:
        """The Prometheus of the stack's own; None: it is an existing one."""
        return (self.prometheus or PrometheusSettings()) if self.mode == "install" else None

    @property
    def own_namespace(self) -> str | None:
        """The namespace that the stack creates for its Prometheus; None: the Prometheus is an existing one."""
        return (self.namespace or DEFAULT_NAMESPACE) if self.mode == "install" else None

    def problems(self) -> Iterator[Problem]:
        for field in ("prometheus", "alertmanager"):
            if getattr(self, field) and self.mode != "install":
                message = (
                    f"is for a Prometheus of the stack's own, and mode is {self.mode}: set mode to install, or remove "
                    "it"
                )
                yield Problem((field,), None, message, "monitoring-mode")
        if not _SHORTEST <= seconds(self.interval) <= _LONGEST:
            message = f"{self.interval!r} is not between {_SHORTEST}s and 2m: set it to 30s, or remove the key"
            yield Problem(("interval",), self.interval, message, "monitoring-interval")
