"""What a valid stack file should change soon: `check` and previews report it, and refuse nothing."""

import json
from collections.abc import Iterable, Iterator
from datetime import date
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from components.access.neighbours import ANNOTATIONS, OF_PODS
from components.monitoring.prometheus import LOG
from components.ray_cluster.origin import setting_at
from components.ray_cluster.settings import RayClusterSettings
from components.redis.settings import max_memory, resources
from components.workloads import most_bytes
from core.body import ReadOnlyBody
from core.images import mirror_of
from core.nodes import GPU_RESOURCE
from core.problems import Finding, Path
from core.quantities import amount
from core.stack_file import PREFIX, StackFile
from core.types import METADATA_SERVICES, seconds
from kuberay.advice import advice_on_cluster, advice_on_job, advice_on_service
from kuberay.rules import groups_of
from kuberay.schedulers import named_in
from policies.configuration import PoliciesSettings, RuleException
from stacks.checks.service_advice import advice_on_services
from stacks.checks.storage_advice import advice_on_storage
from stacks.objects.ray_clusters import rendered, rendered_job, rendered_service
from stacks.objects.redis import redis_parts
from stacks.objects.stack import images_of, without_mirrors
from stacks.settings import StackSettings, TenantSettings

LONGEST_VARIABLE = 128 * 2**10
"""Bytes of an environment variable with its name and a zero at its end (Linux: MAX_ARG_STRLEN in binfmts.h)."""

_CONFIGURATION = "PULUMI_CONFIG="
"""The variable in which Pulumi's language host passes the configuration: JSON of texts, which are JSON for mappings."""


def advice(stack: StackSettings, name: str, today: date) -> Iterator[Finding]:
    """Exceptions of policies that have expired or match nothing of the stack, and settings that policies refuse.
    `name`: the stack's."""
    for at, each in enumerate(stack.policies.exceptions):
        path: Path = (f"{PREFIX}policies", "exceptions", at)
        if not each.holds(today):
            yield _expired((*path, "expires"), each.expires)
        elif not each.fits:
            message = f"rule {each.rule} never applies to this kind, so that the exception has no effect: remove it"
            yield Finding((*path, "object"), each.object, message, "unused-exception")
        elif _matches_nothing(stack, each):
            message = "is not in the stack, so that the exception has no effect: correct its name, or remove it"
            yield Finding((*path, "object"), each.object, message, "unused-exception")
    of_admission = stack.admission_policies.exceptions if stack.admission_policies else ()
    for at, exception in enumerate(of_admission):
        if exception.expires < today:
            yield _expired((f"{PREFIX}admissionPolicies", "exceptions", at, "expires"), exception.expires)
    yield from _tokens_in_workers(stack, name, today)
    yield from _jobs_with_volcano(stack)
    yield from advice_on_storage(stack)
    yield from advice_on_services(stack)
    yield from _metadata_services(stack)
    yield from _open_clusters(stack)
    yield from _refused_by_the_platform(stack)
    yield from _of_objects(stack)
    yield from _labels_of_schedulers(stack)
    yield from _schedules_that_may_stop(stack)
    yield from _options_of_unknown_code(stack)
    yield from _long_waits(stack)
    yield from _quotas_beyond_nodes(stack)
    yield from _unused_mirrors(stack)
    yield from _volumes_of_redis(stack)
    yield from _credentials_in_plain_text(stack)
    yield from _closed_receivers(stack)
    yield from _suspended_at_once(stack)
    yield from _of_prometheus(stack)
    if not stack.model_fields_set:
        operator = stack.operator
        message = (
            f"the file sets nothing, so that `up` installs KubeRay {operator.version} in namespace "
            f"{operator.namespace}, and no RayCluster: add tenants; for Ray outside Kubernetes, cml or externalClusters"
        )
        yield Finding((), None, message, "empty-stack")


def _clusters(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, RayClusterSettings]]:
    """All RayClusters, each with its place in the stack file and its tenant."""
    for at, tenant in enumerate(stack.tenants):
        for place, cluster in tenant.placed_clusters:
            yield (f"{PREFIX}tenants", at, *place), tenant, cluster


