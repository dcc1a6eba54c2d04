"""What creating, changing or deleting an object other than a RayCluster means for running pods, and for the data of
storage. Data, by kind.

Roles and their bindings are not included: `rights` shows what each subject gains or loses through them, and a line for
the object would repeat that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.external_cluster.manifests import is_check
from components.job_template.manifests import SCHEDULE_LABEL, SIZE_LABEL, brings_code
from components.logs.manifests import CONFIG_MAP as LOG_CONFIG_MAP
from components.logs.store import LABELS as LOG_STORE_LABELS
from components.monitoring.manifests import LABELS as MONITORING_LABELS
from components.monitoring.prometheus import ALERTMANAGER_SELECTOR
from components.network.manifests import RAY_DEPLOYER
from components.payloads.run_history import NAME as RUN_HISTORY
from components.ray_service.api_key import LABELS as API_KEY_LABELS
from components.redis.connection import SCRIPTS as REDIS_CONFIG_MAP
from components.redis_gateway.manifests import CONFIG_MAP as GATEWAY_CONFIG_MAP
from components.storage.manifests import RETAINED
from kuberay.edits import Verdict
from stacks.commands.impact.effects import Effect, Fixed, Kind

_OF_CLAIMS = "kubernetes pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimUpdate"

_OF_CLAIM = frozenset({"accessModes", "storageClassName", "selector", "volumeName"})
_FIXED_CLAIM = "Kubernetes does not change these fields of a PersistentVolumeClaim"
_GROWS = "the volume grows if its StorageClass allows it; otherwise, or if the size is less, `pulumi up` fails"
_NOT_RETAINED = "copy the data elsewhere, set retain: false of the storage in a separate `up`, then make the edit"

_CLAIM = Kind(
    "a volume is created",
    _GROWS,
    "is deleted, and the data with its volume, unless the reclaim policy of its StorageClass is Retain",
    Verdict.DELETES,
    "copy the data elsewhere first",
    Fixed(
        _OF_CLAIM,
        "the data are deleted with their volume, unless the reclaim policy of its StorageClass is Retain, and an "
        "empty volume is created",
        _FIXED_CLAIM,
        "copy the data elsewhere first",
        _OF_CLAIMS,
    ),
)
"""A claim for which a volume is created."""

_RETAINED_CLAIM = Kind(
    "a volume is created, which Pulumi keeps",
    _GROWS,
    "`pulumi up` refuses to delete it with its data",
    Verdict.REFUSED,
    _NOT_RETAINED,
    Fixed(
        _OF_CLAIM,
        "`pulumi up` refuses to replace it with its data",
        _FIXED_CLAIM,
        _NOT_RETAINED,
        _OF_CLAIMS,
        Verdict.REFUSED,
    ),
)
"""A claim of a tenant's storage with `retain`."""

_BOUND_CLAIM = Kind(
    "makes an existing volume available to the pods of its namespace",
    "is available to pods at once",
    "the data stay where they are, and pods can no longer mount them; it is deleted once no pod mounts it any more",
    fixed=Fixed(
        _OF_CLAIM,
        "the claim is created again for another volume, once no pod mounts it; all data stay where they are",
        _FIXED_CLAIM,
        "apply the edit when nothing runs, or add another storage",
        _OF_CLAIMS,
    ),
)
"""A claim of an existing volume: a tenant's storage with `nfs` or `csi`."""

_VOLUME = Kind(
    "makes an existing volume available to its claim",
    "another object for the existing volume replaces it; the data stay",
    "the data stay where they are, and are no longer available here",
)
"""An existing volume, of a tenant's storage with `nfs` or `csi`."""


def _claim_of(body: Mapping[str, Any]) -> Kind:
    if RETAINED in (body["metadata"].get("annotations") or {}):
        return _RETAINED_CLAIM
    return _BOUND_CLAIM if body["spec"].get("volumeName") else _CLAIM


AS_RIGHTS = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
"""Kinds that `rights` shows."""


_OF_A_STATEFUL_SET = frozenset({"serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"})
"""Fields of a StatefulSet that Kubernetes does not change."""

_VALIDATION = "kubernetes pkg/apis/apps/validation/validation.go: ValidateStatefulSetUpdate"

