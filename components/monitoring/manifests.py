"""Renders monitoring: for the Prometheus operator, as files for a Prometheus without it, or with a Prometheus of the
stack's own. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from components.access.personas import Subject
from components.bodies import in_namespace, restricted_namespace
from components.monitoring import prometheus
from components.monitoring.dashboards import content, file_name
from components.monitoring.rules import ALERTS, INTERVAL, Alert, records
from components.monitoring.settings import AlertSettings, MonitoringSettings
from components.monitoring.targets import Monitored, Relabelling, Target, meta_label, targets
from components.workloads import Viewers
from core.body import Body
from core.types import seconds
from core.yaml_writer import go_yaml

NAME = "ray-platform"
"""Name of the object with the rules."""

LABELS = {"app.kubernetes.io/name": "ray-platform-monitoring"}
"""Labels of all objects, besides those of the settings."""

OPERATOR_API = "monitoring.coreos.com/v1"

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 -- the name of a file
"""The token of Prometheus' own account in its pod."""

SCRAPE_FILE, RULES_FILE = "scrape.yaml", "rules.yaml"
"""Keys of the ConfigMap, which are names of files where it is mounted."""

RUNBOOKS = "docs/runbooks.md"


def monitoring_objects(settings: MonitoringSettings, monitored: Monitored) -> list[Body]:
    """All objects of an existing Prometheus, and those that a Prometheus of the stack's own has besides
    `own_prometheus`; with their namespace."""
    return [*_of_prometheus(settings, monitored), *_dashboards(settings, monitored)]


def own_prometheus(
    settings: MonitoringSettings,
    monitored: Monitored,
    viewers: Iterable[Viewers],
    admins: Sequence[Subject],
    policies: Iterable[Body],
    tenants: Mapping[str, str],
) -> list[Body]:
    """The objects of a Prometheus of the stack's own, and of its Alertmanager, in its namespace, and the Namespace;
    none if it is an existing one. `viewers`: who sees a tenant's metrics; `admins`: all; `policies`: the
    NetworkPolicies; `tenants`: their namespaces, by name."""
    installed, namespace, sender = settings.installed, settings.own_namespace, settings.alertmanager
    if installed is None or namespace is None:
        return []
    files, forwarded, sending = _files(settings, monitored), [prometheus.POD], list[Body]()
    if sender:
        # Only stacks with receivers need it.
        from components.monitoring import alertmanager

        forwarded.append(alertmanager.POD)
        sending = list(alertmanager.objects(sender, tenants, installed.storage_class_name))
    made = prometheus.objects(installed, viewers, admins, files, NAME, forwarded, on_cml=bool(monitored.cml))
    inside = [*policies, *made, *sending]
    listed = [restricted_namespace(namespace), *(in_namespace(each, namespace) for each in inside)]
    return [_labelled(each, settings) for each in listed]


def _labelled(body: Body, settings: MonitoringSettings) -> Body:
    metadata = body["metadata"]
    labels = {**LABELS, **settings.labels, **metadata.get("labels", {})}
    return {**body, "metadata": {**metadata, "labels": labels}}


def _files(settings: MonitoringSettings, monitored: Monitored) -> dict[str, str]:
    """The files of Prometheus, with the configuration that includes them if it is the stack's own."""
    files = {SCRAPE_FILE: scrape_file(settings, monitored), RULES_FILE: rules_file(settings, monitored)}
    if settings.installed:
        sends, interval = settings.alertmanager is not None, seconds(settings.interval)
        scrape = [SCRAPE_FILE, *([f"{prometheus.CML_FOLDER}/{SCRAPE_FILE}"] if monitored.cml else [])]
        main = prometheus.configuration(scrape=scrape, rules=RULES_FILE, interval=interval, sends=sends)
        files[prometheus.CONFIG_FILE] = _text(main)
    return files


def _of_prometheus(settings: MonitoringSettings, monitored: Monitored) -> list[Body]:
    if settings.mode != "prometheusOperator":
        return [_object("v1", "ConfigMap", NAME, settings, monitored, {"data": _files(settings, monitored)})]
    kinds = {"pod": "PodMonitor", "service": "ServiceMonitor"}
    monitors = [
        _object(OPERATOR_API, kinds[each.of], each.job, settings, monitored, {"spec": _monitor(each, settings)})
        for each in targets(monitored)
    ]
    rules = {"spec": {"groups": rule_groups(settings, monitored)}}
    return [*monitors, _object(OPERATOR_API, "PrometheusRule", NAME, settings, monitored, rules)]


def _object(
    version: str, kind: str, name: str, settings: MonitoringSettings, monitored: Monitored, content: Body
) -> Body:
    namespace = settings.own_namespace or settings.namespace or monitored.operator
    metadata = {"name": str(name), "namespace": namespace}
    return _labelled({"apiVersion": version, "kind": kind, "metadata": metadata, **content}, settings)