def _of_objects(stack: StackSettings) -> Iterator[Finding]:
    """Advice on rendered objects, each at its setting."""
    for path, tenant, cluster in _clusters(stack):
        body = rendered(stack, tenant, cluster)
        for each in advice_on_cluster(body):
            inside = setting_at(cluster, stack.nodes, body["spec"], each.path) if len(each.path) > 1 else ()
            yield Finding((*path, *inside), each.value, each.message, each.rule)
    for at, tenant in enumerate(stack.tenants):
        for place, job in tenant.placed_jobs:
            runs_on = None if job.external_cluster else tenant.cluster_of(job)
            version = runs_on.ray_version if runs_on else None
            for each in advice_on_job(rendered_job(stack, tenant, job)["spec"], version):
                inside = (f"{PREFIX}tenants", at, *place, *each.path)
                yield Finding(inside, each.value, each.message, each.rule)
        for number, service in enumerate(tenant.services):
            spec = rendered_service(stack, tenant, service)["spec"]
            for each in advice_on_service(service.config, spec):
                inside = (f"{PREFIX}tenants", at, "services", number, *each.path)
                yield Finding(inside, each.value, each.message, each.rule)


def _open_clusters(stack: StackSettings) -> Iterator[Finding]:
    """RayClusters that run code for everybody who reaches them."""
    for path, _, cluster in _clusters(stack):
        if cluster.auth_options and cluster.auth_options.mode == "disabled":
            message = "who reaches the dashboard runs code in the cluster without a token: remove it, or use token"
            yield Finding((*path, "authOptions", "mode"), "disabled", message, "no-token")


def _refused_by_the_platform(stack: StackSettings) -> Iterator[Finding]:
    """What the platform's admission policies refuse in a tenant's own stack, unless its stack file allows it."""
    for path, tenant, cluster in _clusters(stack) if stack.platform else ():
        spec = rendered(stack, tenant, cluster)["spec"]
        if (kind := spec["headGroupSpec"].get("serviceType") or "ClusterIP") != "ClusterIP":
            message = f"the API server refuses {kind}, unless the tenant's quota in the platform's stack file allows it"
            yield Finding((*path, "head", "serviceType"), kind, message, "refused-by-platform")
        for at, group in groups_of(spec):
            template, place = group["template"], (*path, *setting_at(cluster, stack.nodes, spec, at))
            if name := template["spec"].get("nodeName"):
                yield Finding(place, name, "the API server refuses nodeName: remove it", "refused-by-platform")
            for key in (template.get("metadata") or {}).get("annotations") or {}:
                if "/" in key and not key.startswith((*ANNOTATIONS, *OF_PODS)):
                    message = (
                        f"the API server refuses annotation {key} of a pod, unless podAnnotations of the tenant in the "
                        "platform's stack file allow it"
                    )
                    yield Finding(place, None, message, "refused-by-platform")


def _labels_of_schedulers(stack: StackSettings) -> Iterator[Finding]:
    """Queues of a scheduler that the stack does not run, so that they may have no effect; and pods for one, which would
    wait for ever."""
    ours = {"Kueue": stack.scheduler and stack.scheduler.kueue, "Volcano": stack.scheduler and stack.scheduler.volcano}
    for path, tenant, cluster in _clusters(stack):
        body = rendered(stack, tenant, cluster)
        parts: list[tuple[Path, ReadOnlyBody]] = [((), {"metadata": body["metadata"]})]
        parts += [((*at, "template"), group["template"]) for at, group in groups_of(body["spec"])]
        found: dict[Path, Finding] = {}
        for at, part in parts:
            for below, value, name in named_in(part):
                if ours.get(name):
                    continue
                key = f", and scheduler.{name.lower()} is not set" if name in ours else ", which no key here runs"
                harm = ", so that its pods wait for ever" if below[-1] == "schedulerName" else ""
                message = f"is for {name}{key}{harm}: remove it, unless something else runs {name} in the cluster"
                inside = (*path, *setting_at(cluster, stack.nodes, body["spec"], (*at, *below)))
                found.setdefault(inside, Finding(inside, value, message, "scheduler-label"))
        yield from found.values()


def _schedules_that_may_stop(stack: StackSettings) -> Iterator[Finding]:
    """Schedules that one run which does not end would stop for ever."""
    for at, tenant in enumerate(stack.tenants):
        for number, template in enumerate(tenant.job_templates):
            cron = template.cron
            if cron and cron.concurrency_policy != "Replace" and template.job.active_deadline_seconds is None:
                harm = (
                    "one run that does not end stops the schedule, because"
                    if cron.concurrency_policy == "Forbid"
                    else "runs that do not end add up, because"
                )
                message = (
                    f"{harm} concurrencyPolicy is {cron.concurrency_policy}: set activeDeadlineSeconds of the template"
                )
                yield Finding((f"{PREFIX}tenants", at, "jobTemplates", number, "cron"), None, message, "endless-run")


