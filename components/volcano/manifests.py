"""Adapts Volcano's manifest to the settings. Pure functions.

These parts of the manifest are omitted: the Job that creates the webhook's certificate, with its account, which may
read and write all Secrets of the namespace (the stack creates the certificate); the unused right of the webhook to
request signed certificates; and the namespace of Volcano's own Prometheus.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from components.bodies import disruption_budget, first_container
from components.manifest_files import UnexpectedManifestError
from components.operator.settings import ComputeResources
from components.scheduler_manifest import CONFIGURATION, Certificate, staged
from components.volcano.settings import (
    CONTROLLERS_REQUESTS,
    NAMESPACE,
    SCHEDULER_REQUESTS,
    WEBHOOK_REQUESTS,
    BinpackSettings,
    VolcanoSchedulerSettings,
    VolcanoSettings,
)
from core.body import Body
from core.versions import image_release, release_of
from core.yaml_writer import go_yaml

SCHEDULER, CONTROLLERS, WEBHOOK = "volcano-scheduler", "volcano-controllers", "volcano-admission"
"""The manifest's names of the Deployments, their ServiceAccounts and their roles."""

WEBHOOK_SERVICE = "volcano-admission-service"
WEBHOOK_SECRET = "volcano-admission-secret"  # noqa: S105 -- the name of a Secret
"""Service and Secret of the webhook. The names of the webhook configurations begin with the Service's name, which is
fixed in cmd/webhook-manager/app/util.go."""

WEBHOOK_PORT = 8443

WEBHOOK_LABELS = {"app": WEBHOOK}
"""Labels of the webhook's pods."""

METRICS_PORTS = (8080, 8081)
"""Ports of the scheduler and the controllers."""

SCHEDULER_CONF_FILE = "volcano-scheduler.conf"
"""Name of the file that configures the scheduler, and its key in the ConfigMap."""

_METRICS = frozenset({"volcano-scheduler-service", "volcano-controllers-service"})

_WEBHOOK_KINDS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


def webhook_names(settings: VolcanoSettings) -> list[str]:
    """The names with which the API server calls the webhook."""
    return [f"{WEBHOOK_SERVICE}.{settings.namespace}.svc"]


def volcano_objects(
    manifest: Sequence[Body], settings: VolcanoSettings, certificate: Certificate
) -> tuple[list[Body], ...]:
    """The objects of Volcano, as `staged` has them. CRDs are not among them: all stages need these.

    Webhook configurations are among the second, because the webhook listens only once it has seen them
    (cmd/webhook-manager/app/server.go).

    `manifest`: the objects of Volcano's `installer/volcano-development.yaml`; they are not changed.
    Raises UnexpectedManifestError if it is of another release.
    """
    check_release(manifest, settings)
    first, access, last = staged(
        (each for each in manifest if _is_needed(each, settings)),
        settings.namespace,
        NAMESPACE,
        lambda body: _deployment(body, settings, certificate),
        lambda body: _adapted(body, settings, certificate),
    )
    if settings.webhook.replicas > 1:
        last.append(disruption_budget(WEBHOOK, settings.namespace, WEBHOOK_LABELS))
    return first, [_secret(settings, certificate), *access], last


def check_release(manifest: Iterable[Body], settings: VolcanoSettings) -> None:
    """Raises UnexpectedManifestError if the images of the manifest are not of the desired minor version.

    Volcano's manifest of 1.14.1 names images of 1.14.0.
    """
    images = [first_container(body)["image"] for body in manifest if body["kind"] == "Deployment"]
    if not images or any(release_of(image_release(image) or "") != release_of(settings.version) for image in images):
        raise UnexpectedManifestError(
            f"the manifest at {settings.manifest} is not Volcano {release_of(settings.version)}: it has "
            f"{', '.join(images) or 'no Deployment'}. Set scheduler.volcano.version to the manifest's version, or "
            "scheduler.volcano.location to the manifest of that version"
        )


def volcano_images(version: str) -> list[str]:
    """The images of a release, as its manifest names them."""
    return [
        f"docker.io/volcanosh/vc-{name}:v{version}" for name in ("scheduler", "controller-manager", "webhook-manager")
    ]


def _is_needed(body: Body, settings: VolcanoSettings) -> bool:
    name = body["metadata"]["name"]
    if body["kind"] in ("CustomResourceDefinition", "Namespace") or name.startswith(f"{WEBHOOK}-init"):
        return False
    return settings.metrics or name not in _METRICS


def _adapted(body: Body, settings: VolcanoSettings, certificate: Certificate) -> Body:
    name = body["metadata"]["name"]
    if body["kind"] == "ClusterRole" and name == WEBHOOK:
        body["rules"] = [rule for rule in body["rules"] if rule["apiGroups"] != ["certificates.k8s.io"]]
    if body["kind"] == "ConfigMap" and name == settings.CONFIG_MAP:
        body["data"] = {SCHEDULER_CONF_FILE: scheduler_conf(settings.scheduler)}
    if body["kind"] in _WEBHOOK_KINDS:
        for webhook in body["webhooks"]:
            webhook["failurePolicy"] = settings.webhook.failure_policy
            webhook["timeoutSeconds"] = settings.webhook.timeout_seconds
            webhook["clientConfig"]["caBundle"] = certificate.bundle
    return body