KINDS = {
    "RayJob": Kind(
        "its job starts, on a cluster of its own or on the selected one",
        "nothing: KubeRay applies no change to a RayJob",
        "its job stops if it runs, and its cluster is deleted",
        Verdict.DELETES,
        "let the job end first",
    ),
    "RayService": Kind(
        "its RayCluster starts, and serves once its applications run",
        "KubeRay submits another Serve config, and replaces the RayCluster if that changes",
        "nothing serves any more, and its RayCluster is deleted",
        Verdict.DELETES,
        "move its clients to another service first",
    ),
    "RayCronJob": Kind(
        "users of the tenant can run the job template",
        "applies to runs that are created from now on; existing ones stay as they are",
        "the job template can no longer be run; existing runs stay",
    ),
    "Job": Kind(
        "its job starts on the external cluster",
        "nothing: no change is applied to a job that exists",
        "its job on the external cluster stops if it runs",
        Verdict.DELETES,
        "let the job end first",
    ),
    "Namespace": Kind(
        "is created, with all its objects",
        "running pods stay; with a stricter Pod Security level, new pods that violate it are refused",
        "is deleted with everything in it: RayClusters, their pods, Secrets, tokens, volumes",
        Verdict.DELETES,
        "end what runs there first",
    ),
    "ResourceQuota": Kind(
        "limits the namespace from now on: what exists stays, and nothing new starts beyond the limit",
        "applies from now on: what exists stays, and nothing new starts beyond the limit",
        "nothing limits the namespace any more",
    ),
    "LimitRange": Kind(
        "applies to new pods",
        "applies to new pods",
        "new pods have no default resources",
    ),
    "NetworkPolicy": Kind(
        "applies at once, also to running pods: connections that no policy allows are cut",
        "applies at once, also to running pods: connections that it no longer allows are cut",
        "connections that no other policy allows are cut at once",
    ),
    "Ingress": Kind(
        "the dashboard and the jobs API can be reached under its host, by everybody whom the ingress controller admits",
        "applies as soon as the ingress controller has read it; what runs continues",
        "the dashboard and the jobs API cannot be reached under its host any more; what runs continues",
    ),
    "ServiceAccount": Kind(
        "is available to new pods",
        "applies to new pods",
        "running pods with this account continue, but the API server no longer authenticates them; no pod can be "
        "created with it",
    ),
    "PriorityClass": Kind(
        "is available to new pods",
        "applies to new pods",
        "running pods keep their priority; no pod can be created with it",
    ),
    "PodDisruptionBudget": Kind(
        "draining nodes no longer evicts the head, and evicts at most one node of Redis at a time",
        "applies at once",
        "the head may be evicted when its node is drained; then what runs on its RayCluster ends",
    ),
    "Certificate": Kind(
        "cert-manager creates a certificate; pods that need it wait for it",
        "cert-manager creates another certificate; running pods keep the one that they have read",
        "cert-manager no longer renews the certificate; running pods keep the one that they have read",
    ),
    "ValidatingAdmissionPolicy": Kind(
        "the API server validates new and changed objects against it; what runs stays",
        "applies to new and changed objects within seconds; what runs stays",
        "the API server no longer validates objects against it",
    ),
    "ValidatingAdmissionPolicyBinding": Kind(
        "its policy is enforced in its namespaces within seconds; what runs stays",
        "applies to new and changed objects within seconds; what runs stays, and may be changed and deleted",
        "its policy is no longer enforced",
    ),
    "Queue": Kind(
        "RayClusters can wait in it",
        "applies to waiting RayClusters; running ones stay, unless other queues may reclaim what exceeds its share",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "move its RayClusters to another queue in a separate `up`, then remove the queue",
    ),
    "ClusterQueue": Kind(
        "RayClusters can wait in it",
        "applies to waiting RayClusters; running ones stay, unless other queues may reclaim what they have borrowed",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "a RayCluster that changes its queue is recreated: do it when nothing runs, then remove the queue",
    ),
    "LocalQueue": Kind(
        "RayClusters of the namespace can wait in the queue",
        "applies to waiting RayClusters; running ones stay",
        "the queue no longer admits RayClusters of the namespace; running ones stay",
    ),
    "Cohort": Kind(
        "its queues may borrow from each other",
        "applies to waiting RayClusters; running ones stay, unless other queues may reclaim what they have borrowed",
        "its queues no longer borrow from each other; running RayClusters stay, unless their share is reclaimed",
    ),
    "ResourceFlavor": Kind(
        "queues may have quotas of these nodes",
        "applies to RayClusters that are admitted from now on",
        "queues have no quota of these nodes any more; what runs stays",
    ),
    "StatefulSet": Kind(
        "Redis is created",
        "Redis' pods are recreated one after the other, and another one becomes the master: RayClusters with fault "
        "tolerance lose their connection for seconds",
        "Redis is deleted: RayClusters that store their tables in it fail within a minute",
        Verdict.DELETES,
        "first remove the RayClusters with fault tolerance in a separate `up`",
        Fixed(
            _OF_A_STATEFUL_SET,
            "all of Redis' pods end at once, and are recreated with their volumes; RayClusters with fault tolerance "
            "stop meanwhile, and fail if this takes more than a minute",
            "Kubernetes does not change these fields of a StatefulSet",
            "apply the edit when nothing runs",
            _VALIDATION,
        ),
    ),
    "Deployment": Kind(
        "its pod suspends the tenant's RayClusters with idleTerminationOptions once nobody uses them",
        "its pod is recreated; RayClusters are not suspended meanwhile",
        "no RayCluster of the tenant is suspended any more when nobody uses it; a suspended one stays suspended",
    ),
    "Service": Kind(
        "Redis' nodes can be reached by its name",
        "applies at once; existing connections stay",
        "Redis' nodes can no longer be reached by its name",
    ),
    "ConfigMap": Kind(
        "is available to new pods",
        "applies to new pods that mount it",
        "new pods that mount it do not start",
    ),
    "CronJob": Kind(
        "runs on schedule from now on; a suspended one runs only on request. Redis continues meanwhile",
        "applies from its next run on; what runs continues",
        "no longer runs; existing copies stay as long as their volume",
    ),
    "PersistentVolumeClaim": _CLAIM,
    "PodMonitor": Kind(
        "no pod changes; Prometheus scrapes these pods",
        "no pod changes; Prometheus scrapes as configured within a minute",
        "no pod changes; Prometheus no longer scrapes these pods",
    ),
    "ServiceMonitor": Kind(
        "no pod changes; Prometheus scrapes the Service",
        "no pod changes; Prometheus scrapes as configured within a minute",
        "no pod changes; Prometheus no longer scrapes the Service",
    ),
    "PrometheusRule": Kind(
        "no pod changes; Prometheus records and alerts",
        "no pod changes; Prometheus records and alerts as configured within a minute",
        "no pod changes; Prometheus no longer records and alerts",
    ),
    "PersistentVolume": _VOLUME,
}