def _options_of_unknown_code(stack: StackSettings) -> Iterator[Finding]:
    """Job templates that seem to bound what their users run, and whose runs bring any program."""
    for at, tenant in enumerate(stack.tenants):
        for number, template in enumerate(tenant.job_templates):
            if template.local_code and template.options is not None:
                message = (
                    "bind nothing, because localCode lets users bring the program that reads them, and run any code "
                    "with the account, Secrets and storage of the template's pods: remove options, or localCode"
                )
                yield Finding((f"{PREFIX}tenants", at, "jobTemplates", number, "options"), None, message, "local-code")


def _quotas_beyond_nodes(stack: StackSettings) -> Iterator[Finding]:
    """Quotas of GPUs that bound nothing, because the nodes have fewer."""
    most = sum(pool.count * pool.gpus for pool in stack.nodes if pool.gpu_resource == GPU_RESOURCE)
    for at, tenant in enumerate(stack.tenants):
        gpus = tenant.quota.gpus if tenant.quota else None
        if stack.nodes and gpus is not None and int(gpus) > most:
            message = f"all nodes have {most} GPUs, so that this bounds nothing: set less, or add nodes"
            yield Finding((f"{PREFIX}tenants", at, "quota", "gpus"), gpus, message, "quota-beyond-nodes")


_LONG, _SHORT = "24h", "10s"


def _long_waits(stack: StackSettings) -> Iterator[Finding]:
    """Times in which no `up` succeeds, or for which one that fails would look as if it still worked."""
    for at, tenant in enumerate(stack.tenants):
        placed = [((*place, "readyTimeout"), each.ready_timeout) for place, each in tenant.placed_clusters]
        placed += [((*place, "waitTimeout"), each.wait_timeout) for place, each in tenant.placed_jobs]
        placed += [(("services", n, "waitTimeout"), each.wait_timeout) for n, each in enumerate(tenant.services)]
        placed += [
            (("externalClusters", n, "readyTimeout"), each.ready_timeout)
            for n, each in enumerate(tenant.external_clusters)
        ]
        for below, duration in placed:
            if seconds(duration) < seconds(_SHORT):
                message = f"no pod starts in that time, so that each `up` would fail: set {_SHORT} or more"
                yield Finding((f"{PREFIX}tenants", at, *below), duration, message, "short-wait")
        yield from _longer_than_a_day((f"{PREFIX}tenants", at), placed)
    for at, cluster in enumerate(stack.cml.clusters if stack.cml else ()):
        waits: list[tuple[Path, str]] = [
            (("readyTimeout",), cluster.ready_timeout),
            (("drainTimeout",), cluster.drain_timeout),
        ]
        yield from _longer_than_a_day((f"{PREFIX}cml", "clusters", at), waits)
    for at, job in enumerate(stack.jobs):
        yield from _longer_than_a_day((f"{PREFIX}jobs", at), [(("waitTimeout",), job.wait_timeout)])
        if any(each.suspend and each.name == job.cml_cluster for each in (stack.cml.clusters if stack.cml else ())):
            message = "is suspended: an `up` that has to submit the job waits for its head, and fails"
            yield Finding((f"{PREFIX}jobs", at, "cmlCluster"), job.cluster, message, "long-wait")
    for at, external in enumerate(stack.external_clusters):
        yield from _longer_than_a_day((f"{PREFIX}externalClusters", at), [(("readyTimeout",), external.ready_timeout)])


def _longer_than_a_day(path: Path, placed: Iterable[tuple[Path, str]]) -> Iterator[Finding]:
    for below, duration in placed:
        if seconds(duration) > seconds(_LONG):
            message = f"`up` would wait that long before it fails: set less than {_LONG}"
            yield Finding((*path, *below), duration, message, "long-wait")


def _unused_mirrors(stack: StackSettings) -> Iterator[Finding]:
    """Mirrors whose prefix no image of the stack has, for example because it is misspelt."""
    mirrors = stack.images.mirrors
    if not mirrors:
        return
    used = {mirror_of(image, mirrors) for image in images_of(without_mirrors(stack))}
    for prefix, target in mirrors.items():
        if prefix not in used:
            message = (
                "no image of the stack is pulled from there, because none begins with this: correct it, or remove it"
            )
            yield Finding((f"{PREFIX}images", "mirrors", prefix), target, message, "unused-mirror")


