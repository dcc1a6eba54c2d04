"""What the cluster admin owns: operator, priorities, cluster-wide access, and the namespaces of tenants; or what this
stack knows about the platform of another stack.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.cluster import Cluster
from components.groups import ObjectsArgs, create_part
from components.kubernetes import create
from components.kubernetes_cluster import KubernetesCluster
from components.kueue.component import Kueue, KueueArgs
from components.objects import Object, Part
from components.operator.component import KubeRayOperator, KubeRayOperatorArgs
from components.queues.component import Queues, QueuesArgs
from components.redis.component import ExternalRedis, ExternalRedisArgs, RedisHa, RedisHaArgs
from components.state import whole
from components.volcano.component import Volcano, VolcanoArgs
from stacks.objects.ownership import Ownership
from stacks.objects.platform import NAMESPACE, parts_of_platform, parts_of_tenants
from stacks.objects.platform_outputs import PLATFORM_OUTPUTS, PlatformMismatchError, check
from stacks.objects.redis import RedisPart, redis_parts, redis_users, uses_redis
from stacks.objects.tenant import tenant_namespace
from stacks.program.facts import Facts
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class PlatformArgs:
    stack: StackSettings

    owns: Ownership = field(default_factory=Ownership)
    """Which of its resources this Pulumi stack has."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    facts: Facts = field(default_factory=Facts)


