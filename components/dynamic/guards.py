"""Guards: resources without an object. They are deleted before the resources that they depend on, and can refuse that.

A guard's deletion runs in Pulumi's Python plugin, so a plain `pulumi destroy`, which runs no program, is refused too;
see docs/decisions/0002-crd-guard.md and docs/decisions/0010-tenants.md.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Provider, Resource
from components.kubernetes_cluster import cluster_of
from components.pulumi_internals import without_traceback
from core.body import Body

_NAMED = 10
"""The most objects that a message names. Of the others it reports only the number."""


class InUseError(Exception):
    """The deletion would delete objects in use, which the message names; or their use is not known."""


class GuardProvider(Provider):
    """The provider of a guard. `refuse` decides whether the guard may be deleted."""

    def refuse(self, props: Mapping[str, Any]) -> None:
        """Raises InUseError if the guarded objects must stay. `props`: the inputs of the last `up`."""
        raise NotImplementedError

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("guard", dict(props))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        without_traceback()
        self.refuse(_props)


def kuberay_objects(cluster: Cluster, kinds: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """The objects of these kinds, plural names in the group ray.io, of a namespace or of all; each has its `kind`.

    Raises ClusterUnreachableError if they cannot be read, also if that is forbidden. A kind that is not served has no
    objects.
    """
    return custom_objects(cluster, [f"{plural}.v1.ray.io" for plural in kinds], namespace)


def custom_objects(cluster: Cluster, resources: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """As `kuberay_objects`, of kinds of any group: `queues.v1beta1.scheduling.volcano.sh`."""
    found: list[dict[str, Any]] = []
    for resource in resources:
        plural, version, group = resource.split(".", 2)
        listed = cluster.list(f"{group}/{version}", plural, namespace)
        found += [{"kind": plural, **body} for body in listed or ()]
    return found


def named(objects: Sequence[Mapping[str, Any]]) -> str:
    """Objects as a message names them: `RayCluster team-a/training and 3 more`."""
    names = [f"{body['kind']} {_place(body['metadata'])}" for body in objects]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _place(metadata: Mapping[str, Any]) -> str:
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


_SECONDS = 30.0
"""Seconds for the garbage collector to delete dependents of objects that have just been deleted."""


class CrdGuardProvider(GuardProvider):
    """Refuses the deletion while objects of the kinds in its input `resources` exist (`custom_objects`)."""

    def __init__(self, owner: str, own_queues: tuple[str, ...] = ()) -> None:
        """`owner`: the program of the CRDs, in messages. `own_queues`: queues that it creates itself, which do not
        block the deletion."""
        super().__init__()
        self._owner = owner
        self._own_queues = own_queues

    def refuse(self, props: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + _SECONDS
        while used := self._in_use(props):
            if time.monotonic() > deadline or not all(body["metadata"].get("ownerReferences") for body in used):
                raise InUseError(
                    f"{self._owner}'s CRDs are not deleted while there is {named(used)}: these would be deleted with "
                    "them. Delete them first, with kubectl or with the stack that they belong to, then run the command "
                    "again"
                )
            time.sleep(1.0)

    def _in_use(self, props: Mapping[str, Any]) -> list[Body]:
        try:
            existing = custom_objects(cluster_of(props), props["resources"])
        except ClusterUnreachableError as error:
            raise InUseError(
                f"{self._owner}'s CRDs are not deleted, because it cannot be determined whether they are used: {error}"
            ) from None
        return [body for body in existing if not self._is_own(body)]

    def _is_own(self, body: Body) -> bool:
        return str(body["kind"]).lower() in ("queue", "queues") and body["metadata"]["name"] in self._own_queues


@dataclass(frozen=True)
class CrdGuardArgs:
    provider: CrdGuardProvider

    resources: list[str]
    """The kinds, as for `custom_objects`."""

    connection: Connection = AMBIENT


class CrdGuard(Resource, module="ray-platform", name="CrdGuard"):
    """Is deleted before all resources that it depends on. The deletion fails while objects of its kinds exist."""

    def __init__(self, name: str, args: CrdGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(args.provider, name, {"resources": args.resources, **args.connection.inputs()}, opts)


KINDS_OF_KUBERAY = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
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


class TenantGuardProvider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        if not props["allowDelete"]:
            refuse_tenant_in_use(cluster_of(props), props["tenant"], props["namespace"])
        if retained := props.get("storage"):
            raise InUseError(
                f"tenant {props['tenant']!r} is not removed, because the claims of its storage {', '.join(retained)} "
                "would be deleted with its namespace. Copy the data elsewhere, set retain: false there, run "
                "`pulumi up`, and remove the tenant then"
            )


def refuse_tenant_in_use(cluster: Cluster, tenant: str, namespace: str) -> None:
    """Raises InUseError while KubeRay objects run in the tenant's namespace, or if that is not known."""
    try:
        running = [body for body in kuberay_objects(cluster, KINDS_OF_KUBERAY, namespace) if runs(body)]
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
        super().__init__(TenantGuardProvider(), name, inputs, opts)


_KINDS_IN_QUEUES = ("rayclusters", "rayjobs", "rayservices")


class QueueGuardProvider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        refuse_queue_in_use(cluster_of(props), props["queue"], props["label"])


def refuse_queue_in_use(cluster: Cluster, queue: str, label: str) -> None:
    """Raises InUseError while objects of KubeRay name the queue by that label, or if that is not known."""
    try:
        naming = [
            body
            for body in kuberay_objects(cluster, _KINDS_IN_QUEUES)
            if (body["metadata"].get("labels") or {}).get(label) == queue
        ]
    except ClusterUnreachableError as error:
        raise InUseError(
            f"queue {queue!r} is not deleted, because it cannot be determined what uses it: {error}"
        ) from None
    if used := [body for body in naming if not has_ended(body)]:
        raise InUseError(
            f"queue {queue!r} is not deleted, because it is used by {named(used)}, which would wait forever. Set "
            "another queue for these, or delete them, then run the command again"
        )


@dataclass(frozen=True)
class QueueGuardArgs:
    queue: str

    label: str
    """Label by which RayClusters name it."""

    connection: Connection = AMBIENT


class QueueGuard(Resource, module="ray-platform", name="QueueGuard"):
    """Is deleted before the queue that it depends on. The deletion fails while a RayCluster, RayJob or RayService of
    any namespace names the queue, also one that this stack did not create.
    """

    def __init__(self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {"queue": args.queue, "label": args.label, **args.connection.inputs()}
        super().__init__(QueueGuardProvider(), name, inputs, opts)
