"""When a written object is ready: one rule per kind, as Pulumi's plugin awaits them.

The messages and time limits are those of pulumi-kubernetes 4.32, provider/pkg/await. A kind without a rule is ready
once the server has accepted it. So is a custom resource, unless `pulumi.com/waitFor` sets a condition.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local.plugins.kubernetes import wait_for
from local.plugins.kubernetes.diff import same_amount
from local.plugins.kubernetes.objects import CRD, SECRET, Kind, at, is_true, name_of
from local.plugins.kubernetes.values import Json

SKIP_AWAIT = "pulumi.com/skipAwait"

ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
SERVICE = Kind("", "v1", "Service")


@dataclass(frozen=True)
class Verdict:
    """Whether an object is ready, the missing condition for people, and whether it has failed for good.

    `settles`: it is ready if this does not change any more.
    """

    ready: bool
    message: str = ""
    failed: bool = False
    settles: bool = False


@dataclass(frozen=True)
class Rule:
    """A rule of readiness.

    Fields: `check` gets the object and its related `others`; `others` is their kind and label selector, or None;
    `on_read`: a refresh checks as well; `seconds` is the default time limit; `late` is the message when it is over.
    """

    check: Callable[[Json, Sequence[Json]], Verdict]
    others: tuple[Kind, str] | None = None
    on_read: bool = False
    seconds: float = 600
    late: str = "'{name}' timed out waiting to be Ready"


_POLLED = "Timeout occurred polling for '{name}'"

READY = Verdict(ready=True)


def waiting(message: str) -> Verdict:
    return Verdict(ready=False, message=message)


def rule_for(inputs: Json, live: Json) -> Rule | None:
    """The rule for an object, from its annotations (as set by the program) or its kind; None: ready at once.

    Raises:
        RefusedError: the annotation `pulumi.com/waitFor` cannot be read.
    """
    if is_true(inputs, SKIP_AWAIT):
        return None
    expected = wait_for.expectations(inputs)
    if expected:
        return Rule(lambda obj, _: _all_seen(obj, expected), late="timed out waiting for the condition")
    kind = Kind.of_object(live)
    if kind == SERVICE:
        return _service_rule(live)
    return _RULES.get((kind.group, kind.kind))


def _all_seen(obj: Json, expected: list[wait_for.Expectation]) -> Verdict:
    missing = [observed for seen, observed in (expectation.seen(obj) for expectation in expected) if not seen]
    return waiting("; ".join(missing)) if missing else READY


def _number(obj: Json, *path: str, default: int = 0) -> int:
    value = at(obj, *path)
    return value if isinstance(value, int) else default


def _observed(obj: Json) -> bool:
    return _number(obj, "status", "observedGeneration") >= _number(obj, "metadata", "generation")


def condition(obj: Json, name: str) -> Json:
    """A condition of the object's status; empty if it has none of that type."""
    conditions = at(obj, "status", "conditions") or []
    return next((entry for entry in conditions if entry.get("type") == name), {})


