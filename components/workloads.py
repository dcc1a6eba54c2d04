"""Programs with data of all tenants that the stack installs, each with a proxy for each tenant that shows the tenant's
alone. Pure functions."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from components.access.manifests import Grant, bodies
from components.access.personas import Rule, Subject, rule
from components.bodies import restricted_sidecar
from core.body import Body
from core.pods import RESTRICTED_POD
from core.quantities import amount

LONGEST_NAME = 63
"""Characters of the name of a Service."""

USER = 65534
"""User and group `nobody`."""

_OF_STORAGE = Decimal("0.8")
"""Share of the volume that data fill: the oldest are deleted before the volume is full (prometheus.io, Storage:
operational aspects)."""

_DIGEST = "ray-platform/config"
"""Annotation of a pod: it is recreated when its configuration changes."""

_PROXY_AMOUNTS: Body = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


@dataclass(frozen=True)
class Viewers:
    """Who sees the data of a tenant."""

    namespace: str
    """The tenant's."""

    subjects: Sequence[Subject]


def most_bytes(storage: str) -> int:
    """Bytes of data on a volume of this size, at most."""
    return int(amount(storage) * _OF_STORAGE)


def service(name: str, port: int, selector: Mapping[str, str]) -> Body:
    """A Service of one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        # Pulumi would wait for endpoints, which the pods provide later.
        "metadata": {"name": name, "annotations": {"pulumi.com/skipAwait": "true"}},
        "spec": {"selector": dict(selector), "ports": [{"port": port, "targetPort": port}]},
    }


def shown(what: str, name: str, port: int, labels: Mapping[str, str], viewers: Viewers) -> Iterator[Body]:
    """The Service of a tenant's proxy, and who may send requests to it. `what`: of the name of the Role."""
    yield service(name, port, labels)
    if viewers.subjects:
        yield from bodies(Grant(f"{what}:{viewers.namespace}", [view_of(name)], viewers.subjects)).values()


def view_of(proxy: str) -> Rule:
    """Requests to this Service alone, through the API server, which authenticates callers. A query by GET is `get`."""
    return rule("", ["services/proxy"], ["get"], [proxy])


def path_of(namespace: str, proxy: str) -> str:
    """The path in the API by which a proxy's viewers ask it."""
    return f"/api/v1/namespaces/{namespace}/services/{proxy}/proxy"


def labels_of(proxies: Mapping[str, str], tenant: str) -> dict[str, str]:
    """The labels of the pods of a tenant's proxy. `proxies`: of all; `tenant`: its namespace."""
    return {**proxies, "app.kubernetes.io/instance": tenant}


def program(name: str, image: str, arguments: Sequence[str], port: int, **further: Any) -> Body:
    """A container that needs no right. `port`: named `web`; `further`: fields of the container."""
    return {
        "name": name,
        "image": image,
        "args": list(arguments),
        "ports": [{"name": "web", "containerPort": port}],
        "securityContext": restricted_sidecar(USER),
        **further,
    }


def proxy(image: str, arguments: Sequence[str], port: int, probe: Body, **further: Any) -> Body:
    """The container of a tenant's proxy."""
    probes = {"readinessProbe": probe, "livenessProbe": probe}
    return program("proxy", image, arguments, port, resources=_PROXY_AMOUNTS, **probes, **further)


def probed(path: str, port: str | int = "web") -> Body:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": 10, "timeoutSeconds": 5}


def pod(container: Body, **further: Any) -> Body:
    """A pod of one container, whose volumes its user may write. It has no token unless `further` mounts one."""
    security = {**RESTRICTED_POD, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER}
    return {
        "enableServiceLinks": False,
        "securityContext": {**security, "fsGroupChangePolicy": "OnRootMismatch"},
        "automountServiceAccountToken": False,
        "containers": [container],
        **further,
    }


def deployment(name: str, labels: Mapping[str, str], made: Body, files: Mapping[str, str] | None = None) -> Body:
    """A Deployment of one pod. `files`: its configuration."""
    return _workload("Deployment", name, labels, made, files, {})


def stateful_set(
    name: str,
    labels: Mapping[str, str],
    made: Body,
    storage: str,
    storage_class: str | None,
    files: Mapping[str, str] | None = None,
) -> Body:
    """A StatefulSet of one pod with a volume `data`. `files`: its configuration."""
    named = {"storageClassName": storage_class} if storage_class else {}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **named}
    more = {
        "serviceName": name,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        # A replaced StatefulSet keeps its data. They are deleted with the namespace.
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    return _workload("StatefulSet", name, labels, made, files, more)


def _workload(
    kind: str, name: str, labels: Mapping[str, str], made: Body, files: Mapping[str, str] | None, more: Body
) -> Body:
    metadata: Body = {"labels": dict(labels)}
    if files is not None:
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
        metadata["annotations"] = {_DIGEST: digest}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": dict(labels)},
        "template": {"metadata": metadata, "spec": made},
        **more,
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
