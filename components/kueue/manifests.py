"""Adapts Kueue's kustomize tree to the settings. Pure functions.

These parts of the tree are omitted: the API for pending workloads, an aggregated API server (`visibility`); the roles
for people, who have those of the stack; rights and webhooks for job kinds without an enabled integration, which would
block Jobs, Deployments and StatefulSets of the whole cluster; and other clusters (MultiKueue).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from components.bodies import disruption_budget, first_container
from components.kueue.settings import NAMESPACE, KueueSettings, WaitForPodsReadySettings
from components.manifest_files import UnexpectedManifestError
from components.scheduler_manifest import CONFIGURATION, Certificate, staged
from core.body import Body
from core.versions import image_release, release_of
from core.yaml_writer import go_yaml
from kuberay.schedulers import KUEUE_QUEUE_LABEL

MANAGER = "kueue-controller-manager"
"""The tree's name of the Deployment and its ServiceAccount."""

MANAGER_LABELS = {"control-plane": "controller-manager"}
"""Labels of its pods."""

WEBHOOK_SERVICE = "kueue-webhook-service"
WEBHOOK_SECRET = "kueue-webhook-server-cert"  # noqa: S105 -- the name of a Secret

AUTHORITY = "kueue-ca"
"""A name that Kueue requires in the certificate of its authority (pkg/util/cert/cert.go)."""

CONFIGURATION_FILE = "controller_manager_config.yaml"
"""Name of the file that configures the manager, and its key in the ConfigMap."""

WEBHOOK_PORT = 9443
METRICS_PORT = 8443
HEALTH_PORT = 8081

CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 -- where the Secret is mounted
"""Folder with the certificate of the webhook, as in the Deployment of Kueue's tree."""

INTEGRATIONS = {f"ray.io/{kind}": kind for kind in ("raycluster", "rayjob", "rayservice")}
"""The enabled integrations, each with the suffix of its webhooks' names."""

_OF_PODS = frozenset({"kueue-leader-election", "kueue-manager-secrets"})
METRICS_READER = "kueue-metrics-reader"
"""The tree's ClusterRole of those whom Kueue shows its metrics."""

_OF_METRICS = frozenset({"kueue-metrics-auth", METRICS_READER, "kueue-controller-manager-metrics-service"})

_GROUPS_NOT_SERVED = frozenset(
    {
        *("batch", "jobset.x-k8s.io", "kubeflow.org", "leaderworkerset.x-k8s.io", "trainer.kubeflow.org"),
        *("workload.codeflare.dev", "sparkoperator.k8s.io", "autoscaling.x-k8s.io"),
    }
)
"""API groups that Kueue needs only for disabled integrations or for cluster-autoscaler's requests."""

_OWN_KINDS = frozenset({"clusterqueue", "cohort", "resourceflavor", "workload"})
"""The webhooks of Kueue's own kinds: their names after `m` or `v` and before `.kb.io`."""


def webhook_names(settings: KueueSettings) -> list[str]:
    """The names in the certificate: the webhook's, and that of Kueue's authority."""
    return [f"{WEBHOOK_SERVICE}.{settings.namespace}.svc", AUTHORITY]


def kueue_image(version: str) -> str:
    """The manager's image. The tree names one that is built from each commit."""
    return f"registry.k8s.io/kueue/kueue:v{version}"


def kueue_objects(tree: Sequence[Body], settings: KueueSettings, certificate: Certificate) -> tuple[list[Body], ...]:
    """The objects of Kueue, as `staged` has them. CRDs are not among them: all stages need these.

    `tree`: the objects of Kueue's `config/default`, as kustomize renders them; they are not changed.
    Raises UnexpectedManifestError if it is of another release.
    """
    check_release(tree, settings)
    first, access, last = staged(
        (each for each in tree if _is_needed(each, settings)),
        settings.namespace,
        NAMESPACE,
        lambda body: _deployment(body, settings, certificate),
        lambda body: _adapted(body, settings, certificate),
    )
    if settings.replicas > 1:
        last.append(disruption_budget(MANAGER, settings.namespace, MANAGER_LABELS))
    return first, access, last


def check_release(tree: Iterable[Body], settings: KueueSettings) -> None:
    """Raises UnexpectedManifestError if the tree is not Kueue's, or its image names another release.

    Kueue's tree has the tag `main` in every release; a release's manifest, its version.
    """
    images = [first_container(body)["image"] for body in tree if body["kind"] == "Deployment"]
    desired = release_of(settings.version)
    if not images or any("kueue" not in image or _release(image, desired) != desired for image in images):
        raise UnexpectedManifestError(
            f"the kustomize tree at {settings.tree} is not Kueue {desired}: it has "
            f"{', '.join(images) or 'no Deployment'}. Set scheduler.kueue.version to the tree's version, or "
            "scheduler.kueue.location to the tree of that version"
        )


def _release(image: str, default: str) -> str:
    version = image_release(image)
    return release_of(version) if version else default


def _is_needed(body: Body, settings: KueueSettings) -> bool:
    kind, name = body["kind"], body["metadata"]["name"]
    if name.removesuffix("-role").removesuffix("-rolebinding") in _OF_METRICS:
        return settings.metrics
    match kind:
        case "CustomResourceDefinition" | "Namespace" | "APIService":
            return False
        case "Role" | "RoleBinding":
            return name.removesuffix("-role").removesuffix("-rolebinding") in _OF_PODS
        case "ClusterRole" | "ClusterRoleBinding":
            return name in ("kueue-manager-role", "kueue-manager-rolebinding")
        case "Service":
            return bool(name == WEBHOOK_SERVICE)
    return True


