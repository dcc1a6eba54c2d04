"""Blocks the removal of a tenant with workloads or retained storage in its namespace.

See docs/decisions/0010-tenants.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Resource
from components.guard import GuardProvider, InUseError, kuberay_objects, named
from components.kubernetes_cluster import cluster_of

KINDS = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
"""The kinds that run, or start later by schedule."""

_ENDED = {"Complete", "Failed", "ValidationFailed"}
"""`jobDeploymentStatus` of a RayJob that will never run again (ray-operator/apis/ray/v1/rayjob_types.go)."""


def runs(body: Mapping[str, Any]) -> bool:
    """Whether a KubeRay object has pods, or will have some."""
    if (body.get("spec") or {}).get("suspend"):
        return False
    return not has_ended(body) and _status(body) != "Suspended"


def has_ended(body: Mapping[str, Any]) -> bool:
    """Whether it is a RayJob that has ended. One that is suspended has not: Kueue suspends those that wait."""
    return body["kind"] == "RayJob" and _status(body) in _ENDED


def _status(body: Mapping[str, Any]) -> object:
    return (body.get("status") or {}).get("jobDeploymentStatus")


class _Provider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        if not props["allowDelete"]:
            refuse_while_used(cluster_of(props), props["tenant"], props["namespace"])
        if retained := props.get("storage"):
            raise InUseError(
                f"tenant {props['tenant']!r} is not removed, because the claims of its storage {', '.join(retained)} "
                "would be deleted with its namespace. Copy the data elsewhere, set retain: false there, run "
                "`pulumi up`, and remove the tenant then"
            )


def refuse_while_used(cluster: Cluster, tenant: str, namespace: str) -> None:
    """Raises InUseError while KubeRay objects run in the tenant's namespace, or if that is not known."""
    try:
        running = [body for body in kuberay_objects(cluster, KINDS, namespace) if runs(body)]
    except ClusterUnreachableError as error:
        raise InUseError(
            f"tenant {tenant!r} is not removed, because it cannot be determined what runs in its namespace: {error}"
        ) from None
    if running:
        raise InUseError(
            f"tenant {tenant!r} is not removed while there is {named(running)}, which would be lost. Suspend or "
            f"delete what runs in namespace {namespace!r}; or give the tenant allowDelete: true, run `pulumi up`, "
            "and remove it then"
        )


@dataclass(frozen=True)
class TenantGuardArgs:
    """Arguments of TenantGuard."""

    tenant: str

    namespace: pulumi.Input[str]
    """The guard depends on this Output, so it is deleted before the namespace."""

    allow_delete: bool
    """True: allows the deletion, whatever runs."""

    connection: Connection = AMBIENT

    storage: tuple[str, ...] = ()
    """Names of storage that is retained, and whose claims would be deleted with the namespace."""


class TenantGuard(Resource, module="ray-platform", name="TenantGuard"):
    """Is deleted before all resources that it depends on. The deletion fails while a RayCluster, RayJob, RayService or
    RayCronJob runs in the namespace, also one that this stack did not create, or while it has retained storage.
    """

    def __init__(self, name: str, args: TenantGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "tenant": args.tenant,
            "namespace": args.namespace,
            "allowDelete": args.allow_delete,
            **args.connection.inputs(),
            "storage": list(args.storage) or None,
        }
        super().__init__(_Provider(), name, inputs, opts)
