"""What an update reads of the live cluster, once, before the first resource is constructed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from components.cluster import ClusterUnreachableError
from components.monitoring.installed import MissingKindsError, check_kinds
from components.monitoring.manifests import OPERATOR_API
from components.ray_cluster.scaled import Scaled, UnknownScaleError, read_scaled
from components.state import Outputs
from components.storage.existing import look
from components.storage.settings import Use
from stacks.checks.storage import uses
from stacks.objects.monitoring import objects_of_monitoring
from stacks.objects.ownership import Ownership
from stacks.program.identity import OtherClusterError, cluster_of
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class Facts:
    """The live cluster. Without values: nothing exists."""

    uid: str | None = None
    """UID of the cluster (identity.cluster_of); None if it cannot be read."""

    scaled: Mapping[tuple[str, str], Scaled] = field(default_factory=dict)
    """The live RayClusters, by namespace and name."""


def read_facts(stack: StackSettings, owns: Ownership, last: Outputs) -> Facts:
    """Reads and checks the cluster. `last`: the stack's outputs of its last update.

    Raises pulumi.RunError if it is another cluster, if a RayCluster that scales cannot be read, if a storage does not
    fit its use, or if it lacks a kind of the Prometheus operator that is used.
    """
    context = stack.kubernetes.context
    try:
        uid = cluster_of(stack, last)
        if owns.platform and not stack.platform:
            used = {each["kind"] for each in objects_of_monitoring(stack) if each["apiVersion"] == OPERATOR_API}
            check_kinds(context, used)
    except (OtherClusterError, MissingKindsError, ClusterUnreachableError) as error:
        raise pulumi.RunError(str(error)) from error
    scaled: dict[tuple[str, str], Scaled] = {}
    for tenant in owns.tenants(stack):
        if not stack.platform:
            _check_storage(tenant, context)
        scaled |= _scaled(tenant, context)
    return Facts(uid, scaled)


def _check_storage(tenant: TenantSettings, context: str | None) -> None:
    used = uses(tenant)
    for storage in tenant.storage:
        if fault := look(storage, used.get(storage.name, Use()), tenant.namespace_name, context):
            raise pulumi.RunError(f"storage {storage.name!r} of namespace {tenant.namespace_name!r} {fault}")


def _scaled(tenant: TenantSettings, context: str | None) -> dict[tuple[str, str], Scaled]:
    found = {}
    for cluster in tenant.clusters:
        try:
            live = read_scaled(context, tenant.namespace_name, cluster.name)
        except UnknownScaleError as error:
            if cluster.scales:
                raise pulumi.RunError(str(error)) from error
            continue
        if live:
            found[tenant.namespace_name, cluster.name] = live
    return found