def _deployment(obj: Json, _: Sequence[Json]) -> Verdict:
    desired = _number(obj, "spec", "replicas", default=1)
    if not _observed(obj):
        return waiting("Waiting for the controller to see the Deployment")
    progressing = condition(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return waiting(f"[ProgressDeadlineExceeded] {progressing.get('message')}")
    updated, available = _number(obj, "status", "updatedReplicas"), _number(obj, "status", "availableReplicas")
    old = _number(obj, "status", "replicas") - updated
    if updated < desired or available < desired:
        return waiting(
            f"Waiting for app ReplicaSet to be available ({min(updated, available)}/{desired} Pods available)"
        )
    if old > 0:
        return waiting(f"Waiting for {old} old Pods to terminate")
    return READY


def _stateful_set(obj: Json, _: Sequence[Json]) -> Verdict:
    desired = _number(obj, "spec", "replicas", default=1)
    if not _observed(obj):
        return waiting("Waiting for the controller to see the StatefulSet")
    ready = _number(obj, "status", "readyReplicas")
    if ready < desired:
        return waiting(f"Waiting for StatefulSet update to roll out ({ready}/{desired} Pods ready)")
    if at(obj, "spec", "updateStrategy", "type") == "OnDelete":
        return READY
    kept = _number(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    updated = _number(obj, "status", "updatedReplicas")
    if updated < desired - kept:
        return waiting(f"Waiting for StatefulSet update to roll out ({updated}/{desired - kept} Pods updated)")
    return READY


def _daemon_set(obj: Json, _: Sequence[Json]) -> Verdict:
    desired = _number(obj, "status", "desiredNumberScheduled")
    if not _observed(obj):
        return waiting("Waiting for the controller to see the DaemonSet")
    updated, available = _number(obj, "status", "updatedNumberScheduled"), _number(obj, "status", "numberAvailable")
    if at(obj, "spec", "updateStrategy", "type") == "OnDelete":
        updated = desired
    if min(updated, available) < desired:
        return waiting(f"Waiting for DaemonSet to roll out ({min(updated, available)}/{desired} Pods available)")
    return READY


def _job(obj: Json, _: Sequence[Json]) -> Verdict:
    failed = condition(obj, "Failed")
    if failed.get("status") == "True":
        return Verdict(ready=False, message=f"[{failed.get('reason')}] {failed.get('message')}", failed=True)
    if condition(obj, "Complete").get("status") == "True":
        return READY
    done = _number(obj, "status", "succeeded")
    return waiting(
        f"Waiting for Job to succeed ({done} of {_number(obj, 'spec', 'completions', default=1)} completions)"
    )


def _pod(obj: Json, _: Sequence[Json]) -> Verdict:
    phase = at(obj, "status", "phase")
    if phase == "Succeeded" or condition(obj, "Ready").get("status") == "True":
        return READY
    if phase == "Failed":
        reason = at(obj, "status", "message") or at(obj, "status", "reason") or "a container failed"
        return Verdict(ready=False, message=f"Pod failed: {reason}", failed=True)
    return waiting(f"Waiting for Pod to be ready (it is {phase or 'new'})")


def _replication_controller(obj: Json, _: Sequence[Json]) -> Verdict:
    desired, available = _number(obj, "spec", "replicas", default=1), _number(obj, "status", "availableReplicas")
    return READY if available == desired else waiting(f"Waiting for Pods to be available ({available}/{desired})")


_NO_PODS = (
    "Service does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may not match labels "
    "on any Pods"
)


def _service_rule(service: Json) -> Rule | None:
    """Endpoints are awaited if the Service selects Pods and has an address, an address if one is requested.

    A Service without any endpoint is accepted, one with an endpoint that is not ready is not (service.go).
    """
    balanced = at(service, "spec", "type") == "LoadBalancer"
    plain = at(service, "spec", "type") == "ExternalName" or at(service, "spec", "clusterIP") == "None"
    selects = bool(at(service, "spec", "selector")) and not plain
    if not selects and not balanced:
        return None

    def check(obj: Json, slices: Sequence[Json]) -> Verdict:
        if balanced and not at(obj, "status", "loadBalancer", "ingress"):
            return waiting("Service was not allocated an IP address; does your cloud provider support this?")
        endpoints = [endpoint for entry in slices for endpoint in entry.get("endpoints") or []]
        pending = any(at(endpoint, "conditions", "ready") is False for endpoint in endpoints)
        if selects and (pending or not endpoints):
            return Verdict(ready=False, message=_NO_PODS, settles=not pending)
        return READY

    others = (ENDPOINT_SLICE, f"kubernetes.io/service-name={name_of(service)}") if selects else None
    return Rule(check, others, on_read=True)


def _ingress(obj: Json, _: Sequence[Json]) -> Verdict:
    addresses = at(obj, "status", "loadBalancer", "ingress") or []
    if any(entry.get("ip") or entry.get("hostname") for entry in addresses):
        return READY
    return waiting("Waiting for the Ingress controller to give the Ingress an address (.status.loadBalancer.ingress)")


def claim_rule(binds_late: bool) -> Rule:
    """A PersistentVolumeClaim is bound; if the class waits for a Pod, it is ready at once."""

    def check(obj: Json, _: Sequence[Json]) -> Verdict:
        phase = at(obj, "status", "phase")
        done = phase == "Bound" or (binds_late and phase == "Pending")
        return READY if done else waiting(f"Waiting for PersistentVolumeClaim to be bound (it is {phase or 'new'})")

    return Rule(check, seconds=300, late=_POLLED)


def _volume(obj: Json, _: Sequence[Json]) -> Verdict:
    phase = at(obj, "status", "phase")
    return READY if phase in ("Available", "Bound") else waiting(f"Waiting for PersistentVolume (it is {phase})")


def _quota(obj: Json, _: Sequence[Json]) -> Verdict:
    desired, seen = at(obj, "spec", "hard") or {}, at(obj, "status", "hard") or {}
    taken = desired.keys() == seen.keys() and all(same_amount(value, seen[key]) for key, value in desired.items())
    return READY if taken else waiting("Waiting for the ResourceQuota to be in force")


def _secret(obj: Json, _: Sequence[Json]) -> Verdict:
    needs_token = obj.get("type") == "kubernetes.io/service-account-token"
    return waiting("Waiting for the token") if needs_token and not obj.get("data") else READY


def _definition(obj: Json, _: Sequence[Json]) -> Verdict:
    refused = condition(obj, "NamesAccepted")
    if refused.get("status") == "False":
        return waiting(f"[{refused.get('reason')}] {refused.get('message')}")
    established = condition(obj, "Established").get("status") == "True"
    return READY if established else waiting("Waiting for the CustomResourceDefinition to be established")


_RULES: dict[tuple[str, str], Rule] = {
    ("apps", "DaemonSet"): Rule(_daemon_set, on_read=True),
    ("apps", "Deployment"): Rule(_deployment, on_read=True),
    ("apps", "StatefulSet"): Rule(_stateful_set, on_read=True),
    ("batch", "Job"): Rule(_job, on_read=True),
    ("networking.k8s.io", "Ingress"): Rule(_ingress, on_read=True),
    (CRD.group, CRD.kind): Rule(_definition, seconds=60),
    ("", "PersistentVolume"): Rule(_volume, seconds=300, late=_POLLED),
    ("", "Pod"): Rule(_pod, on_read=True),
    ("", "ReplicationController"): Rule(_replication_controller, late=_POLLED),
    ("", "ResourceQuota"): Rule(_quota, seconds=60, late=_POLLED),
    (SECRET.group, SECRET.kind): Rule(_secret, seconds=5, late=_POLLED),
}
