"""The StatefulSet that keeps a tenant's run history, its program, its account, and who may read. Pure functions."""

import hashlib
import json
from collections.abc import Sequence

from components import payloads
from components.access.manifests import PREFIX, account, role, role_binding, service_account, subject
from components.access.personas import RAY_GROUP, Rule, Subject, rule
from components.external_cluster.settings import ExternalClusterSettings
from components.logs.collector import REDACTIONS
from components.payloads.run_history import NAME, PORT
from components.ray_cluster.pods import PodIdentity, container, template, with_image_alone
from components.ray_cluster.settings import RayClusterSettings
from components.run_history.settings import RunHistorySettings
from core.body import Body
from core.quantities import amount
from core.secrets import ABOUT_A_SECRET, SECRET

LABELS = {"app.kubernetes.io/name": NAME}
"""Labels of the pod, and of the objects that are only for it."""

POD = f"{NAME}-0"
"""Name of the pod, by which RBAC allows port-forwards to it alone."""

_PACKAGE = "program"
"""Name of the payload in the pod."""

_PLACE, _RECORDS = "/opt/ray-run-history", "/history"

_DIGEST = "ray-platform/program"
"""Annotation of the pod: it is recreated when its program changes."""

_GROUP = 100
"""Group of the user of Ray's images (docs/pods.md), to whom Kubernetes gives a volume of a disk."""

_ANSWERS = f"from urllib.request import urlopen; urlopen('http://127.0.0.1:{PORT}/runs', timeout=9)"

_PROBE: Body = {"exec": {"command": ["python", "-c", _ANSWERS]}, "timeoutSeconds": 10}
"""Inside the pod: the program listens on loopback alone, where the kubelet cannot ask it. Each takes a tenth of a
second of CPU, so a running program is asked rarely."""

_AMOUNTS: Body = {
    "limits": {"cpu": "500m", "memory": "384Mi"},
    "requests": {"cpu": "20m", "memory": "96Mi"},
}


def objects(
    settings: RunHistorySettings,
    namespace: str,
    place: RayClusterSettings,
    claim: str,
    readers: Sequence[Subject],
    external: Sequence[ExternalClusterSettings],
    others: Sequence[str],
) -> dict[str, Body]:
    """The objects of a namespace, by part. `place`: the RayCluster whose image and pull secrets the pod has.
    `claim`: the PersistentVolumeClaim. `readers`: who may read the records. `external`: the tenant's external
    clusters. `others`: other tenants' namespaces."""
    program, reads = f"{PREFIX}run-history", f"{PREFIX}run-history-readers"
    made = {
        "service-account": service_account(NAME),
        "role": role(program, _rights(settings)),
        "role-binding": role_binding(program, program, [account(NAME, namespace)]),
        "program": _program(),
        "stateful-set": _stateful_set(settings, place, claim, _argument(settings, namespace, external, others)),
    }
    if readers:
        made["readers-role"] = role(reads, READER)
        made["readers-role-binding"] = role_binding(reads, reads, [subject(each) for each in readers])
    return made


READER = (rule("", ["pods/portforward"], ["get", "create"], [POD]),)
"""Port-forward to the program's pod alone. The client uses WebSocket, and asks for `get`; kubectl may ask for
`create`."""


def _rights(settings: RunHistorySettings) -> list[Rule]:
    """Reads, in its namespace alone."""
    of_heads = [rule("", ["secrets"], ["get"]), rule(RAY_GROUP, ["rayclusters"], ["get", "list"])]
    return [
        rule(RAY_GROUP, ["rayjobs"], ["list"]),
        rule("", ["pods", "events"], ["list"]),
        rule("", ["pods/log"], ["get"]),
        *(of_heads if settings.read_heads else []),
    ]


def _program() -> Body:
    metadata = {"name": NAME, "labels": dict(LABELS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": payloads.files("run_history")}


def _stateful_set(settings: RunHistorySettings, place: RayClusterSettings, claim: str, argument: Body) -> Body:
    plain = with_image_alone(place, tls=None)
    program = container(plain, NAME, settings.image or place.head.image, {}, {})
    program |= {
        "command": ["python", "-m", _PACKAGE, json.dumps(argument)],
        "workingDir": _PLACE,
        "resources": _AMOUNTS,
        "securityContext": {**program.get("securityContext", {}), "readOnlyRootFilesystem": True},
        "startupProbe": {**_PROBE, "periodSeconds": 2, "failureThreshold": 30},
        "readinessProbe": {**_PROBE, "periodSeconds": 60},
        "volumeMounts": [
            {"name": "program", "mountPath": f"{_PLACE}/{_PACKAGE}", "readOnly": True},
            {"name": "records", "mountPath": _RECORDS},
        ],
    }
    pod = template(plain, program, PodIdentity(NAME), None)["spec"]
    volumes = [
        {"name": "program", "configMap": {"name": NAME}},
        {"name": "records", "persistentVolumeClaim": {"claimName": claim}},
    ]
    secured = {**pod.get("securityContext", {}), "fsGroup": _GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    pod |= {"volumes": volumes, "securityContext": secured, "restartPolicy": "Always", "enableServiceLinks": False}
    digest = hashlib.sha256(json.dumps(payloads.files("run_history")).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "replicas": 1,
            # Its pod needs no name in DNS, so there is no such Service.
            "serviceName": NAME,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": dict(LABELS)},
            "template": {"metadata": {"labels": dict(LABELS), "annotations": {_DIGEST: digest}}, "spec": pod},
        },
    }


def redaction() -> Body:
    """The fields of program/redaction.py: Redaction. What the log collector masks is masked in records, too."""
    masks = [(each.pattern, each.replacement_of_python) for each in REDACTIONS]
    return {"secret": SECRET.pattern, "about": ABOUT_A_SECRET.pattern, "masks": masks}


def _argument(
    settings: RunHistorySettings, namespace: str, external: Sequence[ExternalClusterSettings], others: Sequence[str]
) -> Body:
    """The fields of program/configured.py: Configured."""
    asked = [
        {
            "name": each.name,
            "address": each.dashboard_address,
            "token": each.token_secret.model_dump() if each.token_secret else None,
            "authority": each.ca_secret.model_dump() if each.ca_secret else None,
            "others": [f"{other}-" for other in others if other.startswith(f"{namespace}-")],
        }
        for each in external
    ]
    return {
        "namespace": namespace,
        "folder": _RECORDS,
        "retention_days": settings.retention_days,
        "log_bytes": int(amount(settings.log_size)),
        "read_heads": settings.read_heads,
        "redaction": redaction(),
        **({"external": asked} if settings.read_heads and asked else {}),
    }
