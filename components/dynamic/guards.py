"""Guards: resources without an object. They are deleted before the resources that they depend on, and can refuse that.

A guard's deletion runs in Pulumi's Python plugin, so a plain `pulumi destroy`, which runs no program, is refused too;
see docs/decisions/0002-crd-guard.md and docs/decisions/0010-tenants.md.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection, path_of
from components.dynamic import Provider, Resource
from components.in_use import KINDS_OF_KUBERAY, custom_objects, has_ended, kuberay_objects, named, place_of, runs
from components.kubernetes_cluster import cluster_of
from components.pulumi_internals import without_traceback
from core.body import Body


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


_SECONDS = 30.0
"""Seconds for the garbage collector to delete dependents of objects that have just been deleted."""


class MissingDeploymentError(Exception):
    """A Deployment that somebody deleted cannot be created again; the message names it and the reason."""


class CrdGuardProvider(GuardProvider):
    """Refuses the deletion while objects of the kinds in its input `resources` exist (`custom_objects`). Creates those
    of its input `deployments` again that somebody has deleted: the state still has them, so that nothing else would.
    """

    compared = ("resources", "connection", "fieldManager")
    """An edit of a Deployment is an update of that Deployment alone."""

    def __init__(self, owner: str, own_queues: tuple[str, ...] = ()) -> None:
        """`owner`: the program of the CRDs, in messages. `own_queues`: queues that it creates itself, which do not
        block the deletion."""
        super().__init__()
        self._owner = owner
        self._own_queues = own_queues

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        found = super().diff(_id, _olds, _news)
        try:
            gone = _gone(_news)
        except ClusterUnreachableError:
            gone = []  # the preview reports that elsewhere
        for body in gone:
            pulumi.log.warn(f"Deployment {place_of(body['metadata'])} is missing: `pulumi up` creates it again")
        return DiffResult(changes=found.changes or bool(gone))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        without_traceback()
        cluster = cluster_of(_news)
        for body in _gone(_news):
            _create_again(cluster, body, _news["fieldManager"])
        return super().update(_id, _olds, _news)

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


def _gone(props: Mapping[str, Any]) -> list[Body]:
    """Those of the Deployments that do not exist. Raises ClusterUnreachableError."""
    return [body for body in props.get("deployments") or () if cluster_of(props).request("GET", _path(body)) is None]


def _path(deployment: Body) -> str:
    metadata = deployment["metadata"]
    return path_of(deployment["apiVersion"], "deployments", metadata["namespace"], metadata["name"])


_AVAILABLE_SECONDS = 300.0
"""For the pods of a Deployment that was created again: the image may have to be pulled."""


def _create_again(cluster: Cluster, body: Body, manager: str) -> None:
    """Applies a Deployment as Pulumi's Kubernetes provider has, and waits until it is available."""
    path, name = _path(body), f"Deployment {place_of(body['metadata'])}"
    query, headers = {"fieldManager": manager, "force": "true"}, {"Content-Type": "application/apply-patch+yaml"}
    if cluster.request("PATCH", path, query=query, headers=headers, body=json.dumps(body)) is None:
        namespace = body["metadata"]["namespace"]
        raise MissingDeploymentError(
            f"{name} is gone, and so is its namespace {namespace}: run `pulumi refresh`, then `pulumi up`"
        )
    deadline = time.monotonic() + _AVAILABLE_SECONDS
    while not _available(cluster.request("GET", path) or {}):
        if time.monotonic() > deadline:
            raise MissingDeploymentError(
                f"{name} was deleted by somebody and is created again, but has no available pod after "
                f"{_AVAILABLE_SECONDS:.0f} s: `kubectl describe pods -n {body['metadata']['namespace']}` shows why"
            )
        time.sleep(0.5)


def _available(deployment: Body) -> bool:
    return bool((deployment.get("status") or {}).get("availableReplicas"))


@dataclass(frozen=True)
class CrdGuardArgs:
    provider: CrdGuardProvider

    resources: list[str]
    """The kinds, as for `custom_objects`."""

    connection: Connection = AMBIENT

    deployments: Sequence[Body] = ()
    """The program's Deployments, as they are applied."""

    manager: str = ""
    """Field manager of the Deployments."""


class CrdGuard(Resource, module="ray-platform", name="CrdGuard"):
    """Is deleted before all resources that it depends on. The deletion fails while objects of its kinds exist. Each
    `up` looks whether the program's Deployments exist, and creates them again if not."""

    def __init__(self, name: str, args: CrdGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "resources": args.resources,
            "deployments": list(args.deployments),
            "fieldManager": args.manager,
            **args.connection.inputs(),
        }
        super().__init__(args.provider, name, inputs, opts)


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