def _credentials_in_plain_text(stack: StackSettings) -> Iterator[Finding]:
    """Credentials of a receiver of logs that each network on the way sees."""
    logs = stack.logs
    for name, value in (logs.headers if logs else {}).items():
        if logs and not isinstance(value, str) and logs.endpoint.startswith("http:"):
            message = "is a credential, and the endpoint is not https, so that it is sent in plain text: use https"
            yield Finding((f"{PREFIX}logs", "headers", name), None, message, "plain-credential")


def _closed_receivers(stack: StackSettings) -> Iterator[Finding]:
    """A receiver of logs whose port no egress opens."""
    logs = stack.logs
    if logs is None or logs.mode == "install" or not stack.network.policies:
        return
    parts = urlsplit(logs.endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if logs.egress and not any(port in each.ports for each in logs.egress):
        message = f"is not in ports of logs.egress: add {port}, unless the Service forwards to another port of its pods"
        yield Finding((f"{PREFIX}logs", "endpoint"), logs.endpoint, message, "closed-receiver")


_LEAST_IDLE = 60
"""Seconds. A notebook that connects again, or the next step of a pipeline, takes as long."""


def _suspended_at_once(stack: StackSettings) -> Iterator[Finding]:
    for path, _, cluster in _clusters(stack):
        idle = cluster.idle_termination_options
        if idle and idle.timeout_seconds < _LEAST_IDLE:
            message = (
                "a RayCluster that has just started may be suspended before anybody has connected: set "
                f"{_LEAST_IDLE} or more"
            )
            place = (*path, "idleTerminationOptions", "timeoutSeconds")
            yield Finding(place, idle.timeout_seconds, message, "short-idle")


def _of_prometheus(stack: StackSettings) -> Iterator[Finding]:
    """Settings that a Prometheus of the stack's own cannot follow."""
    monitoring = stack.monitoring
    own = monitoring.installed if monitoring else None
    if monitoring is None or own is None:
        return
    path: Path = (f"{PREFIX}monitoring",)
    if most_bytes(own.storage) < LOG:
        message = (
            f"metrics may fill four fifths of {own.storage}, and the log of Prometheus alone takes {_mebibytes(LOG)}, "
            "so that older metrics would be deleted at once: set 1Gi or more"
        )
        yield Finding((*path, "prometheus", "storage"), own.storage, message, "small-volume")
    for name, alert in monitoring.alerts.items():
        if alert.after and 0 < seconds(alert.after) < seconds(monitoring.interval):
            message = (
                f"Prometheus evaluates alerts every {monitoring.interval} (monitoring.interval), so this one fires no "
                f"earlier than that after its condition begins: set {monitoring.interval} or more, or 0s for at once"
            )
            yield Finding((*path, "alerts", name, "after"), alert.after, message, "short-alert")
    sent = monitoring.alertmanager.receivers if monitoring.alertmanager else ()
    if sent and not any(not each.tenants and "critical" in (each.severities or ["critical"]) for each in sent):
        message = (
            "none gets the critical alerts of the platform, such as those of the operator: add a receiver without "
            "tenants"
        )
        yield Finding((*path, "alertmanager", "receivers"), None, message, "unsent-alerts")


def _metadata_services(stack: StackSettings) -> Iterator[Finding]:
    """Tenants whose pods may ask the cloud who their node is, and for its credentials."""
    for at, tenant in enumerate(stack.tenants):
        for number, egress in enumerate(tenant.network.egress):
            network = ip_network(egress.cidr) if egress.cidr else ()
            if found := next((each for each in map(ip_address, METADATA_SERVICES) if each in network), None):
                message = (
                    f"includes {found}, where clouds give every caller the credentials of the node: leave it out, "
                    "unless the cloud gives pods their own there"
                )
                path: Path = (f"{PREFIX}tenants", at, "network", "egress", number, "cidr")
                yield Finding(path, egress.cidr, message, "metadata-service")


_AOF = 3
"""Largest size of the files of a Redis, as a multiple of its data: its file grows to twice the data before a new one is
written beside it (redis.conf: auto-aof-rewrite-percentage 100)."""


def _volumes_of_redis(stack: StackSettings) -> Iterator[Finding]:
    """Volumes that a Redis with all the data for which it has memory, or its backups, would fill."""
    settings, parts = stack.redis, redis_parts(stack)
    if settings is None or not parts:
        return
    memory = max((resources(settings, part.clusters).memory for part in parts), key=amount)
    data, size = max_memory(memory), settings.storage.size
    of_data = f"the data that fit into {memory} of memory, {_mebibytes(data)}"
    if amount(size) < _AOF * data:
        message = (
            f"{size} is less than three times {of_data}, which Redis needs while it rewrites its file: a full volume "
            f"ends writes. Set at least {_mebibytes(_AOF * data)} (existing volumes keep their size), or less "
            "resources.memory"
        )
        yield Finding((f"{PREFIX}redis", "storage", "size"), size, message, "redis-volume")
    # Of copies that do not all fit, only the oldest are lost.
    backup = settings.backup
    if backup and amount(backup.storage.size) < 2 * data:
        message = (
            f"{backup.storage.size} is less than twice {of_data}: no backup succeeds once one of more than half of the "
            f"volume is there. Set at least {_mebibytes(2 * data)}"
        )
        yield Finding((f"{PREFIX}redis", "backup", "storage", "size"), backup.storage.size, message, "redis-volume")


def _mebibytes(size: int) -> str:
    return f"{-(-size // 2**20)}Mi"


def _jobs_with_volcano(stack: StackSettings) -> Iterator[Finding]:
    """Users whose RayJobs KubeRay would never start (kuberay/features.py: scheduler-ray-job)."""
    if stack.operator_in_force.batch_scheduler != "volcano":
        return
    for at, tenant in enumerate(stack.tenants):
        for number, user in enumerate(tenant.users):
            if user.submit_jobs:
                message = (
                    "with Volcano, KubeRay starts no RayJob on an existing RayCluster, and the API server refuses it: "
                    "remove this key, and submit to the RayCluster's jobs API (`ray job submit`)"
                )
                path = (f"{PREFIX}tenants", at, "users", number, "submitJobs")
                yield Finding(path, True, message, "jobs-with-volcano")


def _tokens_in_workers(stack: StackSettings, name: str, today: date) -> Iterator[Finding]:
    """Tenants whose workers get the token of their `rayDeployer`, which a policy refuses."""
    rule = "ray-worker-no-sa-token"
    deploying = [at for at, tenant in enumerate(stack.tenants) if tenant.ray_deployer is not None and tenant.clusters]
    # Few stacks have such a tenant: the others need not read the pack's configuration.
    if not deploying or (policies := _policies_in_force(stack, name)) is None:
        return
    for at in deploying:
        tenant = stack.tenants[at]
        objects = [f"RayCluster/{tenant.namespace_name}/{cluster.name}" for cluster in tenant.clusters]
        if refused := [each for each in objects if policies.refuses(rule, each, today)]:
            message = (
                f"workers get its token, which the policy {rule} refuses in `make up` and with --policy-pack: add an "
                f"exception for {refused[0]}{' and others' if len(refused) > 1 else ''}, or set the rule's level to "
                "advisory, in ray-platform:policies"
            )
            yield Finding((f"{PREFIX}tenants", at, "rayDeployer"), None, message, "refused-by-policies")


def _policies_in_force(stack: StackSettings, name: str) -> PoliciesSettings | None:
    """The stack's policies over those of its environment; None if the pack refuses its configuration."""
    from core.environment import environment_of
    from policies.read import ConfigurationError, of_pack

    try:
        environment = environment_of(name)
        return of_pack().with_stack(environment, stack.policies).environment(environment)
    except ConfigurationError:
        return None


def too_long(file: StackFile, stack: StackSettings) -> Iterator[Finding]:
    """A configuration that Pulumi cannot pass to a program, so that `pulumi up` fails before the program starts."""
    compact = (",", ":")
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, separators=compact, ensure_ascii=False)
        for key, value in file.own_config.items()
    }
    size = len(_CONFIGURATION) + len(json.dumps(texts, separators=compact, ensure_ascii=False).encode()) + 1
    if size > LONGEST_VARIABLE and stack.split is None:
        message = (
            f"the configuration has {size} bytes, and Linux passes {LONGEST_VARIABLE} to a program: `pulumi up` would "
            "end with `argument list too long`. Use `ray-platform up`, which passes the file's path, or set split"
        )
        yield Finding((), None, message, "long-configuration")


def _expired(path: Path, day: date) -> Finding:
    message = f"the exception expired on {day} and no longer applies: remove it, or set a later day"
    return Finding(path, str(day), message, "expired-exception")


def _matches_nothing(stack: StackSettings, exception: RuleException) -> bool:
    """Whether it names a RayCluster that the stack does not have. Other objects may be of programs that it installs."""
    kind, _, name = exception.object.partition("/")
    return kind == "RayCluster" and not any(
        fnmatchcase(f"{tenant.namespace_name}/{cluster}", name)
        for tenant in stack.tenants
        for cluster in (*(each.name for each in tenant.clusters), *tenant.cluster_names)
    )
