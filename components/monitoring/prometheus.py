"""A Prometheus of the stack's own, and a proxy for each tenant that shows the tenant's series alone. Pure functions."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from components.access.manifests import PREFIX, Grant, account, bodies, role_binding, service_account
from components.access.personas import CLUSTER_ADMIN_INSIDE, READ, Rule, Subject, rule
from components.bodies import in_namespace, restricted_sidecar
from components.kueue.manifests import METRICS_READER
from components.monitoring.settings import PrometheusSettings
from core.body import Body
from core.pods import RESTRICTED_POD
from core.quantities import amount

NAME = "prometheus"
"""Name of the StatefulSet, its Service and its ServiceAccount."""

POD = f"{NAME}-0"

PORT = 9090
"""Port of Prometheus, and of the proxies."""

CONFIG_FILE = "prometheus.yml"
"""Key of the ConfigMap with the configuration, which includes its other files."""

SELECTOR = {"app.kubernetes.io/component": NAME}
"""Label of the pod of Prometheus."""

PROXIES = {"app.kubernetes.io/component": "prometheus-proxy"}
"""Label of the pods of all proxies."""

LONGEST_TENANT = 63 - len(NAME) - 1
"""Characters of a tenant's namespace: the name of a Service has 63."""

_USER = 65534
"""User and group `nobody` of both images, whose Dockerfiles name it without its number."""

_CONFIG, _DATA = "/etc/prometheus", "/prometheus"

OF_STORAGE = Decimal("0.8")
"""Share of the volume that metrics fill: the oldest are deleted before the volume is full (prometheus.io, Storage:
operational aspects)."""

LOG = 3 * 128 * 2**20
"""Bytes: Prometheus keeps at least three files of its write-ahead log (prometheus.io, Storage: on-disk layout)."""

_DIGEST = "ray-platform/config"
"""Annotation of the pod: it is recreated when its configuration changes."""

_PROXY_AMOUNTS: Body = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


@dataclass(frozen=True)
class Viewers:
    """Who sees the metrics of a tenant."""

    namespace: str
    """The tenant's."""

    subjects: Sequence[Subject]


def service_of(tenant: str) -> str:
    """Name of the Service and the Deployment of the proxy of a tenant, by its namespace."""
    return f"{NAME}-{tenant}"


def objects(
    settings: PrometheusSettings,
    viewers: Iterable[Viewers],
    admins: Sequence[Subject],
    files: Mapping[str, str],
    config_map: str,
) -> Iterator[Body]:
    """The objects in its namespace, without the Namespace, the ConfigMap and the NetworkPolicies. `admins`: who reads
    all metrics. `files`: the content of the ConfigMap."""
    yield service_account(NAME)
    yield _service(NAME, SELECTOR)
    if admins:
        yield from bodies(Grant("cluster-admin", (*CLUSTER_ADMIN_INSIDE, _WHOLE), admins)).values()
    yield _stateful_set(settings, config_map, files)
    for each in viewers:
        name, labels = service_of(each.namespace), {**PROXIES, "app.kubernetes.io/instance": each.namespace}
        yield _service(name, labels)
        if each.subjects:
            yield from bodies(Grant(f"metrics:{each.namespace}", [view_of(each.namespace)], each.subjects)).values()
        yield _proxy(settings, each.namespace, labels)


_WHOLE = rule("", ["pods/portforward"], ["get", "create"], [POD])
"""Port-forward to Prometheus alone. NetworkPolicies do not apply to it, so no other pod needs a way in."""


def view_of(tenant: str) -> Rule:
    """Requests to the proxy of a tenant alone, through the API server, which authenticates callers. A query by GET is
    `get`."""
    return rule("", ["services/proxy"], ["get"], [service_of(tenant)])


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


def configuration(*, scrape: str, rules: str, interval: int) -> Body:
    """The configuration, which includes a file of each. `interval`: seconds between two evaluations of alerts, which
    else are a minute."""
    return {
        "global": {"evaluation_interval": f"{interval}s"},
        "scrape_config_files": [scrape],
        "rule_files": [rules],
    }


def _service(name: str, selector: Mapping[str, str]) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        # Pulumi would wait for endpoints, which the pods provide later.
        "metadata": {"name": name, "annotations": {"pulumi.com/skipAwait": "true"}},
        "spec": {"selector": dict(selector), "ports": [{"port": PORT, "targetPort": PORT}]},
    }


def _stateful_set(settings: PrometheusSettings, config_map: str, files: Mapping[str, str]) -> Body:
    given = settings.resources
    container = {
        "name": NAME,
        "image": settings.image,
        "args": [
            f"--config.file={_CONFIG}/{CONFIG_FILE}",
            f"--storage.tsdb.path={_DATA}",
            f"--storage.tsdb.retention.time={settings.retention_days}d",
            f"--storage.tsdb.retention.size={int(amount(settings.storage) * OF_STORAGE)}B",
        ],
        "ports": [{"name": "web", "containerPort": PORT}],
        "resources": {"requests": given.model_dump(), "limits": {"memory": given.memory}},
        "securityContext": restricted_sidecar(_USER),
        # After a crash it reads its log of the last hours before it is ready.
        "startupProbe": {**_probe("/-/ready"), "periodSeconds": 5, "failureThreshold": 180},
        "readinessProbe": _probe("/-/ready"),
        "livenessProbe": _probe("/-/healthy"),
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "data", "mountPath": _DATA},
        ],
    }
    pod = {
        **_pod(container),
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "volumes": [{"name": "config", "configMap": {"name": config_map}}],
    }
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
    named = {"storageClassName": settings.storage_class_name} if settings.storage_class_name else {}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": settings.storage}}, **named}
    more = {
        "serviceName": NAME,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        # A replaced StatefulSet keeps its data. They are deleted with the namespace.
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    return _workload("StatefulSet", NAME, SELECTOR, pod, {_DIGEST: digest}, more)


def _proxy(settings: PrometheusSettings, tenant: str, labels: Mapping[str, str]) -> Body:
    """Its program adds the tenant's namespace to each query, and refuses all other requests
    (github.com/prometheus-community/prom-label-proxy, injectproxy/routes.go)."""
    container = {
        "name": "proxy",
        "image": settings.proxy_image,
        "args": [
            f"-insecure-listen-address=:{PORT}",
            f"-upstream=http://{NAME}:{PORT}",
            "-label=namespace",
            f"-label-value={tenant}",
            "-enable-label-apis",
        ],
        "ports": [{"name": "web", "containerPort": PORT}],
        "resources": _PROXY_AMOUNTS,
        "securityContext": restricted_sidecar(_USER),
        "readinessProbe": _probe("/healthz"),
        "livenessProbe": _probe("/healthz"),
    }
    pod = {**_pod(container), "automountServiceAccountToken": False}
    return _workload("Deployment", service_of(tenant), labels, pod, {}, {})


def _probe(path: str) -> Body:
    return {"httpGet": {"path": path, "port": "web"}, "periodSeconds": 10, "timeoutSeconds": 5}


def _pod(container: Body) -> Body:
    security = {**RESTRICTED_POD, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}
    return {
        "enableServiceLinks": False,
        "securityContext": {**security, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [container],
    }


def _workload(
    kind: str, name: str, labels: Mapping[str, str], pod: Body, annotations: Mapping[str, Any], more: Body
) -> Body:
    metadata = {"labels": dict(labels), **({"annotations": dict(annotations)} if annotations else {})}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": dict(labels)},
        "template": {"metadata": metadata, "spec": pod},
        **more,
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
