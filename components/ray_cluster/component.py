"""How a RayCluster is provisioned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi

from components.bodies import in_namespace
from components.cluster import Cluster
from components.dynamic.pod_group import PodGroup, PodGroupArgs
from components.dynamic.reached import Reached, ReachedArgs, Wait
from components.dynamic.redis_keys import StorageNamespace, StorageNamespaceArgs
from components.dynamic.rollout import Rollout, RolloutArgs
from components.kubernetes import KubernetesObject, create, dependencies, field_manager
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object, the_object
from components.ray_cluster.changes import deletion_options, scaling_hooks
from components.ray_cluster.manifests import NO_SCHEDULING, Scheduling, head_service, requires_token
from components.ray_cluster.objects import RAY_CLUSTER
from components.ray_cluster.pods import OPTIONS
from components.ray_cluster.readiness import status_summary, until_ready
from components.ray_cluster.request import Later, Request, Scaled, request
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.worker_groups import all_groups
from components.redis_gateway.manifests import UnsupportedKubernetesError, check_kubernetes, has_gateway
from components.rollout.replacing import Desired, cannot_join
from components.rollout.templates import parts, recreates
from components.tls.authority import ClusterAuthorityArgs, generated_authority
from core.body import Body
from core.nodes import NodePool
from core.types import seconds
from kuberay.ports import CLIENT_PORT, DASHBOARD_PORT, head_ports
from kuberay.releases import FIRST_RAY_WITH_TOKENS

_OPEN = (
    "RayCluster {!r} has no token authentication: everybody who can connect to its dashboard "
    f"(port {DASHBOARD_PORT}) or its client port ({CLIENT_PORT}) can run any code on it. "
    f"Remove authOptions, with Ray {FIRST_RAY_WITH_TOKENS} or later"
)


@dataclass(frozen=True)
class RayClusterArgs:
    settings: RayClusterSettings

    objects: Sequence[Object]
    """All objects of the RayCluster (objects.ray_cluster_objects)."""

    namespace: pulumi.Input[str]

    pools: tuple[NodePool, ...] = ()
    """The node pools that the settings name."""

    service_account: pulumi.Input[str | None] = None
    """ServiceAccount of pods for which the RayCluster names none. The cluster waits for this Output."""

    operator_namespace: str = "ray-system"
    """Where to look for the operator when the cluster does not come up."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    scheduling: Scheduling = NO_SCHEDULING
    """Its scheduler and its queue. The queue exists."""

    scaled: Scaled | None = None
    """The live RayCluster (scaled.read_scaled), which keeps the autoscaler's values; None if it does not exist."""

    import_id: str | None = None
    """`<namespace>/<name>` of an existing RayCluster to adopt; None to create one."""