WIDENED = "applies at once, also to running pods: it allows more connections, and cuts none"
"""An edit of a NetworkPolicy that only allows more."""

SCHEDULE = Kind(
    "the job template is run on schedule from now on",
    "applies from its next time on; what runs continues",
    "the job template is no longer run on schedule; existing runs stay",
)
"""A CronJob that starts runs of a job template."""

MONITORING_FILES = Kind(
    "no pod of Ray changes; Prometheus or Grafana can read its files",
    "no pod of Ray changes; Prometheus or Grafana works as configured once it has read the files again",
    "no pod of Ray changes; Prometheus or Grafana no longer has its files",
)
"""A ConfigMap of monitoring."""

PROMETHEUS = {
    "Namespace": replace(
        KINDS["Namespace"],
        gone="is deleted with Prometheus and all metrics",
        safer="keep what you need of them elsewhere first",
    ),
    "ConfigMap": MONITORING_FILES,
    "StatefulSet": Kind(
        "Prometheus is created, and collects metrics from now on",
        "Prometheus' pod is recreated: metrics have a gap of a minute or so",
        "Prometheus is deleted; its volume stays until its namespace is deleted",
        fixed=Fixed(
            _OF_A_STATEFUL_SET,
            "Prometheus' pod is recreated, and keeps its metrics and its volume, whose size does not change",
            "Kubernetes does not change these fields of a StatefulSet",
            "to enlarge the volume, also enlarge its claim data-prometheus-0 (docs/monitoring.md)",
            _VALIDATION,
        ),
    ),
    "Deployment": Kind(
        "a tenant's people can query its metrics",
        "its pod is recreated: a tenant's people cannot query its metrics for seconds",
        "a tenant's people can no longer query its metrics",
    ),
    "Service": Kind(
        "Prometheus, or a tenant's proxy to it, can be reached by its name",
        "applies at once; existing connections stay",
        "Prometheus, or a tenant's proxy to it, can no longer be reached by its name",
    ),
}
"""What monitoring has, also with a Prometheus of the stack's own."""