def _dashboards(settings: MonitoringSettings, monitored: Monitored) -> Iterator[Body]:
    for dashboard in settings.dashboards:
        name, data = file_name(dashboard), {"data": {file_name(dashboard): content(dashboard)}}
        body = _object("v1", "ConfigMap", name.removesuffix(".json"), settings, monitored, data)
        labels = {**body["metadata"]["labels"], **settings.dashboard_labels}
        yield {**body, "metadata": {**body["metadata"], "labels": labels}}


def rule_groups(settings: MonitoringSettings, monitored: Monitored) -> list[Body]:
    """The recording rules, and the alerts of what the stack has, as Prometheus reads them."""
    alerts = (_alert(each, settings) for each in ALERTS.values() if each.part in monitored.parts)
    return [
        {"name": f"{NAME}-records", "interval": f"{INTERVAL}s", "rules": records(monitored.prices, monitored.cml)},
        {"name": f"{NAME}-alerts", "rules": [alert for alert in alerts if alert]},
    ]


def _alert(alert: Alert, settings: MonitoringSettings) -> Body | None:
    changes = settings.alerts.get(alert.name, AlertSettings())
    if not changes.enabled:
        return None
    runbook = f"#{alert.name.lower()}"
    url = {"runbook_url": f"{settings.runbooks}{runbook}"} if settings.runbooks else {}
    return {
        "alert": alert.name,
        "expr": alert.condition,
        "for": f"{seconds(changes.after or alert.after)}s",
        "labels": {"severity": changes.severity or alert.severity},
        "annotations": {"summary": alert.summary, "runbook": f"{RUNBOOKS}{runbook}", **url},
    }


def rules_file(settings: MonitoringSettings, monitored: Monitored) -> str:
    """The rules as a file of `rule_files`."""
    return _text({"groups": rule_groups(settings, monitored)})


def scrape_file(settings: MonitoringSettings, monitored: Monitored) -> str:
    """The targets as a file of `scrape_config_files`, which can also be the whole configuration of a Prometheus."""
    return _text({"scrape_configs": [_scrape(target, settings) for target in targets(monitored)]})


def _text(content: Body) -> str:
    return go_yaml(content, sort_keys=False, width=1000)


def _monitor(target: Target, settings: MonitoringSettings) -> Body:
    """The spec of a PodMonitor or a ServiceMonitor (github.com/prometheus-operator/prometheus-operator,
    pkg/apis/monitoring/v1). The operator adds `namespace` and `pod`."""
    job = Relabelling("job", value=str(target.job))
    endpoint: Body = {
        "port": target.port,
        "interval": f"{seconds(settings.interval)}s",
        "relabelings": _steps((*target.labelled, job), "sourceLabels", "targetLabel"),
    }
    if target.metrics_labelled:
        endpoint["metricRelabelings"] = _steps(target.metrics_labelled, "sourceLabels", "targetLabel")
    if target.secured:
        endpoint |= {"scheme": "https", "bearerTokenFile": TOKEN, "tlsConfig": {"insecureSkipVerify": True}}
    return {
        "selector": {"matchLabels": dict(target.labels)},
        "namespaceSelector": {"matchNames": list(target.namespaces)} if target.namespaces else {"any": True},
        "podMetricsEndpoints" if target.of == "pod" else "endpoints": [endpoint],
    }


def _scrape(target: Target, settings: MonitoringSettings) -> Body:
    """A scrape config (prometheus.io, Configuration: scrape_config, kubernetes_sd_config)."""
    role, port = _ROLES[target.of]
    found: Body = {"role": role, **({"namespaces": {"names": list(target.namespaces)}} if target.namespaces else {})}
    kept = {meta_label(target.of, label): value for label, value in target.labels.items()} | {port: target.port}
    named = (
        Relabelling("namespace", ("__meta_kubernetes_namespace",)),
        Relabelling("pod", ("__meta_kubernetes_pod_name",)),
    )
    scrape: Body = {
        "job_name": str(target.job),
        "scrape_interval": f"{seconds(settings.interval)}s",
        "kubernetes_sd_configs": [found],
        "relabel_configs": [
            {"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Failed|Succeeded"},
            *({"action": "keep", "source_labels": [label], "regex": value} for label, value in kept.items()),
            *_steps((*named, *target.labelled), "source_labels", "target_label"),
        ],
    }
    if target.metrics_labelled:
        scrape["metric_relabel_configs"] = _steps(target.metrics_labelled, "source_labels", "target_label")
    if target.secured:
        scrape |= {
            "scheme": "https",
            "authorization": {"credentials_file": TOKEN},
            "tls_config": {"insecure_skip_verify": True},
        }
    return scrape


_ROLES: Mapping[str, tuple[str, str]] = {
    "pod": ("pod", "__meta_kubernetes_pod_container_port_name"),
    "service": ("endpointslice", "__meta_kubernetes_endpointslice_port_name"),
}
"""What Prometheus looks for, and its label with the name of a port."""


def _steps(steps: Iterable[Relabelling], source: str, target: str) -> list[Body]:
    return [
        {
            **({source: list(step.source)} if step.source else {}),
            **({"regex": step.pattern} if step.pattern else {}),
            target: step.target,
            **({"replacement": step.value} if step.value else {}),
        }
        for step in steps
    ]
