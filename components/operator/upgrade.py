"""Checks the change from the live operator to the desired one. Only reads.

See docs/upgrades.md and docs/decisions/0020-operator-upgrades.md.
"""

from collections.abc import Iterable, Iterator

import kubernetes

from core.versions import release_of
from kuberay.releases import HOSTS_GATE, NO_WAY_BACK, RELEASES, groups_with_hosts, marks_hosts, newer

from ..cluster import connect, read
from ..guard import kuberay_objects
from ..rollout.pods import CLUSTER_LABEL, GROUP_LABEL
from .existing import Found, look
from .settings import OperatorSettings

REPLICA_MARK = "ray.io/worker-group-replica-name"
"""Label of the pods of workers with several hosts (ray-operator/controllers/ray/utils/constant.go)."""

_NAMED = 10
"""The most worker groups that a message names."""


class UnsafeUpgradeError(Exception):
    """The change of the operator would harm running clusters; the message has the reason and what to do instead."""


def check(context: str | None, settings: OperatorSettings) -> str | None:
    """Compares the desired operator with the live one. Returns a warning, or None.

    Raises UnsafeUpgradeError if it is older than the live operator, or would not recognize running pods, and
    ClusterUnreachableError if that cannot be read.
    """
    live = look(context, settings.namespace)
    check_release(live, settings)
    if not live.marks_hosts and marks_hosts(settings.version, settings.feature_gates):
        check_hosts(live, settings, without_marks(context))
    return left_behind(live)


def check_release(live: Found, settings: OperatorSettings) -> None:
    """Raises UnsafeUpgradeError if the live operator or its CRDs are of a later release than the desired one."""
    desired = release_of(settings.version)
    of_operator = release_of(live.operator) if live.operator else None
    if not any(release is not None and newer(release, desired) for release in (live.crd, of_operator)):
        return
    raise UnsafeUpgradeError(
        f"operator.version is {settings.version}, and the cluster has: {live}. This would be a downgrade, and "
        f"{NO_WAY_BACK}."
    )


def left_behind(live: Found) -> str | None:
    """A warning if the live operator has CRDs of an earlier release. Such an operator loses fields, and has deleted
    workers (KubeRay issue 2084). The stack upgrades CRDs first, so somebody else has upgraded the operator."""
    if live.operator is None or not live.served:
        return None
    release = release_of(live.operator)
    if release not in RELEASES or (live.crd and not newer(release, live.crd)):
        return None
    return (
        f"the cluster has: {live}. An operator with older CRDs loses fields of RayClusters: run `pulumi refresh`, and "
        "then `pulumi up`, which sets them right"
    )


def check_hosts(live: Found, settings: OperatorSettings, groups: Iterable[str]) -> None:
    """Raises UnsafeUpgradeError if there are worker groups whose pods the desired operator would not recognize.

    It counts workers with several hosts by labels that the live operator does not set. It would create all of them a
    second time and never delete the first ones (raycluster_controller.go: reconcileMultiHostWorkerGroup).
    """
    if named := sorted(groups):
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        raise UnsafeUpgradeError(
            f"KubeRay {settings.version} would make all workers with several hosts a second time beside those that "
            f"KubeRay {live.operator} has made, which nobody would end then: {', '.join(named[:_NAMED])}{more}. Set "
            f"operator.featureGates to {{{HOSTS_GATE}: false}} in the same edit; or let these worker groups go first"
        )


def without_marks(context: str | None) -> Iterator[str]:
    """The worker groups with several hosts that have pods without the label. Raises ClusterUnreachableError."""
    core = kubernetes.client.CoreV1Api(connect(context))
    for body in kuberay_objects(context, ["rayclusters"]):
        if not (groups := groups_with_hosts(body)):
            continue
        metadata = body["metadata"]
        chosen = f"{CLUSTER_LABEL}={metadata['name']},{GROUP_LABEL} in ({','.join(groups)}),!{REPLICA_MARK}"
        pods = read(core.list_namespaced_pod, metadata["namespace"], label_selector=chosen) or {}
        found = {pod["metadata"]["labels"][GROUP_LABEL] for pod in pods.get("items", ())}
        yield from (f"{metadata['namespace']}/{metadata['name']} {group}" for group in sorted(found))
