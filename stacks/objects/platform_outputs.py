"""Separate stacks of tenants, on the platform of another stack: which settings they may have, and which outputs they
read.

Pure functions. Both sides of the outputs that one stack passes to the other are here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from core.problems import Path, Problem
from core.versions import release_of
from stacks.objects.logs import logs_of
from stacks.objects.queues import queue_of, scheduler_of, usable
from stacks.objects.ray_clusters import rendered, tenants_images_not_allowed
from stacks.objects.redis import redis_connection
from stacks.settings import StackSettings, TenantSettings

_OWN = {
    *("extends", "kubernetes", "operator", "priority_classes", "nodes", "images", "platform", "policies", "redis"),
    *("scheduler", "logs", "tenants"),
}
"""Settings that such a stack may have; `operator`, `priority_classes`, `redis`, `scheduler` and `logs` describe the
existing ones."""

_OF_THE_OPERATOR = {"version", "namespace", "watch_namespaces", "batch_scheduler", "feature_gates"}
"""Settings of the operator that decide how it validates and finds RayClusters."""

_REQUIRED_OUTPUTS = ("operator", "priorityClasses", "tenants")

PLATFORM_OUTPUTS = (*_REQUIRED_OUTPUTS, "scheduler")
"""Outputs of the platform's stack that tenants' separate stacks are validated against."""


class PlatformMismatchError(Exception):
    """The stack does not match the platform that it names; the text has a line for each reason."""


def problems_of_platform(stack: StackSettings) -> Iterator[Problem]:
    """Settings that belong to the platform's stack, if that is another one."""
    if stack.platform is None:
        return
    owner = f"stack {stack.platform.stack}" if stack.platform.stack else "the platform's stack"
    yield from _not_here((), stack, _OWN, owner)
    yield from _not_here(("operator",), stack.operator, _OF_THE_OPERATOR, owner)
    for index, tenant in enumerate(stack.tenants):
        # `createNamespace: false` is allowed here: the namespace exists.
        own = tenant.IN_ITS_OWN_STACK if tenant.create_namespace else {*tenant.IN_ITS_OWN_STACK, "create_namespace"}
        yield from _not_here(("tenants", index), tenant, own, owner)
        if tenant.queue and tenant.queue.name is None:
            message = f"a queue belongs to the platform: set it in {owner}, and here only its name"
            yield Problem(("tenants", index, "queue"), None, message, "platform-of-another-stack")
        for at, storage in enumerate(tenant.storage):
            if storage.claim is None:
                message = f"storage belongs to the platform: set it in {owner}, and here claim: {storage.name}"
                named = ("tenants", index, "storage", at, "name")
                yield Problem(named, storage.name, message, "platform-of-another-stack")
        for at, cluster in enumerate(tenant.clusters):
            if cluster.idle_termination_options:
                message = f"needs a pod with rights of its own, which {owner} alone creates: describe the cluster there"
                options = ("tenants", index, "clusters", at, "idleTerminationOptions")
                yield Problem(options, None, message, "platform-of-another-stack")
            if cluster.auth_options and cluster.auth_options.enable_k8s_token_auth and not cluster.service_account:
                message = (
                    "pods that authenticate each other with tokens of Kubernetes need an account with its own rights, "
                    f"which {owner} creates: name it in serviceAccount"
                )
                path = ("tenants", index, "clusters", at, "authOptions", "enableK8sTokenAuth")
                yield Problem(path, True, message, "account-of-the-platform")


def _not_here(path: Path, settings: BaseModel, own: Iterable[str], owner: str) -> Iterator[Problem]:
    for field in sorted(settings.model_fields_set - set(own)):
        message = f"cannot be set in this stack, because the platform belongs to another stack: set it in {owner}"
        yield Problem((*path, to_camel(field)), None, message, "platform-of-another-stack")


def exported(stack: StackSettings) -> dict[str, Any]:
    """The outputs that the platform's stack exports: the PriorityClasses and the scheduler, and by namespace what each
    tenant has and may use."""
    names = stack.priorities.names
    return {
        "priorityClasses": {"head": names.head, "worker": names.worker},
        **({"scheduler": {"name": stack.scheduler.backend}} if stack.scheduler else {}),
        "tenants": {tenant.namespace_name: _outputs_of(stack, tenant) for tenant in stack.tenants},
    }


def _outputs_of(stack: StackSettings, tenant: TenantSettings) -> dict[str, Any]:
    return {
        "tenant": tenant.name,
        "namespace": tenant.namespace_name,
        "serviceAccount": tenant.ray_deployer.service_account if tenant.ray_deployer else None,
        "clusterNames": list(tenant.cluster_names),
        "jobNames": list(tenant.job_names),
        "serviceNames": list(tenant.service_names),
        "registries": list(tenant.images.registries),
        "pullSecrets": list(tenant.images.pull_secrets),
        "redis": _redis(stack, tenant),
        "queue": queue_of(tenant),
        "queues": usable(stack, tenant),
        **({"schedulers": list(tenant.scheduler)} if tenant.scheduler else {}),
        **({"logs": logs.own_namespace or True} if (logs := logs_of(stack, tenant)) else {}),
    }


def _redis(stack: StackSettings, tenant: TenantSettings) -> list[str]:
    """How a tenant's RayClusters reach Redis, for both sides to compare; empty if there is none."""
    there = redis_connection(stack, tenant)
    if there is None:
        return []
    master = f"master {there.master_name}" if there.master_name else "no Sentinels"
    gateway = "gateway" if stack.redis and stack.redis.used_gateway else "no gateway"
    return [*there.nodes, master, f"Secret {there.secret}", "TLS" if there.tls else "no TLS", gateway]