def _adapted(body: Body, settings: KueueSettings, certificate: Certificate) -> Body:
    match body["kind"]:
        case "ClusterRole" if body["metadata"]["name"] == "kueue-manager-role":
            body["rules"] = [rule for rule in body["rules"] if not _GROUPS_NOT_SERVED & set(rule["apiGroups"])]
        case "ConfigMap":
            body["data"] = {CONFIGURATION_FILE: manager_configuration(settings)}
        case "Secret":
            body["type"] = "Opaque"
            pair = {"crt": certificate.certificate, "key": certificate.key}
            body["stringData"] = {f"{of}.{part}": text for of in ("ca", "tls") for part, text in pair.items()}
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            adapted = (_webhook(webhook, settings, certificate) for webhook in body["webhooks"])
            body["webhooks"] = [webhook for webhook in adapted if webhook]
    return body


def _webhook(webhook: Body, settings: KueueSettings, certificate: Certificate) -> Body | None:
    """A webhook of an enabled integration; None for others. It applies to objects of Ray's kinds that name a queue."""
    kind = webhook["name"].removesuffix(".kb.io")[1:]
    if kind not in {*INTEGRATIONS.values(), *_OWN_KINDS}:
        return None
    named: Mapping[str, Any] = {"matchExpressions": [{"key": KUEUE_QUEUE_LABEL, "operator": "Exists"}]}
    return {
        **webhook,
        "clientConfig": {**webhook["clientConfig"], "caBundle": certificate.bundle},
        "failurePolicy": settings.webhook.failure_policy,
        "timeoutSeconds": settings.webhook.timeout_seconds,
        **({} if kind in _OWN_KINDS else {"objectSelector": named}),
    }


def _deployment(body: Body, settings: KueueSettings, certificate: Certificate) -> Body:
    spec, pod, container = body["spec"], body["spec"]["template"]["spec"], first_container(body)
    spec["replicas"] = settings.replicas
    container["image"] = kueue_image(settings.version)
    # The tag of a release never changes.
    container["imagePullPolicy"] = "IfNotPresent"
    _without_visibility(pod, container)
    if settings.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if not settings.metrics:
        container["ports"] = [port for port in container["ports"] if port["name"] != "metrics"]
    if settings.resources:
        amounts = settings.resources.model_dump()
        container["resources"] = {"requests": amounts, "limits": dict(amounts)}
    metadata = spec["template"]["metadata"]
    digest = hashlib.sha256(manager_configuration(settings).encode()).hexdigest()
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        CONFIGURATION: digest,
        f"{CONFIGURATION}-certificate": certificate.digest,
    }
    return body


def _without_visibility(pod: Body, container: Body) -> None:
    for holder, key in ((pod, "volumes"), (container, "volumeMounts"), (container, "ports")):
        holder[key] = [each for each in holder[key] if each["name"] != "visibility"]


def manager_configuration(settings: KueueSettings) -> str:
    """The text of CONFIGURATION_FILE: Kueue's own configuration with the changes of the settings (kueue,
    apis/config/v1beta2)."""
    configuration: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": settings.namespace,
        "health": {"healthProbeBindAddress": f":{HEALTH_PORT}"},
        "metrics": {"bindAddress": f":{METRICS_PORT}" if settings.metrics else "0"},
        "webhook": {"port": WEBHOOK_PORT, "certDir": CERTIFICATES},
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "c1f6bfd2.kueue.x-k8s.io",
            "resourceNamespace": settings.namespace,
        },
        "controller": {
            "groupKindConcurrency": {
                f"{kind}.kueue.x-k8s.io": number
                for kind, number in (
                    *(("Workload", 10), ("LocalQueue", 5), ("ClusterQueue", 5)),
                    *(("Cohort", 1), ("ResourceFlavor", 1)),
                )
            }
        },
        "clientConnection": {"qps": 300, "burst": 500},
        # Kueue finds a valid certificate there and keeps it.
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": list(INTEGRATIONS)},
        # Visibility adds an aggregated API server. While it is down, namespaces cannot be deleted.
        "featureGates": {"VisibilityOnDemand": False},
    }
    if settings.fair_sharing:
        configuration["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    if settings.wait_for_pods_ready:
        configuration["waitForPodsReady"] = _wait_for_pods_ready(settings.wait_for_pods_ready)
    else:
        # Without the part Kueue has its own defaults (apis/config/v1beta2/defaults.go).
        configuration["featureGates"]["DisableWaitForPodsReady"] = True
    return go_yaml(configuration, sort_keys=False)


def _wait_for_pods_ready(settings: WaitForPodsReadySettings) -> dict[str, Any]:
    recovery, limit = settings.recovery_timeout_seconds, settings.backoff_limit_count
    return {
        "timeout": f"{settings.timeout_seconds}s",
        **({} if recovery is None else {"recoveryTimeout": f"{recovery}s"}),
        "blockAdmission": settings.block_admission,
        "requeuingStrategy": {"timestamp": "Eviction", **({} if limit is None else {"backoffLimitCount": limit})},
    }