class RayCluster(pulumi.ComponentResource):
    """A RayCluster that scales with its load. `up` waits until it is ready, or reports why it is not.

    A node drain does not evict the head, unless the settings allow it. A cluster without token authentication causes a
    warning, in previews too.

    The RayCluster depends on everything that the component depends on (`depends_on`), such as the operator.

    With fault tolerance the GCS stores its tables in Redis, under a storage namespace that no other RayCluster ever
    has. The deletion then waits until KubeRay has cleaned up there or has given up, and warns of keys that are left.
    The RayCluster is replaced if fault tolerance is switched off, if its network topology changes, or with Kueue if its
    queue changes. With Volcano a change of queue or priority takes effect at once and does not affect running pods.

    Raises pulumi.RunError if the cluster's Kubernetes is too old for the gateway, or if workers of a new version could
    not join a head that stays.

    The autoscaler owns the numbers of workers once it runs. No edit changes them, and they are not a difference in a
    preview. An update is refused if the autoscaler has scaled the cluster meanwhile and the update would revert that.

    Outputs:
        connection: namespace, head service, addresses.
        worker_groups: name, GPUs, CPUs, memory and maximum replicas of each worker group of the settings.
        largest_gpus: GPUs of the largest worker.
        status: KubeRay's state, the head's pod and Service, numbers of pods of head and workers, conditions
            (`readiness.status_summary`), as they were when it had become ready. If that takes longer than
            `ready_timeout`, a resource of its own fails with the reasons (`Reached`).
        state: the state in `status`.
        storage_namespace: the prefix of its keys in Redis, after `RAY`; None without fault tolerance.
    """

    connection: pulumi.Output[dict[str, str]]
    worker_groups: list[dict[str, Any]]
    largest_gpus: int
    status: pulumi.Output[dict[str, Any]]
    state: pulumi.Output[str | None]
    storage_namespace: pulumi.Output[str] | None

    def __init__(self, name: str, args: RayClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayCluster", name, None, opts)
        settings = args.settings
        itself = the_object(args.objects, RAY_CLUSTER)
        spec = itself.body["spec"]
        if not requires_token(itself.body):
            pulumi.log.warn(_OPEN.format(settings.name), resource=self)
        if args.scaled and (why := cannot_join(settings.updates.strategy, args.scaled.spec, spec)):
            raise pulumi.RunError(f"RayCluster {settings.name!r}: {why}")
        queued = _queued(itself.body, args.scheduling)
        keys = self._storage_namespace(name, args, spec)
        sent = request(itself.body, args.scaled, field_manager(), Later(args.service_account, keys), queued=queued)
        own = pulumi.ResourceOptions(parent=self)
        made: dict[str, pulumi.Resource] = {}
        for each in args.objects:
            if each is itself:
                given = replace(each, body=in_namespace(sent.body, args.namespace))
                options = pulumi.ResourceOptions.merge(own, self._options(name, args, sent, opts))
            else:
                given, options = replace(each, body=in_namespace(each.body, args.namespace)), own
            made |= create(name, [given], options, made=made)
        cluster = made[RAY_CLUSTER]
        assert isinstance(cluster, KubernetesObject)
        if args.scheduling.backend == "volcano":
            gang = PodGroupArgs(
                args.namespace, settings.name, args.scheduling.queue, settings.priority_class, args.cluster.connection
            )
            PodGroup(f"{name}-pod-group", gang, pulumi.ResourceOptions(parent=self, depends_on=[cluster]))
        rolled = [] if queued and not sent.scales else self._rollout(name, args, sent.body, cluster)
        service, ports = head_service(settings.name, spec), head_ports(spec)
        groups = all_groups(settings, args.pools)
        self.connection = cluster.metadata.apply(lambda metadata: connection(metadata["namespace"], service, ports))
        self.worker_groups = [
            {
                "name": group.name,
                "gpus": group.gpus,
                "cpu": group.cpu,
                "memory": group.memory,
                "maxReplicas": group.max_replicas,
            }
            for group in groups
        ]
        self.largest_gpus = max((group.gpus for group in groups if group.max_replicas != 0), default=0)
        ready = Reached(
            f"{name}-ready",
            ReachedArgs(
                kind="RayCluster",
                namespace=args.namespace,
                name=settings.name,
                wait=self._wait(args, queued=queued),
                made=cluster,
                version=sent.version,
                connection=args.cluster.connection,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=rolled),
        )
        # Pulumi omits fields that are None.
        self.status = ready.status.apply(lambda status: {**status_summary(None), **(status or {})})
        self.state = self.status.apply(lambda status: status["state"])
        self.storage_namespace = keys
        self.register_outputs(
            {
                "connection": self.connection,
                "worker_groups": self.worker_groups,
                "largest_gpus": self.largest_gpus,
                "status": self.status,
                "state": self.state,
                "storage_namespace": keys,
            }
        )

    def _options(
        self, name: str, args: RayClusterArgs, sent: Request, opts: pulumi.ResourceOptions | None
    ) -> pulumi.ResourceOptions:
        """Options of the RayCluster itself: what it waits for, how its autoscaler's values are kept, and how it is
        deleted."""
        settings = args.settings
        authority = ClusterAuthorityArgs(settings.name, args.namespace, args.cluster.connection)
        needed = generated_authority(f"{name}-tls", settings.tls, authority, self)
        kept = pulumi.ResourceOptions(
            depends_on=[*needed, *dependencies(opts)],
            import_=args.import_id,
            ignore_changes=list(sent.ignored),
            hooks=scaling_hooks(name, args.cluster, settings.updates) if sent.scales else None,
        )
        return pulumi.ResourceOptions.merge(kept, deletion_options(sent.body))

    def _storage_namespace(self, name: str, args: RayClusterArgs, spec: Body) -> pulumi.Output[str] | None:
        if OPTIONS not in spec:
            return None
        if has_gateway(spec):
            try:
                check_kubernetes(args.cluster)
            except UnsupportedKubernetesError as error:
                raise pulumi.RunError(f"RayCluster {args.settings.name!r}: {error}") from error
        place = StorageNamespaceArgs(args.namespace, args.settings.name, args.cluster.connection)
        return StorageNamespace(f"{name}-storage-namespace", place, pulumi.ResourceOptions(parent=self)).name

    def _rollout(self, name: str, args: RayClusterArgs, body: Body, cluster: pulumi.Resource) -> list[pulumi.Resource]:
        """What exists once the rollout has replaced the old pods that the strategy allows."""
        settings = args.settings
        updates = settings.updates
        if updates.strategy == "none" or recreates(body["spec"]):
            return []
        desired = Desired(
            updates.strategy,
            seconds(updates.limit),
            parts(body["spec"]),
            settings.ray_version,
            settings.fault_tolerance,
        )
        rollout = RolloutArgs(args.namespace, settings.name, desired, args.cluster.connection)
        return [Rollout(f"{name}-rollout", rollout, pulumi.ResourceOptions(parent=self, depends_on=[cluster]))]

    def _wait(self, args: RayClusterArgs, *, queued: bool) -> Wait:
        async def until_settled(namespace: str, show: Callable[[str], None]) -> None:
            settings, operator = args.settings, args.operator_namespace
            limit = seconds(settings.ready_timeout)
            status = await until_ready(args.cluster, namespace, settings.name, operator, limit, show, queued)
            if status.get("state") == "suspended" and not settings.overrides.get("suspend"):
                pulumi.log.info("it is suspended, and stays so: `ray-platform wake` wakes it", resource=self)

        return until_settled


def _queued(body: Body, scheduling: Scheduling) -> bool:
    """Whether Kueue may suspend the RayCluster while it waits in a queue."""
    return scheduling.in_kueue and not body["spec"].get("suspend")


def connection(namespace: str, service: str, ports: Mapping[str, int]) -> dict[str, str]:
    """The addresses of a cluster with that head Service and these `ports`, for clients inside Kubernetes."""
    host = f"{service}.{namespace}.svc"
    return {
        "namespace": namespace,
        "headService": service,
        "rayAddress": f"ray://{host}:{ports['client']}",
        "dashboardUrl": f"http://{host}:{ports['dashboard']}",
        "jobsUrl": f"http://{host}:{ports['dashboard']}",
    }
