"""A VictoriaLogs of the stack's own, and a proxy for each tenant by which its pods write, and its people read, the
tenant's logs alone. Pure functions."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from components import workloads
from components.access.manifests import Grant, bodies
from components.access.personas import CLUSTER_ADMIN_INSIDE, Subject
from components.bodies import in_namespace, restricted_namespace
from components.logs.settings import LogsSettings, LogStoreSettings
from components.network.settings import Egress
from components.workloads import Viewers, probed
from core.body import Body
from core.yaml_writer import go_yaml

NAME = "victoria-logs"
"""Name of the StatefulSet and its Service."""

PORT = 9428

SELECTOR = {"app.kubernetes.io/component": NAME}
"""Label of the pod of VictoriaLogs."""

PROXIES = {"app.kubernetes.io/component": "logs-proxy"}
"""Label of the pods of all proxies."""

PROXY_PORT, _HEALTH_PORT = 8427, 8428

LABELS = {"app.kubernetes.io/name": "ray-platform-logs"}
"""Labels of all objects."""

_PREFIX = "logs-"

LONGEST_TENANT = workloads.LONGEST_NAME - len(_PREFIX)
"""Characters of a tenant's namespace."""

_CONFIG_MAP, _CONFIG_FILE, _FOLDER = "logs-proxy", "auth.yml", "/etc/vmauth"

_INSERT = "/insert/opentelemetry"
"""Below it VictoriaLogs receives OTLP (app/vlinsert/opentelemetry/opentelemetry.go)."""

QUERY = "/select/logsql/query"

_READ = (
    "facets|field_names|field_values|hits|query|query_time_range|stats_query|stats_query_range|stream_field_names"
    "|stream_field_values|stream_ids|streams"
)
"""Queries that end (VictoriaLogs: app/vlselect/main.go). `tail` does not, and would keep writers from the proxy."""

_ACCOUNT = ("AccountID", "ProjectID")
"""Headers with the 64 bits by which VictoriaLogs separates tenants (lib/logstorage/tenant_id.go)."""

_VARIABLES = {name: name.upper() for name in _ACCOUNT}


def service_of(tenant: str) -> str:
    """Name of the Service and the Deployment of the proxy of a tenant, by its namespace."""
    return f"{_PREFIX}{tenant}"


def sent_to(settings: LogsSettings, store: str, tenant: str) -> LogsSettings:
    """The settings of the collectors of a tenant, by its namespace. `store`: the namespace of the store."""
    proxy = Egress(namespace=store, pod_labels=workloads.labels_of(PROXIES, tenant), ports=(PROXY_PORT,))
    endpoint = f"http://{service_of(tenant)}.{store}.svc:{PROXY_PORT}{_INSERT}"
    return settings.model_copy(update={"endpoint": endpoint, "egress": (proxy,)})


def objects(
    settings: LogStoreSettings,
    namespace: str,
    viewers: Iterable[Viewers],
    admins: Sequence[Subject],
    policies: Iterable[Body],
) -> list[Body]:
    """All objects of the store, with the Namespace. `viewers`: who reads a tenant's logs; `admins`: who sees its pods;
    `policies`: the NetworkPolicies."""
    inside = [*policies, *_objects(settings, viewers, admins)]
    listed = [restricted_namespace(namespace), *(in_namespace(each, namespace) for each in inside)]
    return [_labelled(each) for each in listed]


def _labelled(body: Body) -> Body:
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "labels": {**LABELS, **metadata.get("labels", {})}}}


def _objects(settings: LogStoreSettings, viewers: Iterable[Viewers], admins: Sequence[Subject]) -> Iterator[Body]:
    files = {_CONFIG_FILE: go_yaml(_configuration(), sort_keys=False, width=1000)}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _CONFIG_MAP}, "data": files}
    yield workloads.service(NAME, PORT, SELECTOR)
    if admins:
        yield from bodies(Grant("cluster-admin", CLUSTER_ADMIN_INSIDE, admins)).values()
    yield _stateful_set(settings)
    for each in viewers:
        name, labels = service_of(each.namespace), workloads.labels_of(PROXIES, each.namespace)
        yield from workloads.shown("logs", name, PROXY_PORT, labels, each)
        yield _proxy(settings, each.namespace, labels, files)


def _configuration() -> Body:
    """What all proxies do: they set both headers, whatever the client has sent, and refuse all other paths, which they
    compare after resolving `..` (VictoriaMetrics: app/vmauth/main.go, target_url.go)."""
    route = {
        "src_paths": [f"{_INSERT}/v1/logs", f"/select/logsql/({_READ})"],
        "url_prefix": f"http://{NAME}:{PORT}",
        "headers": [f"{name}: %{{{variable}}}" for name, variable in _VARIABLES.items()],
    }
    return {"unauthorized_user": {"url_map": [route]}}


def account(tenant: str) -> dict[str, int]:
    """The headers' values for a tenant, by its namespace. They do not depend on other tenants, and 64 bits of a digest
    do not coincide by chance."""
    digest = hashlib.sha256(tenant.encode()).digest()
    return {name: int.from_bytes(digest[at * 4 :][:4], "big") for at, name in enumerate(_ACCOUNT)}


def _stateful_set(settings: LogStoreSettings) -> Body:
    arguments = [
        f"-httpListenAddr=:{PORT}",
        "-storageDataPath=/data",
        f"-retentionPeriod={settings.retention_days}d",
        f"-retention.maxDiskSpaceUsageBytes={workloads.most_bytes(settings.storage)}",
    ]
    container = workloads.program(
        NAME,
        settings.image,
        arguments,
        PORT,
        resources=settings.resources.without_cpu_limit,
        readinessProbe=probed("/health"),
        livenessProbe=probed("/health"),
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    pod = workloads.pod(container)
    return workloads.stateful_set(NAME, SELECTOR, pod, settings.storage, settings.storage_class_name)


def _proxy(settings: LogStoreSettings, tenant: str, labels: Mapping[str, str], files: Mapping[str, str]) -> Body:
    arguments = [
        f"-auth.config={_FOLDER}/{_CONFIG_FILE}",
        f"-httpListenAddr=:{PROXY_PORT}",
        # Its metrics, flags and profiles, which the other port would answer, too.
        f"-httpInternalListenAddr=:{_HEALTH_PORT}",
    ]
    container = workloads.proxy(
        settings.proxy_image,
        arguments,
        PROXY_PORT,
        probed("/health", _HEALTH_PORT),
        env=[{"name": _VARIABLES[name], "value": str(value)} for name, value in account(tenant).items()],
        volumeMounts=[{"name": "config", "mountPath": _FOLDER, "readOnly": True}],
    )
    volumes = [{"name": "config", "configMap": {"name": _CONFIG_MAP}}]
    pod = workloads.pod(container, volumes=volumes)
    return workloads.deployment(service_of(tenant), labels, pod, files)
