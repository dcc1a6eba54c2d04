"""What an update reads of the live cluster, once, before the first resource is constructed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pulumi

from components.cluster import Cluster
from components.install import Manifest, compared
from components.kueue.component import KUEUE
from components.monitoring.manifests import OPERATOR_API
from components.operator.component import REFUSED, operator_tree
from components.operator.upgrade import Judged, judged
from components.ray_cluster.request import Scaled, UnknownScaleError, read_scaled
from components.redis.component import look as look_at_redis
from components.redis.existing import Seen
from components.state import Outputs
from components.storage.existing import look
from components.storage.settings import Use
from components.volcano.component import VOLCANO
from stacks.checks.storage import uses
from stacks.objects.monitoring import objects_of_monitoring
from stacks.objects.ownership import Ownership
from stacks.objects.queues import scheduling_of
from stacks.objects.redis import redis_users
from stacks.program.identity import OtherClusterError, recorded_uid, uid_of
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class Facts:
    """The live cluster. Without values: nothing exists."""

    uid: str | None = None
    """UID of the cluster (identity.uid_of); None if it cannot be read."""

    scaled: Mapping[tuple[str, str], Scaled] = field(default_factory=dict)
    """The live RayClusters, and RayServices in queues of Kueue, by namespace and name."""

    operator: Judged | None = None
    """The operator, compared with the live one."""

    operator_manifest: Manifest | None = None
    """What installs the operator, compared with the live CRDs."""

    scheduler: pulumi.Input[str] | None = None
    """Version of the existing scheduler that the stack uses."""

    scheduler_manifest: Manifest | None = None
    """What installs the scheduler, compared with the live CRDs."""

    redis: Seen | None = None
    """The check of the external Redis."""


def read_facts(cluster: Cluster, stack: StackSettings, owns: Ownership, last: Outputs) -> Facts:
    """Reads and checks the cluster. `last`: the stack's outputs of its last update.

    Of a cluster that does not exist yet it returns the UID that `last` has, so that no preview shows its removal.

    Raises pulumi.RunError if it is another cluster, if a RayCluster that scales or is in a queue of Kueue cannot be
    read, if a storage does not fit its use, if it lacks a kind of the Prometheus operator that is used, if an existing
    operator, scheduler or Redis is not supported or cannot be read, or if a manifest to install cannot be read.
    """
    if not cluster.exists:
        return Facts(recorded_uid(last))
    operator = manifest = None
    scheduler: tuple[pulumi.Input[str] | None, Manifest | None] = (None, None)
    try:
        uid = uid_of(cluster, stack, last)
        if owns.platform and not stack.platform:
            used = {each["kind"] for each in objects_of_monitoring(stack) if each["apiVersion"] == OPERATOR_API}
            check_kinds(cluster, used)
            operator = judged(cluster, stack.operator_in_force, stack.ray_versions)
            scheduler = _scheduler(cluster, stack)
            if stack.operator_in_force.install == "manifests":
                manifest = compared(cluster, operator_tree(stack.operator_in_force))
    except (OtherClusterError, MissingKindsError, *REFUSED) as error:
        raise pulumi.RunError(str(error)) from error
    if any(each.fault_tolerance for tenant in owns.tenants(stack) for each in tenant.all_clusters):
        # Components compare it with what the Redis gateway needs.
        _ = cluster.kubernetes
    scaled: dict[tuple[str, str], Scaled] = {}
    for tenant in owns.tenants(stack):
        if not stack.platform:
            _check_storage(cluster, tenant)
        scaled |= _scaled(cluster, stack, tenant)
    return Facts(uid, scaled, operator, manifest, *scheduler, _redis(cluster, stack, owns))


class MissingKindsError(Exception):
    """The cluster lacks kinds of the Prometheus operator; the text names them, and the setting."""


def check_kinds(cluster: Cluster, kinds: Iterable[str]) -> None:
    """Raises MissingKindsError unless the cluster has these kinds of the Prometheus operator; ClusterUnreachableError
    if it cannot be read."""
    definitions = [f"{kind.lower()}s.{OPERATOR_API.partition('/')[0]}" for kind in sorted(kinds)]
    crds = "apiextensions.k8s.io/v1", "customresourcedefinitions", None
    if missing := [name for name in definitions if cluster.get(*crds, name) is None]:
        raise MissingKindsError(
            f"monitoring.mode is prometheusOperator, and the cluster lacks {', '.join(missing)}: install the "
            "Prometheus operator first, or set monitoring.mode to scrapeConfig"
        )


def _scheduler(cluster: Cluster, stack: StackSettings) -> tuple[pulumi.Input[str] | None, Manifest | None]:
    """The version of an existing scheduler, or what installs one."""
    if stack.scheduler is None:
        return None, None
    program = VOLCANO if stack.scheduler.volcano else KUEUE
    settings = stack.scheduler.configured
    if settings.install == "existing":
        return program.version(cluster, settings.namespace), None
    return None, compared(cluster, program.read(settings))


def _redis(cluster: Cluster, stack: StackSettings, owns: Ownership) -> Seen | None:
    users = [tenant.namespace_name for tenant in redis_users(stack) if owns.has(tenant.namespace_name)]
    if stack.platform or not users or stack.redis is None or stack.redis.external is None:
        return None
    return look_at_redis(stack.redis.external, cluster, users[0])


def _check_storage(cluster: Cluster, tenant: TenantSettings) -> None:
    used = uses(tenant)
    for storage in tenant.storage:
        if fault := look(storage, used.get(storage.name, Use()), tenant.namespace_name, cluster):
            raise pulumi.RunError(f"storage {storage.name!r} of namespace {tenant.namespace_name!r} {fault}")


def _scaled(cluster: Cluster, stack: StackSettings, tenant: TenantSettings) -> dict[tuple[str, str], Scaled]:
    found = {}
    queued = [each.own_cluster for each in tenant.services]
    queued = [each for each in queued if scheduling_of(stack, tenant, each).in_kueue]
    read = [*((each, "RayCluster") for each in tenant.clusters), *((each, "RayService") for each in queued)]
    for each, kind in read:
        try:
            live = read_scaled(cluster, tenant.namespace_name, each.name, kind)
        except UnknownScaleError as error:
            if each.scales or scheduling_of(stack, tenant, each).in_kueue:
                raise pulumi.RunError(str(error)) from error
            continue
        if live:
            found[tenant.namespace_name, each.name] = live
    return found