ALERTMANAGER = {
    "ConfigMap": Kind(
        "no pod of Ray changes; Alertmanager can read it",
        "no pod of Ray changes; Alertmanager is recreated with it",
        "Alertmanager does not start without it",
    ),
    "StatefulSet": Kind(
        "Alertmanager is created, and sends alerts to its receivers once their Secret exists",
        "Alertmanager's pod is recreated: alerts are sent a minute or so later",
        "Alertmanager is deleted: no alert is sent; its volume with silences stays until its namespace is deleted",
        fixed=Fixed(
            _OF_A_STATEFUL_SET,
            "Alertmanager's pod is recreated, and keeps its silences and its volume",
            "Kubernetes does not change these fields of a StatefulSet",
            "leave prometheus.storageClassName as it is: the volume exists already",
            _VALIDATION,
        ),
    ),
    "Service": Kind(
        "Prometheus can send alerts to Alertmanager",
        "applies at once; existing connections stay",
        "Prometheus can no longer send alerts to Alertmanager",
    ),
}
"""What an Alertmanager of the stack's own has."""

LOG_STORE = {
    "Namespace": replace(
        KINDS["Namespace"],
        gone="is deleted with the log store and all stored logs",
        safer="keep what you need of them elsewhere first",
    ),
    "ConfigMap": Kind(
        "no pod of Ray changes; the tenants' proxies to the log store can read it",
        "no pod of Ray changes; the tenants' proxies to the log store are recreated with it",
        "the tenants' proxies to the log store do not start without it",
    ),
    "StatefulSet": Kind(
        "the log store is created, and has logs from now on",
        "the log store's pod is recreated: new logs wait in the pods of Ray for seconds",
        "the log store is deleted; its volume stays until its namespace is deleted",
        fixed=Fixed(
            _OF_A_STATEFUL_SET,
            "the log store's pod is recreated, and keeps its logs and its volume, whose size does not change",
            "Kubernetes does not change these fields of a StatefulSet",
            "to enlarge the volume, also enlarge its claim data-victoria-logs-0 (docs/logs.md)",
            _VALIDATION,
        ),
    ),
    "Deployment": Kind(
        "a tenant's pods can write logs to the log store, and its people read them",
        "its pod is recreated: a tenant's logs wait in its pods, and its people cannot read them, for seconds",
        "a tenant's pods can no longer write logs to the log store, nor its people read them",
    ),
    "Service": Kind(
        "the log store, or a tenant's proxy to it, can be reached by its name",
        "applies at once; existing connections stay",
        "the log store, or a tenant's proxy to it, can no longer be reached by its name",
    ),
}
"""What a log store of the stack's own has."""

REDIS_SCRIPTS = Kind(
    "is available to new pods of Redis",
    "applies to new pods of Redis",
    "new pods of Redis do not start without it",
)
"""The ConfigMap with the scripts of Redis' pods."""

API_KEY_PROGRAM = Kind(
    "new pods of the service read the program that asks for API keys",
    "applies to new pods of the service",
    "new pods of the service do not ask for API keys",
)
"""The ConfigMap with the program before a service."""

LOG_COLLECTORS = Kind(
    "is available to new pods of Ray; running ones have no log collector",
    "applies to the log collectors of new pods; running ones continue unchanged",
    "running log collectors continue; pods that have one do not start again without it",
)
"""The ConfigMap of log collectors."""

REDIS_GATEWAY = Kind(
    "is available to new heads; running ones have no gateway",
    "applies to the gateways of new heads; running ones continue unchanged",
    "running gateways continue; heads that have one do not start again without it",
)
"""The ConfigMap with the program of the gateways beside heads."""