def check(stack: StackSettings, platform: str, outputs: Mapping[str, Any]) -> None:
    """Validates a stack against the outputs of the platform's stack.

    `platform`: that stack's name. `outputs`: those named in PLATFORM_OUTPUTS, None if one is missing.
    Raises PlatformMismatchError.
    """
    if missing := [name for name in _REQUIRED_OUTPUTS if outputs.get(name) is None]:
        raise PlatformMismatchError(
            f"stack {platform} has no output {', '.join(missing)}: set platform.stack to the platform's stack, and run "
            "`pulumi up` there with this version of the program"
        )
    if found := [
        *_versions(stack, outputs),
        *_scheduler(stack, outputs.get("scheduler")),
        *_tenants(stack, outputs["tenants"]),
    ]:
        raise PlatformMismatchError("\n  ".join([f"this stack does not match stack {platform}:", *found]))


def _versions(stack: StackSettings, outputs: Mapping[str, Any]) -> Iterator[str]:
    live, configured = outputs["operator"]["version"], stack.operator.version
    if release_of(live) != release_of(configured):
        yield f"operator.version is {configured}, and the platform has {live}: set it to {live}"
    names = stack.priorities.names
    for role, name in (("head", names.head), ("worker", names.worker)):
        if (of_platform := outputs["priorityClasses"].get(role)) != name:
            yield (
                f"priorityClasses.{role} is {name or 'none'}, and the platform has {of_platform or 'none'}: "
                f"{f'set it to {of_platform}' if of_platform else 'set priorityClasses.install to none'}"
            )


def _scheduler(stack: StackSettings, output: Mapping[str, Any] | None) -> Iterator[str]:
    configured, live = stack.scheduler.backend if stack.scheduler else None, output["name"] if output else None
    if configured != live:
        fix = f"set scheduler to {{{live}: {{}}}}" if live else "remove scheduler"
        yield f"scheduler is {configured or 'none'}, and the platform has {live or 'none'}: {fix}"


def _queues(stack: StackSettings, tenant: TenantSettings, platform: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the queues that a tenant's RayClusters wait in, and of their schedulers."""
    known = ", ".join(platform.get("queues") or ()) or "none"
    allowed = platform.get("schedulers") or ()
    for cluster in tenant.all_clusters:
        queue, used = queue_of(tenant, cluster), scheduler_of(stack, tenant, cluster)
        if allowed and used not in allowed:
            yield (
                f"RayCluster {cluster.name!r} would be scheduled by {used}, and the tenant may use "
                f"{' and '.join(allowed)}: set its scheduler or queue, or add {used} to the tenant's scheduler there"
            )
        elif queue is not None and queue not in (platform.get("queues") or ()):
            yield (
                f"RayCluster {cluster.name!r} would wait in queue {queue!r}, and the tenant may use {known}: use one "
                "of these, or add the namespace to that queue's allowedNamespaces there"
            )
        elif queue is None and cluster.scheduler is None and (own := platform.get("queue")):
            yield (
                f"RayCluster {cluster.name!r} names no queue, and the tenant's is {own!r}: add queue: {own} to the "
                "tenant"
            )


def _names(tenant: TenantSettings, there: Mapping[str, Any]) -> Iterator[str]:
    """Names that the platform does not know, so that nobody would have access, or no packet would pass."""
    named = (
        ("RayCluster", "clusterNames", [each.name for each in tenant.clusters]),
        ("RayJob", "jobNames", [job.name for job in tenant.jobs if job.cluster]),
        ("RayService", "serviceNames", [service.name for service in tenant.services]),
    )
    for kind, key, names in named:
        known = there.get(key) or ()
        for name in names:
            if name not in known:
                yield (
                    f"{kind} {name!r} is not in {key} of tenant {there['tenant']!r} ({', '.join(known) or 'none'}), so "
                    "nobody would have access: use one of these, or add it there"
                )


def _tenants(stack: StackSettings, tenants: Mapping[str, Any]) -> Iterator[str]:
    for tenant in stack.tenants:
        there = tenants.get(tenant.namespace_name)
        if there is None:
            known = ", ".join(sorted(tenants)) or "none"
            yield f"namespace {tenant.namespace_name!r} belongs to no tenant there; namespaces of tenants: {known}"
            continue
        yield from _names(tenant, there)
        for cluster in tenant.all_clusters:
            body = rendered(stack, tenant, cluster)
            for _, image in tenants_images_not_allowed(body, there["registries"], logs_of(stack, tenant)):
                allowed = ", ".join(there["registries"])
                yield f"RayCluster {cluster.name!r} has image {image!r}, and the tenant may use {allowed}"
        kept = [cluster.name for cluster in tenant.all_clusters if cluster.fault_tolerance]
        if kept and (own := _redis(stack, tenant)) != (of_platform := there.get("redis") or []):
            yield (
                f"RayCluster {kept[0]!r} would use Redis at {', '.join(own)}, and the platform has "
                f"{', '.join(of_platform) or 'none'}: set redis as it is there, or remove faultTolerance"
            )
        logs, others = logs_of(stack, tenant), there.get("logs")
        if bool(logs) != bool(others):
            fix = "set logs as it is there" if others else "remove logs, or set it there first"
            yield f"the platform has {'' if others else 'no '}logs for tenant {there['tenant']!r}: {fix}"
        elif logs and (logs.own_namespace or True) != others:
            where = f"its log store in namespace {others}" if isinstance(others, str) else "no log store"
            yield f"the platform has {where}: set logs.mode and logs.namespace as they are there"
        yield from _queues(stack, tenant, there)
        if lacking := [name for name in there["pullSecrets"] if name not in tenant.images.pull_secrets]:
            yield f"images.pullSecrets of tenant {tenant.name!r} lacks {', '.join(lacking)}: add it"
