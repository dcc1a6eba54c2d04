"""What the platform of a stack consists of: its components in the order of creation, each with all of its objects. Pure
functions.

Which objects exist, in which order, and from which settings they follow is decided here and in the functions of
components/ that this file calls. Not included, because they are not known offline: the manifests of KubeRay, Volcano
and Kueue themselves, which come from their kustomize tree or file, and Secrets, whose content is generated or read from
the cluster.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from components.access.admission import restrictions
from components.access.manifests import admin_of_scheduler, cluster_access, cluster_admin_inside
from components.bodies import in_namespace
from components.objects import Object, Part, named
from components.priority_classes.settings import priority_classes
from components.queues.manifests import queue_objects
from components.redis.manifests import namespace as redis_namespace
from components.redis.manifests import redis_objects
from core.body import Body
from core.problems import Path
from stacks.cached import cached
from stacks.objects.access import enforced, restricted
from stacks.objects.cml import without_kubernetes
from stacks.objects.log_store import log_store
from stacks.objects.monitoring import objects_of_monitoring, scraper_of
from stacks.objects.network import operator_policies, redis_policies, scheduler_policies
from stacks.objects.queues import queues_of
from stacks.objects.redis import RedisPart, redis_parts, shared_redis
from stacks.settings import StackSettings

NAMESPACE = "namespace"
"""Name of the object that is the Namespace of a Redis."""


@cached
def parts_of_platform(stack: StackSettings, name: str) -> tuple[Part, ...]:
    """The components of a stack's platform, or of the whole environment's if it is split; places are below
    `ray-platform:`.

    `name`: of the Pulumi stack, which is in the names of objects. Raises Problems as `rendered` does.
    """
    if stack.platform or without_kubernetes(stack):
        return ()
    return (*_finished(stack, _cluster_wide(stack, name)), *parts_of_tenants(stack))


@cached
def parts_of_tenants(stack: StackSettings) -> tuple[Part, ...]:
    """Those in which tenants have objects of their own: if the environment is split, each stack has its tenants'."""
    return _finished(stack, _of_tenants(stack))


def _finished(stack: StackSettings, parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(part.finished(None, stack.images.mirrors) for part in parts)


def _cluster_wide(stack: StackSettings, name: str) -> Iterator[Part]:
    network: Path = ("network",)
    yield Part("KubeRayOperator", "kuberay", tuple(named(operator_policies(stack), network)))
    if stack.scheduler:
        kind = "Volcano" if stack.scheduler.volcano else "Kueue"
        yield Part(kind, kind.lower(), tuple(named(scheduler_policies(stack), network)))
    yield Part("PriorityClasses", "priorities", tuple(named(priority_classes(stack.priorities), ("priorityClasses",))))
    yield Part("ClusterAccess", "access", tuple(_access(stack)))
    yield Part("TenantRestrictions", "restrictions", tuple(restrictions(name, restricted(stack))))
    if stack.admission_policies:
        yield Part("AdmissionPolicies", "admission", tuple(named(enforced(stack), ("admissionPolicies",))))
    if stack.monitoring:
        yield Part("Monitoring", "monitoring", tuple(_in_stages(objects_of_monitoring(stack), "monitoring")))
    if stack.log_store_namespace:
        yield Part("LogStore", "log-store", tuple(_in_stages(log_store(stack), "logs")))


def _of_tenants(stack: StackSettings) -> Iterator[Part]:
    if stack.scheduler:
        yield Part("Queues", "queues", tuple(queue_objects(stack.scheduler.backend, queues_of(stack), stack.nodes)))
    for redis in redis_parts(stack):
        yield Part("RedisHa", f"redis-{redis.namespace}", tuple(_redis(stack, redis)))


def _access(stack: StackSettings) -> Iterator[Object]:
    admins, inside = stack.access.cluster_admins, stack.operator.namespace
    redis, owns_kinds = shared_redis(stack), stack.operator.install == "manifests"
    has_redis = redis is not None and redis.namespace == inside
    made = cluster_access(admins, inside, owns_kinds=owns_kinds, redis=has_redis)
    if stack.scheduler and (program := stack.scheduler.configured).install == "manifests":
        of_scheduler = admin_of_scheduler(admins, program.namespace, program.CONFIG_MAP)
        made |= {f"cluster-admin-of-the-scheduler-{part}": body for part, body in of_scheduler.items()}
    for name, body in made.items():
        yield Object(name, body, ("operator",) if name.startswith("aggregate-") else ("access", "clusterAdmins"))


def _in_stages(bodies: list[Body], place: str) -> Iterator[Object]:
    """The objects of Prometheus, or of the log store: the namespace first, and the pods last, after what they do not
    start without and what protects them."""
    stages: tuple[list[Object], ...] = ([], [], [], [])
    for each in named(bodies, (place,)):
        stages[_STAGES.get(each.body["kind"], 2)].append(each)
    first, needed, others, pods = stages
    yield from first
    yield from (replace(each, after=tuple(it.name for it in first)) for each in (*needed, *others))
    yield from (replace(each, after=tuple(it.name for it in needed)) for each in pods)


_STAGES = {"Namespace": 0, "NetworkPolicy": 1, "ServiceAccount": 1, "ConfigMap": 1, "StatefulSet": 3, "Deployment": 3}
"""The order of their kinds; those that are not named are in between."""


def _redis(stack: StackSettings, redis: RedisPart) -> Iterator[Object]:
    if redis.own_namespace:
        yield Object(NAMESPACE, redis_namespace(redis.namespace), ("redis", "namespace"))
        for part, body in cluster_admin_inside(stack.access.cluster_admins, redis.namespace, redis=True).items():
            yield Object(f"cluster-admin-{part}", body, ("access", "clusterAdmins"))
        yield from named(scraper_of(stack, redis.namespace), ("monitoring",))
    priority, policies = stack.priorities.names.head, redis_policies(stack, redis)
    for each in redis_objects(redis.settings, redis.namespace, redis.clusters, priority, policies):
        body = in_namespace(each.body, redis.namespace)
        yield replace(each, body=body, place=("redis", *each.place))
