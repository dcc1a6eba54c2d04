"""A Prometheus of the stack's own, and a proxy for each tenant that shows the tenant's series alone. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from components import workloads
from components.access.manifests import PREFIX, Grant, account, bodies, role_binding, service_account
from components.access.personas import CLUSTER_ADMIN_INSIDE, READ, Rule, Subject, rule
from components.bodies import in_namespace
from components.kueue.manifests import METRICS_READER
from components.monitoring.settings import PrometheusSettings
from components.workloads import Viewers, probed
from core.body import Body

NAME = "prometheus"
"""Name of the StatefulSet, its Service and its ServiceAccount."""

POD = f"{NAME}-0"

PORT = 9090
"""Port of Prometheus, and of the proxies."""

ALERTMANAGER, ALERTMANAGER_PORT = "alertmanager", 9093
"""Name and port of the Service of an Alertmanager of the stack's own; also the name of its other objects."""

ALERTMANAGER_SELECTOR = {"app.kubernetes.io/component": ALERTMANAGER}
"""Label of its pod, and of its objects."""

CONFIG_FILE = "prometheus.yml"
"""Key of the ConfigMap with the configuration, which includes its other files."""

SELECTOR = {"app.kubernetes.io/component": NAME}
"""Label of the pod of Prometheus."""

PROXIES = {"app.kubernetes.io/component": "prometheus-proxy"}
"""Label of the pods of all proxies."""

LONGEST_TENANT = workloads.LONGEST_NAME - len(NAME) - 1
"""Characters of a tenant's namespace."""

_CONFIG, _DATA = "/etc/prometheus", "/prometheus"

CML = "cml"

CML_SECRET = "ray-platform-cml"  # noqa: S105 (its name)
"""Secret with the files of `ray-platform cml monitor`."""

CML_FOLDER = f"{_CONFIG}-{CML}"
"""Where Prometheus has its files."""

LOG = 3 * 128 * 2**20
"""Bytes: Prometheus keeps at least three files of its write-ahead log (prometheus.io, Storage: on-disk layout)."""


def service_of(tenant: str) -> str:
    """Name of the Service and the Deployment of the proxy of a tenant, by its namespace."""
    return f"{NAME}-{tenant}"


def objects(
    settings: PrometheusSettings,
    viewers: Iterable[Viewers],
    admins: Sequence[Subject],
    files: Mapping[str, str],
    config_map: str,
    forwarded: Sequence[str],
    *,
    on_cml: bool,
) -> Iterator[Body]:
    """The objects in its namespace, without the Namespace, the ConfigMap and the NetworkPolicies. `admins`: who reads
    all metrics, and forwards ports to the pods `forwarded`. `files`: the content of the ConfigMap. `on_cml`: whether
    the Secret CML_SECRET may have further targets."""
    yield service_account(NAME)
    yield workloads.service(NAME, PORT, SELECTOR)
    if admins:
        yield from bodies(Grant("cluster-admin", (*CLUSTER_ADMIN_INSIDE, _whole(forwarded)), admins)).values()
    yield _stateful_set(settings, config_map, files, on_cml=on_cml)
    for each in viewers:
        name, labels = service_of(each.namespace), workloads.labels_of(PROXIES, each.namespace)
        yield from workloads.shown("metrics", name, PORT, labels, each)
        yield _proxy(settings, each.namespace, labels)


def _whole(pods: Sequence[str]) -> Rule:
    """Port-forward to these pods alone. NetworkPolicies do not apply to it, so no other pod needs a way in."""
    return rule("", ["pods/portforward"], ["get", "create"], pods)


def scraper(namespace: str, own: str, *, services: bool) -> list[Body]:
    """The Role and its binding by which Prometheus in the namespace `own` finds what it scrapes in another: pods, and
    with `services` those of Services."""
    rules = [rule("", ["pods", *(["services"] if services else [])], READ)]
    rules += [rule("discovery.k8s.io", ["endpointslices"], READ)] if services else []
    made = bodies(Grant(NAME, rules, [f"serviceAccount:{own}/{NAME}"])).values()
    return [in_namespace(each, namespace) for each in made]


def reader_of_kueue(own: str) -> Body:
    """Kueue answers only accounts that may get the URL `/metrics`, which is in no namespace."""
    return role_binding(f"{PREFIX}{METRICS_READER}", METRICS_READER, [account(NAME, own)], "ClusterRole")


def configuration(*, scrape: Sequence[str], rules: str, interval: int, sends: bool) -> Body:
    """The configuration, which includes the files. `interval`: seconds between two evaluations of alerts, which else
    are a minute. `sends`: whether the stack has an Alertmanager."""
    receiver = {"static_configs": [{"targets": [f"{ALERTMANAGER}:{ALERTMANAGER_PORT}"]}]}
    return {
        "global": {"evaluation_interval": f"{interval}s"},
        "scrape_config_files": list(scrape),
        "rule_files": [rules],
        **({"alerting": {"alertmanagers": [receiver]}} if sends else {}),
    }


def _stateful_set(settings: PrometheusSettings, config_map: str, files: Mapping[str, str], *, on_cml: bool) -> Body:
    arguments = [
        f"--config.file={_CONFIG}/{CONFIG_FILE}",
        f"--storage.tsdb.path={_DATA}",
        f"--storage.tsdb.retention.time={settings.retention_days}d",
        f"--storage.tsdb.retention.size={workloads.most_bytes(settings.storage)}B",
    ]
    container = workloads.program(
        NAME,
        settings.image,
        arguments,
        PORT,
        resources=settings.resources.without_cpu_limit,
        # After a crash it reads its log of the last hours before it is ready.
        startupProbe={**probed("/-/ready"), "periodSeconds": 5, "failureThreshold": 180},
        readinessProbe=probed("/-/ready"),
        livenessProbe=probed("/-/healthy"),
        volumeMounts=[
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "data", "mountPath": _DATA},
            *([{"name": CML, "mountPath": CML_FOLDER, "readOnly": True}] if on_cml else []),
        ],
    )
    pod = workloads.pod(
        container,
        serviceAccountName=NAME,
        automountServiceAccountToken=True,
        volumes=[
            {"name": "config", "configMap": {"name": config_map}},
            *([{"name": CML, "secret": {"secretName": CML_SECRET, "optional": True}}] if on_cml else []),
        ],
    )
    return workloads.stateful_set(NAME, SELECTOR, pod, settings.storage, settings.storage_class_name, files)


def _proxy(settings: PrometheusSettings, tenant: str, labels: Mapping[str, str]) -> Body:
    """Its program adds the tenant's namespace to each query, and refuses all other requests
    (github.com/prometheus-community/prom-label-proxy, injectproxy/routes.go)."""
    arguments = [
        f"-insecure-listen-address=:{PORT}",
        f"-upstream=http://{NAME}:{PORT}",
        "-label=namespace",
        f"-label-value={tenant}",
        "-enable-label-apis",
    ]
    container = workloads.proxy(settings.proxy_image, arguments, PORT, probed("/healthz"))
    return workloads.deployment(service_of(tenant), labels, workloads.pod(container))
