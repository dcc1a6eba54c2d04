"""What stands between the operator that is in the cluster and the one that the stack file wants. Only reads.

See docs/upgrades.md and docs/decisions/0020-operator-upgrades.md.
"""

from collections.abc import Iterable, Iterator

import kubernetes

from core.versions import release_of
from kuberay.supported import HOSTS_GATE, NO_WAY_BACK, RELEASES, groups_with_hosts, marks_hosts, newer

from ..cluster import connect, read
from ..guard import kuberay_objects
from ..rollout.pods import CLUSTER_LABEL, GROUP_LABEL
from .existing import Found, look
from .settings import OperatorSettings

REPLICA_MARK = "ray.io/worker-group-replica-name"
"""Label of the pods of workers with several hosts (ray-operator/controllers/ray/utils/constant.go)."""

_NAMED = 10
"""So many worker groups are named in a message."""


class UnsafeUpgradeError(Exception):
    """The change of the operator would harm what runs; the text says how, and what to do instead."""


def check(context: str | None, settings: OperatorSettings) -> str | None:
    """Hold the wanted operator against the cluster. What it returns is a warning.

    Raises UnsafeUpgradeError where it is older than what is there, or would forget pods that run, and
    ClusterUnreachableError where that cannot be told.
    """
    there = look(context, settings.namespace)
    check_release(there, settings)
    if not there.marks_hosts and marks_hosts(settings.version, settings.feature_gates):
        check_hosts(there, settings, without_marks(context))
    return left_behind(there)


def check_release(there: Found, settings: OperatorSettings) -> None:
    """Raises UnsafeUpgradeError where the operator or its CRDs are of a later release than the wanted one."""
    wanted = release_of(settings.version)
    of_operator = release_of(there.operator) if there.operator else None
    if not any(release is not None and newer(release, wanted) for release in (there.crd, of_operator)):
        return
    raise UnsafeUpgradeError(
        f"operator.version is {settings.version}, and the cluster has: {there}. This would be a downgrade, and "
        f"{NO_WAY_BACK}."
    )


def left_behind(there: Found) -> str | None:
    """A warning where the operator has CRDs of an earlier release: it loses fields, and has deleted workers (KubeRay
    issue 2084). An upgrade changes the CRDs first, so somebody else has done it."""
    if there.operator is None or not there.served:
        return None
    release = release_of(there.operator)
    if release not in RELEASES or (there.crd and not newer(release, there.crd)):
        return None
    return (
        f"the cluster has: {there}. An operator with older CRDs loses fields of RayClusters: run `pulumi refresh`, and "
        "then `pulumi up`, which sets them right"
    )


def check_hosts(there: Found, settings: OperatorSettings, groups: Iterable[str]) -> None:
    """Raises UnsafeUpgradeError where there are worker groups whose pods the wanted operator would not know as its own.

    It counts workers with several hosts by marks that the operator there has not given them, makes them all a second
    time, and never ends the first ones (raycluster_controller.go: reconcileMultiHostWorkerGroup).
    """
    if named := sorted(groups):
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        raise UnsafeUpgradeError(
            f"KubeRay {settings.version} would make all workers with several hosts a second time beside those that "
            f"KubeRay {there.operator} has made, which nobody would end then: {', '.join(named[:_NAMED])}{more}. Set "
            f"operator.featureGates to {{{HOSTS_GATE}: false}} in the same edit; or let these worker groups go first"
        )


def without_marks(context: str | None) -> Iterator[str]:
    """The worker groups with several hosts that have pods without marks. Raises ClusterUnreachableError."""
    core = kubernetes.client.CoreV1Api(connect(context))
    for body in kuberay_objects(context, ["rayclusters"]):
        if not (groups := groups_with_hosts(body)):
            continue
        metadata = body["metadata"]
        chosen = f"{CLUSTER_LABEL}={metadata['name']},{GROUP_LABEL} in ({','.join(groups)}),!{REPLICA_MARK}"
        pods = read(core.list_namespaced_pod, metadata["namespace"], label_selector=chosen) or {}
        found = {pod["metadata"]["labels"][GROUP_LABEL] for pod in pods.get("items", ())}
        yield from (f"{metadata['namespace']}/{metadata['name']} {group}" for group in sorted(found))