CONNECTION_CHECK = Kind(
    "a pod connects to the external cluster once",
    "a pod connects to the external cluster again",
    "nothing of the external cluster changes; its name is no longer known here",
)
"""The Job that checks the connection to an external cluster."""

HISTORY = Kind(
    "the pod of the run history keeps records of the tenant's jobs from now on",
    "the pod of the run history is recreated; what happens meanwhile is recorded afterwards, as far as it still exists",
    "no records are kept any more; existing ones stay on their storage",
)
"""The StatefulSet and the ConfigMap of a run history."""


ANOTHER_AUTHORITY = Effect(
    Verdict.STRANDS,
    "cert-manager creates another authority; running pods keep the stack's, and workers that start from now on cannot "
    "join them, so the cluster no longer scales, and a lost worker is not replaced",
    "the stack deletes its Secret with the authority, and cert-manager creates one of the same name with another key",
    "remove tls and run `up`, then add tls with its issuer, when nothing runs; or add a cluster with another name, and "
    "remove this one when its work has ended",
    "components/tls/authority.py: ClusterAuthority",
)
"""A Certificate in place of an authority that the stack has created."""


LOCAL_CODE = Kind(
    "users of the job template can run any code, with the account, Secrets and storage of its pods",
    "applies to runs that are created from now on, which bring any code of the template's users; existing ones stay",
    "the job template can no longer be run; existing runs stay",
)
"""A job template whose runs bring their code."""

SIZE = Kind(
    "users of the job template can run it in this size",
    "applies to runs of this size that are created from now on; existing ones stay as they are",
    "the job template can no longer be run in this size; existing runs stay",
)
"""A size of a job template."""

DEPLOYED_PODS = Kind(
    "opens its ports between RayClusters that run as the tenant's rayDeployer and pods with the label "
    "ray-platform/created-by; from now on the API server refuses pods and Deployments of that account without it",
    "applies at once, also to running pods that code on Ray has created: connections that it no longer allows are cut",
    "nothing reaches the pods that code on Ray has created any more; the API server no longer demands their label",
)
"""The NetworkPolicy of what the account of a tenant's rayDeployer creates."""


def kind_of(body: Mapping[str, Any]) -> Kind:
    if body["kind"] == "PersistentVolumeClaim":
        return _claim_of(body)
    if body["kind"] in ("StatefulSet", "ConfigMap") and body["metadata"]["name"] == RUN_HISTORY:
        return HISTORY
    if SCHEDULE_LABEL in (body["metadata"].get("labels") or {}):
        return SCHEDULE
    if body["kind"] == "NetworkPolicy" and body["metadata"]["name"] == RAY_DEPLOYER:
        return DEPLOYED_PODS
    if body["kind"] == "RayCronJob" and SIZE_LABEL in (body["metadata"].get("labels") or {}):
        return SIZE
    if body["kind"] == "RayCronJob" and brings_code(body):
        return LOCAL_CODE
    if body["kind"] == "Job" and is_check(body):
        return CONNECTION_CHECK
    if body["kind"] == "ConfigMap" and body["metadata"]["name"] == REDIS_CONFIG_MAP:
        return REDIS_SCRIPTS
    if body["kind"] == "ConfigMap" and body["metadata"].get("labels") == API_KEY_LABELS:
        return API_KEY_PROGRAM
    if body["kind"] == "ConfigMap" and body["metadata"]["name"] == LOG_CONFIG_MAP:
        return LOG_COLLECTORS
    if body["kind"] == "ConfigMap" and body["metadata"]["name"] == GATEWAY_CONFIG_MAP:
        return REDIS_GATEWAY
    installed = (
        ({**MONITORING_LABELS, **ALERTMANAGER_SELECTOR}, ALERTMANAGER),
        (MONITORING_LABELS, PROMETHEUS),
        (LOG_STORE_LABELS, LOG_STORE),
    )
    for labels, kinds in installed:
        if body["kind"] in kinds and labels.items() <= (body["metadata"].get("labels") or {}).items():
            return kinds[body["kind"]]
    return KINDS[body["kind"]]
