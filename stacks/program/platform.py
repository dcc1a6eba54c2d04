"""What the cluster admin owns: operator, priorities, cluster-wide access, and the namespaces of tenants; or what this
stack knows about the platform of another stack.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.access.component import (
    ClusterAccess,
    ClusterAccessArgs,
    TenantRestrictions,
    TenantRestrictionsArgs,
)
from components.admission_policies.component import AdmissionPolicies, AdmissionPoliciesArgs
from components.cluster import Cluster
from components.crds.provider import Rows, explain, rows_of_this_stack
from components.kubernetes import KubernetesObject
from components.kueue.component import Kueue, KueueArgs
from components.monitoring.component import Monitoring, MonitoringArgs
from components.operator.component import KubeRayOperator, KubeRayOperatorArgs
from components.priority_classes.component import PriorityClasses
from components.queues.component import Queues, QueuesArgs
from components.queues.settings import Backend, Queue
from components.redis.component import ExternalRedis, ExternalRedisArgs, RedisHa, RedisHaArgs
from components.redis.manifests import namespace as redis_namespace
from components.state import whole
from components.volcano.component import Volcano, VolcanoArgs
from stacks.objects.access import installed_namespaces, restricted, tenants_namespaces
from stacks.objects.monitoring import objects_of_monitoring
from stacks.objects.network import operator_policies, redis_policies, scheduler_policies
from stacks.objects.ownership import Part
from stacks.objects.platform_outputs import PLATFORM_OUTPUTS, PlatformMismatchError, check
from stacks.objects.queues import queues_of
from stacks.objects.redis import RedisPart, redis_parts, redis_users, uses_redis
from stacks.objects.stack import tenant_namespace
from stacks.settings import StackSettings, TenantSettings


class Platform(pulumi.ComponentResource):
    """Scheduler of queues and gangs, KubeRay operator, priorities, cluster-wide access, and a namespace for each
    tenant.

    Namespaces belong here because they are cluster-scoped, and because an operator that watches only some namespaces
    needs its Role in them before it starts.

    Outputs:
        rows: what this `up` does with CRDs that are single resources in the state.
        scheduler: the scheduler of queues and gangs, if the stack has one. The operator depends on Volcano, because it
            does not start without Volcano's CRDs. Kueue depends on the operator, because it looks for the operator's
            CRDs.
        operator: the operator; RayClusters depend on it.
        priority_classes: the PriorityClasses of heads and workers; RayClusters depend on them.
        queues: the queues of the cluster; RayClusters depend on them. None: there is no scheduler of queues.
        restrictions: what the API server refuses in the tenants' namespaces; RayClusters depend on it.
        admission_policies: the rules that the API server enforces, if they are set; RayClusters depend on them.
        redis: by the tenants' names, the Redis that their RayClusters use; these depend on it.
        namespaces: the tenants' namespaces, by the tenants' names. The output of a namespace that the stack creates
            resolves once it exists.

    A stack of a group of tenants creates only what these tenants need; the platform's stack has created operator,
    scheduler and priorities before.
    """

    rows: Rows
    scheduler: Volcano | Kueue | None
    operator: KubeRayOperator | None
    priority_classes: PriorityClasses | None
    queues: Queues | None
    restrictions: TenantRestrictions | None
    admission_policies: AdmissionPolicies | None
    redis: dict[str, pulumi.ComponentResource]
    namespaces: dict[str, pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        args: StackSettings,
        part: Part,
        cluster: Cluster,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ray-platform:index:Platform", name, None, opts)
        self._part, self._cluster = part, cluster
        self.namespaces = {tenant.name: self._namespace(name, tenant) for tenant in part.tenants(args)}
        self.scheduler = self.operator = self.priority_classes = self.restrictions = self.admission_policies = None
        self.rows = "none"
        if part.platform:
            self._cluster_wide(name, args)
        self.queues = self._queues(name, args)
        self.redis = self._redis_of_tenants(name, args)
        self.register_outputs({})

    def _cluster_wide(self, name: str, args: StackSettings) -> None:
        self.rows = rows_of_this_stack()
        explain(self.rows)
        volcano = self._volcano(name, args)
        self.operator = operator = KubeRayOperator(
            f"{name}-kuberay",
            KubeRayOperatorArgs(
                settings=args.operator_in_force,
                ray_versions=tuple(cluster.ray_version for tenant in args.tenants for cluster in tenant.all_clusters),
                namespaces={tenant.namespace_name: self.namespaces[tenant.name] for tenant in self._part.tenants(args)},
                policies=operator_policies(args),
                cluster=self._cluster,
                rows=self.rows,
            ),
            # The operator does not start without the CRDs of the scheduler that it creates PodGroups for.
            pulumi.ResourceOptions(parent=self, depends_on=[whole(volcano)] if volcano else []),
        )
        self.scheduler = volcano or self._kueue(name, args, operator)
        self.priority_classes = PriorityClasses(
            f"{name}-priorities", args.priorities, pulumi.ResourceOptions(parent=self)
        )
        ClusterAccess(
            f"{name}-access",
            ClusterAccessArgs(
                settings=args.access,
                operator_namespace=args.operator.namespace,
                owns_kinds=args.operator.install == "manifests",
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[whole(operator)]),
        )
        self.restrictions = TenantRestrictions(
            f"{name}-restrictions",
            TenantRestrictionsArgs(pulumi.get_stack(), restricted(args)),
            pulumi.ResourceOptions(parent=self),
        )
        self.admission_policies = self._admission_policies(name, args)
        if args.monitoring:
            Monitoring(
                f"{name}-monitoring",
                MonitoringArgs(objects_of_monitoring(args), self._cluster),
                # The operator's namespace is created with the operator.
                pulumi.ResourceOptions(parent=self, depends_on=[whole(operator)]),
            )

    def _volcano(self, name: str, args: StackSettings) -> Volcano | None:
        if args.scheduler is None or args.scheduler.volcano is None:
            return None
        volcano = VolcanoArgs(args.scheduler.volcano, self._cluster, scheduler_policies(args), self.rows)
        return Volcano(f"{name}-volcano", volcano, pulumi.ResourceOptions(parent=self))

    def _kueue(self, name: str, args: StackSettings, operator: KubeRayOperator) -> Kueue | None:
        if args.scheduler is None or args.scheduler.kueue is None:
            return None
        kueue = KueueArgs(args.scheduler.kueue, self._cluster, scheduler_policies(args), self.rows)
        return Kueue(f"{name}-kueue", kueue, pulumi.ResourceOptions(parent=self, depends_on=[whole(operator)]))

    def _queues(self, name: str, args: StackSettings) -> Queues | None:
        queues = queues_of(args)
        if args.scheduler is None or not (self._part.platform or _any_here(queues, args.scheduler.backend, self._part)):
            return None
        namespaces = {tenant.namespace_name: self.namespaces[tenant.name] for tenant in self._part.tenants(args)}
        return Queues(
            f"{name}-queues",
            QueuesArgs(
                args.scheduler.backend,
                queues,
                args.nodes,
                namespaces,
                self._cluster.connection,
                cluster_wide=self._part.platform,
                has=self._part.has,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[whole(self.scheduler)] if self.scheduler else []),
        )

    def _admission_policies(self, name: str, args: StackSettings) -> AdmissionPolicies | None:
        if args.admission_policies is None:
            return None
        policies = AdmissionPoliciesArgs(args.admission_policies, tenants_namespaces(args), installed_namespaces(args))
        return AdmissionPolicies(f"{name}-admission", policies, pulumi.ResourceOptions(parent=self))

    def _redis_of_tenants(self, name: str, args: StackSettings) -> dict[str, pulumi.ComponentResource]:
        users = [tenant for tenant in redis_users(args) if self._part.has(tenant.namespace_name)]
        if args.redis and args.redis.external and users:
            arguments = ExternalRedisArgs(
                args.redis.external,
                {tenant.namespace_name: self.namespaces[tenant.name] for tenant in users},
                self._cluster,
            )
            external = ExternalRedis(f"{name}-redis", arguments, pulumi.ResourceOptions(parent=self))
            return {tenant.name: external for tenant in users}
        here = [part for part in redis_parts(args) if not part.of_tenant or self._part.has(part.namespace)]
        made = [(part, self._redis(name, args, part)) for part in here]
        return {tenant.name: redis for part, redis in made for tenant in part.tenants if uses_redis(tenant)}

    def _redis(self, name: str, args: StackSettings, part: RedisPart) -> RedisHa:
        namespace: pulumi.Input[str] = part.namespace
        if part.of_tenant:
            namespace = self.namespaces[part.tenants[0].name]
        elif part.own_namespace:
            body = redis_namespace(part.namespace)
            made = KubernetesObject(f"{name}-namespace-{part.namespace}", body, pulumi.ResourceOptions(parent=self))
            namespace = made.id.apply(lambda _: part.namespace)
        return RedisHa(
            f"{name}-redis-{part.namespace}",
            RedisHaArgs(
                settings=part.settings,
                namespace=namespace,
                namespace_name=part.namespace,
                tenants={tenant.namespace_name: self.namespaces[tenant.name] for tenant in part.tenants},
                clusters=part.clusters,
                priority_class=args.priorities.names.head,
                policies=redis_policies(args, part),
                connection=self._cluster.connection,
            ),
            # The operator's namespace is created with the operator; the PriorityClasses of the pods are not.
            pulumi.ResourceOptions(
                parent=self, depends_on=[whole(each) for each in (self.operator, self.priority_classes) if each]
            ),
        )

    def _namespace(self, name: str, tenant: TenantSettings) -> pulumi.Output[str]:
        namespace = tenant.namespace_name
        if not tenant.create_namespace:
            return pulumi.Output.from_input(namespace)
        made = KubernetesObject(
            f"{name}-namespace-{namespace}", tenant_namespace(tenant), pulumi.ResourceOptions(parent=self)
        )
        return made.id.apply(lambda _: namespace)


def _any_here(queues: Iterable[Queue], backend: Backend, part: Part) -> bool:
    """Whether a stack of tenants creates any object of queues: a tenant's own queue, or Kueue's objects in each
    namespace."""
    local = backend == "kueue"
    return any(
        part.has(queue.name) if queue.of_tenant else local and any(map(part.has, queue.namespaces)) for queue in queues
    )


@dataclass(frozen=True)
class OtherPlatform:
    """A platform of another stack. None of its objects are created by this stack or read from the cluster."""

    operator: pulumi.Input[Mapping[str, Any]]
    """Version and namespace of the operator."""

    namespaces: Mapping[str, pulumi.Input[str]]
    """The tenants' namespaces, by the tenants' names."""

    accounts: Mapping[str, pulumi.Input[str | None]]
    """The accounts that the tenants' RayClusters run as, by the tenants' names."""


def other_platform(settings: StackSettings) -> OtherPlatform:
    """The platform as set in the stack file, or as reported by the platform's stack if `platform` names it.

    All users of that stack's outputs wait for the check that both stacks match. If they do not, the check raises
    pulumi.RunError, also in previews.
    """
    reference = settings.platform.stack if settings.platform else None
    if reference is None:
        operator = {"version": settings.operator.version, "namespace": settings.operator.namespace}
        return OtherPlatform(operator, {tenant.name: tenant.namespace_name for tenant in settings.tenants}, {})
    stack = pulumi.StackReference(reference)
    reported = pulumi.Output.all(**{name: stack.get_output(name) for name in PLATFORM_OUTPUTS}).apply(
        lambda outputs: _checked(settings, reference, outputs)
    )
    tenants = {tenant.name: reported["tenants"][tenant.namespace_name] for tenant in settings.tenants}
    return OtherPlatform(
        reported["operator"],
        {name: tenant["namespace"] for name, tenant in tenants.items()},
        # The outputs of a stack contain no nulls: a value that is None is missing.
        {name: tenant.apply(lambda known: known.get("serviceAccount")) for name, tenant in tenants.items()},
    )


def _checked(settings: StackSettings, platform: str, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        check(settings, platform, outputs)
    except PlatformMismatchError as error:
        raise pulumi.RunError(str(error)) from error
    return outputs