class Platform(pulumi.ComponentResource):
    """Scheduler of queues and gangs, KubeRay operator, priorities, cluster-wide access, and a namespace for each
    tenant.

    Namespaces belong here because they are cluster-scoped, and because an operator that watches only some namespaces
    needs its Role in them before it starts.

    Outputs:
        scheduler: the scheduler of queues and gangs, if the stack has one. The operator depends on Volcano, because it
            does not start without Volcano's CRDs. Kueue depends on the operator, because it looks for the operator's
            CRDs.
        operator: the operator.
        prerequisites: what RayClusters depend on, besides the Redis of their tenant.
        redis: by the tenants' names, the Redis that their RayClusters use; these depend on it.
        namespaces: the tenants' namespaces, by the tenants' names. The output of a namespace that the stack creates
            resolves once it exists.

    A stack of a group of tenants creates only what these tenants need; the platform's stack has created operator,
    scheduler and priorities before.
    """

    scheduler: Volcano | Kueue | None
    operator: KubeRayOperator | None
    prerequisites: list[pulumi.Resource]
    redis: dict[str, pulumi.ComponentResource]
    namespaces: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Platform", name, None, opts)
        stack, owns = args.stack, args.owns
        self._name, self._owns, self._cluster, self._facts = name, owns, args.cluster, args.facts
        parts = parts_of_platform(stack, pulumi.get_stack()) if owns.platform else parts_of_tenants(stack)
        self._parts = {part.name: part for part in parts}
        self.namespaces = {tenant.name: self._namespace(tenant) for tenant in owns.tenants(stack)}
        self._inside: dict[str, pulumi.Input[str]] = {
            tenant.namespace_name: self.namespaces[tenant.name] for tenant in owns.tenants(stack)
        }
        self.scheduler = self.operator = None
        self.prerequisites = []
        if owns.platform:
            self._cluster_wide(stack)
        if queues := self._queues():
            self.prerequisites.append(queues)
        self.redis = self._redis_of_tenants(stack)

    def _cluster_wide(self, args: StackSettings) -> None:
        mirrors = args.images.mirrors
        scheduler = self._facts.scheduler, self._facts.scheduler_manifest
        volcano = kueue = None
        if args.scheduler and args.scheduler.volcano:
            policies, own = self._policies("volcano"), pulumi.ResourceOptions(parent=self)
            found = VolcanoArgs(args.scheduler.volcano, self._cluster, policies, mirrors, *scheduler)
            volcano = Volcano(f"{self._name}-volcano", found, own)
        self.operator = operator = KubeRayOperator(
            f"{self._name}-kuberay",
            KubeRayOperatorArgs(
                settings=args.operator_in_force,
                ray_versions=args.ray_versions,
                namespaces=self._inside,
                policies=self._policies("kuberay"),
                cluster=self._cluster,
                mirrors=mirrors,
                judged=self._facts.operator,
                manifest=self._facts.operator_manifest,
            ),
            # The operator does not start without the CRDs of the scheduler that it creates PodGroups for.
            self._after(volcano),
        )
        if args.scheduler and args.scheduler.kueue:
            policies = self._policies("kueue")
            found_kueue = KueueArgs(args.scheduler.kueue, self._cluster, policies, mirrors, *scheduler)
            kueue = Kueue(f"{self._name}-kueue", found_kueue, self._after(operator))
        self.scheduler = volcano or kueue
        self._priorities = self._group("priorities", pulumi.ResourceOptions(parent=self))
        enforced = [self._group(part, pulumi.ResourceOptions(parent=self)) for part in ("restrictions", "admission")]
        # Their namespaces are created with the operator and the scheduler.
        self._group("access", self._after(operator, kueue, *enforced))
        self._group("monitoring", self._after(operator, kueue))
        self._group("log-store", pulumi.ResourceOptions(parent=self))
        self.prerequisites = [each for each in (operator, self._priorities, *enforced) if each]

    def _group(self, part: str, opts: pulumi.ResourceOptions) -> pulumi.Resource | None:
        if part not in self._parts:
            return None
        found = self._parts[part]
        return create_part(f"{self._name}-{part}", found, ObjectsArgs(found.objects), opts)

    def _after(self, *components: pulumi.Resource | None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=[whole(each) for each in components if each])

    def _policies(self, part: str) -> list[dict[str, Any]]:
        return [each.body for each in self._parts[part].objects]

    def _queues(self) -> Queues | None:
        part = self._parts.get("queues")
        here = [each for each in part.objects if self._is_here(each)] if part else []
        if not here and not (part and self._owns.platform):
            return None
        queues = QueuesArgs(here, self._inside, self._cluster.connection)
        return Queues(f"{self._name}-queues", queues, self._after(self.scheduler))

    def _is_here(self, each: Object) -> bool:
        """Whether this stack has an object of queues: in an environment of several stacks, a tenant's is in that of the
        tenant."""
        tenant = each.tenant or each.namespace
        return self._owns.has(tenant) if tenant else self._owns.platform

    def _redis_of_tenants(self, args: StackSettings) -> dict[str, pulumi.ComponentResource]:
        users = [tenant for tenant in redis_users(args) if self._owns.has(tenant.namespace_name)]
        if args.redis and args.redis.external and users:
            arguments = ExternalRedisArgs(
                args.redis.external,
                {tenant.namespace_name: self.namespaces[tenant.name] for tenant in users},
                self._cluster,
                self._facts.redis,
            )
            external = ExternalRedis(f"{self._name}-redis", arguments, pulumi.ResourceOptions(parent=self))
            return {tenant.name: external for tenant in users}
        here = [redis for redis in redis_parts(args) if not redis.of_tenant or self._owns.has(redis.namespace)]
        made = [(redis, self._redis(args, redis, self._parts[f"redis-{redis.namespace}"])) for redis in here]
        return {tenant.name: each for redis, each in made for tenant in redis.tenants if uses_redis(tenant)}

    def _redis(self, args: StackSettings, redis: RedisPart, part: Part) -> RedisHa:
        name, namespace = f"{self._name}-{part.name}", self._inside.get(redis.namespace, redis.namespace)
        first = [each for each in part.objects if each.name == NAMESPACE]
        for made in create(name, first, pulumi.ResourceOptions(parent=self)).values():
            namespace = made.urn.apply(lambda _: redis.namespace)
        return RedisHa(
            name,
            RedisHaArgs(
                settings=redis.settings,
                objects=[each for each in part.objects if each.name != NAMESPACE],
                namespace=namespace,
                namespace_name=redis.namespace,
                tenants={tenant.namespace_name: self.namespaces[tenant.name] for tenant in redis.tenants},
                connection=self._cluster.connection,
            ),
            # The operator's namespace is created with the operator; the PriorityClasses of the pods are not.
            self._after(self.operator, self._priorities if self._owns.platform else None),
        )

    def _namespace(self, tenant: TenantSettings) -> pulumi.Output[str]:
        namespace = tenant.namespace_name
        if not tenant.create_namespace:
            return pulumi.Output.from_input(namespace)
        [made] = create(self._name, [tenant_namespace(tenant)], pulumi.ResourceOptions(parent=self)).values()
        # The URN is known in a preview, the id is not.
        return made.urn.apply(lambda _: namespace)


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