def _deployment(body: Body, settings: VolcanoSettings, certificate: Certificate) -> Body:
    spec, pod, container = body["spec"], body["spec"]["template"]["spec"], first_container(body)
    # The name of `serviceAccount` since Kubernetes 1.0.
    pod["serviceAccountName"] = pod.pop("serviceAccount")
    repository = container["image"].rpartition(":")[0]
    container["image"] = f"{repository}:v{settings.version}"
    # The tag of a release never changes.
    container["imagePullPolicy"] = "IfNotPresent"
    # The manifest has a shell redirection among the arguments.
    container["args"] = [argument for argument in container["args"] if argument != "2>&1"]
    # The programs need no capability, and Pod Security `restricted` forbids them.
    container["securityContext"]["capabilities"] = {"drop": ["ALL"]}
    if settings.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    match body["metadata"]["name"]:
        case name if name == WEBHOOK:
            spec["replicas"] = settings.webhook.replicas
            container["readinessProbe"] = {"tcpSocket": {"port": WEBHOOK_PORT}, "periodSeconds": 5}
            _sized(container, settings.webhook.resources, WEBHOOK_REQUESTS)
            _annotate(spec, certificate.digest)
        case name if name == SCHEDULER:
            # The manifest has no leader election, so two schedulers would place pods at the same time.
            spec["strategy"] = {"type": "Recreate"}
            if ignored := settings.scheduler.ignored_provisioners:
                container["args"].append(f"--ignored-provisioners={','.join(ignored)}")
            _sized(container, settings.scheduler.resources, SCHEDULER_REQUESTS)
            _annotate(spec, hashlib.sha256(scheduler_conf(settings.scheduler).encode()).hexdigest())
        case _:
            spec["strategy"] = {"type": "Recreate"}
            _sized(container, settings.controllers.resources, CONTROLLERS_REQUESTS)
    if not settings.metrics:
        container["args"] = [argument for argument in container["args"] if argument != "--enable-metrics=true"]
    return body


def _sized(container: Body, configured: ComputeResources | None, default: ComputeResources) -> None:
    requests = (configured or default).model_dump()
    container["resources"] = {"requests": requests, **({"limits": dict(requests)} if configured else {})}


def _annotate(spec: Body, digest: Any) -> None:
    metadata = spec["template"]["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), CONFIGURATION: digest}


def _secret(settings: VolcanoSettings, certificate: Certificate) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": WEBHOOK_SECRET, "namespace": settings.namespace},
        "stringData": {
            "tls.crt": certificate.certificate,
            "tls.key": certificate.key,
            "ca.crt": certificate.authority,
        },
    }


def scheduler_conf(settings: VolcanoSchedulerSettings) -> str:
    """The text of SCHEDULER_CONF_FILE. Names are those of pkg/scheduler/conf/scheduler_conf.go.

    Plugins are in tiers. The scheduler asks the second tier only if the first has not decided
    (pkg/scheduler/framework/session_plugins.go). It evicts pods that all plugins of a tier agree on (Reclaimable).
    Volcano's own manifest has the shares of queues in the second tier. Then a queue loses all pods that its gangs do
    not need, also those within its deserved share. So here the shares are in the first tier.
    """
    tiers = [{"plugins": list(_job_order(settings))}, {"plugins": list(_node_order(settings))}]
    conf = {"actions": ", ".join(settings.actions), "tiers": tiers}
    return go_yaml(conf, sort_keys=False)


def _job_order(settings: VolcanoSchedulerSettings) -> Iterator[dict[str, Any]]:
    """The plugins that order jobs, make them wait, and select pods to evict."""
    plugins = settings.plugins
    if plugins.priority:
        yield {"name": "priority"}
    if plugins.gang:
        # As in Volcano's manifest: preemption within a queue is by priority.
        yield {"name": "gang", "enablePreemptable": False, "enableReclaimable": not plugins.gang.reclaim_minimum}
    if plugins.conformance:
        yield {"name": "conformance"}
    if settings.queue_shares == "capacity":
        yield {"name": "capacity", "enableHierarchy": True}
    else:
        yield {"name": "proportion"}
    if plugins.overcommit:
        yield {"name": "overcommit", "arguments": {"overcommit-factor": plugins.overcommit.factor}}


def _node_order(settings: VolcanoSchedulerSettings) -> Iterator[dict[str, Any]]:
    """The plugins that choose nodes."""
    plugins = settings.plugins
    if plugins.drf:
        yield {"name": "drf", "enablePreemptable": False}
    if plugins.predicates:
        yield {"name": "predicates"}
    if plugins.node_order:
        arguments = {f"{name.replace('_', '')}.weight": weight for name, weight in plugins.node_order}
        yield {"name": "nodeorder", "arguments": arguments}
    if plugins.binpack:
        yield {"name": "binpack", "arguments": _binpack(plugins.binpack)}
    if plugins.network_topology_aware:
        yield {"name": "network-topology-aware"}
    for plugin in settings.extra_plugins:
        yield {"name": plugin.name, "arguments": plugin.arguments} if plugin.arguments else {"name": plugin.name}


def _binpack(binpack: BinpackSettings) -> dict[str, Any]:
    return {
        "binpack.weight": binpack.weight,
        "binpack.cpu": binpack.cpu,
        "binpack.memory": binpack.memory,
        "binpack.resources": ", ".join(binpack.resources),
        **{f"binpack.resources.{name}": weight for name, weight in binpack.resources.items()},
    }
