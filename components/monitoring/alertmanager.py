"""An Alertmanager of the stack's own, which sends the alerts of its Prometheus to receivers. Pure functions."""

from collections.abc import Iterator, Mapping

from components import workloads
from components.monitoring.prometheus import ALERTMANAGER as NAME
from components.monitoring.prometheus import ALERTMANAGER_PORT as PORT
from components.monitoring.prometheus import ALERTMANAGER_SELECTOR as SELECTOR
from components.monitoring.settings import AlertmanagerSettings, ReceiverSettings
from components.workloads import probed
from core.body import Body
from core.yaml_writer import go_yaml

POD = f"{NAME}-0"

CONFIG_FILE = "alertmanager.yml"

SECRETS = "/etc/alertmanager/receivers"
"""Folder with a file for each receiver: its URL or key."""

_CONFIG, _DATA = "/etc/alertmanager/config", "/alertmanager"

_STORAGE = "1Gi"
"""Size of the volume, which has silences and what has been sent."""

_AMOUNTS: Body = {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}

_NOBODY = "no receiver"
"""The receiver of alerts that no other gets: Alertmanager requires one. No name of a receiver has a blank."""

_SUMMARIES = "{{ range .Alerts }}{{ .Annotations.summary }}\n{{ end }}"
_RUNBOOK = "{{ .CommonAnnotations.runbook_url }}"

_KINDS: Mapping[str, tuple[str, str, Body]] = {
    "pagerduty": (
        "pagerduty_configs",
        "routing_key_file",
        {"severity": "{{ .CommonLabels.severity }}", "client": "ray-platform", "client_url": _RUNBOOK},
    ),
    "slack": (
        "slack_configs",
        "api_url_file",
        {"send_resolved": True, "text": _SUMMARIES, "title_link": _RUNBOOK},
    ),
    "webhook": ("webhook_configs", "url_file", {}),
}
"""By type: the list of a receiver, its field with a file, and further fields (prometheus.io, Alertmanager:
configuration). By default Slack shows no annotations, and both link to Alertmanager, which no browser reaches."""


def configuration(settings: AlertmanagerSettings, tenants: Mapping[str, str]) -> Body:
    """The configuration of Alertmanager. `tenants`: their namespaces, by name."""
    return {
        "route": {
            "receiver": _NOBODY,
            "group_by": ["alertname", "namespace"],
            "routes": [_route(each, tenants) for each in settings.receivers],
        },
        "receivers": [{"name": _NOBODY}, *map(_receiver, settings.receivers)],
    }


def _route(receiver: ReceiverSettings, tenants: Mapping[str, str]) -> Body:
    namespaces = [namespace for tenant, namespace in tenants.items() if tenant in receiver.tenants]
    values = {"severity": receiver.severities, "namespace": namespaces}
    matchers = [f'{label}=~"{"|".join(each)}"' for label, each in values.items() if each]
    return {"receiver": receiver.name, **({"matchers": matchers} if matchers else {}), "continue": True}


def _receiver(receiver: ReceiverSettings) -> Body:
    kind, file, further = _KINDS[receiver.type]
    return {"name": receiver.name, kind: [{file: f"{SECRETS}/{receiver.name}", **further}]}


def objects(settings: AlertmanagerSettings, tenants: Mapping[str, str], storage_class: str | None) -> Iterator[Body]:
    """Its objects, without the NetworkPolicies. `tenants`: their namespaces, by name."""
    files = {CONFIG_FILE: go_yaml(configuration(settings, tenants), sort_keys=False, width=1000)}
    made: tuple[Body, ...] = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": files},
        workloads.service(NAME, PORT, SELECTOR),
        _stateful_set(settings, storage_class, files),
    )
    for each in made:
        yield {**each, "metadata": {**each["metadata"], "labels": SELECTOR}}


def _stateful_set(settings: AlertmanagerSettings, storage_class: str | None, files: Mapping[str, str]) -> Body:
    arguments = [
        f"--config.file={_CONFIG}/{CONFIG_FILE}",
        f"--storage.path={_DATA}",
        # A single replica needs no port for peers.
        "--cluster.listen-address=",
    ]
    container = workloads.program(
        NAME,
        settings.image,
        arguments,
        PORT,
        resources=_AMOUNTS,
        readinessProbe=probed("/-/ready"),
        livenessProbe=probed("/-/healthy"),
        volumeMounts=[
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "receivers", "mountPath": SECRETS, "readOnly": True},
            {"name": "data", "mountPath": _DATA},
        ],
    )
    volumes = [
        {"name": "config", "configMap": {"name": NAME}},
        {"name": "receivers", "secret": {"secretName": settings.secret}},
    ]
    pod = workloads.pod(container, volumes=volumes)
    body = workloads.stateful_set(NAME, SELECTOR, pod, _STORAGE, storage_class, files)
    # The Secret can only be created once the namespace exists, and `up` must not wait for it.
    return {**body, "metadata": {**body["metadata"], "annotations": {"pulumi.com/skipAwait": "true"}}}
