"""What a valid stack file should change soon: `check` and previews report it, and refuse nothing."""

import json
import re
from collections.abc import Iterator
from datetime import date
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network

from components.queues.volcano import KUEUE_QUEUE_LABEL, QUEUE_LABEL
from components.ray_cluster.origin import setting_at
from components.ray_cluster.settings import RayClusterSettings
from components.ray_service.settings import RayServiceSettings
from components.redis.settings import max_memory, resources
from components.storage.manifests import named_as_object_storage
from core.problems import Finding, Path
from core.quantities import amount
from core.stack_file import PREFIX, StackFile
from core.types import seconds
from core.versions import version_tuple
from kuberay.shell import EXPANDED
from policies.configuration import PoliciesSettings, RuleException
from stacks.checks.storage import uses
from stacks.objects.ray_clusters import rendered
from stacks.objects.redis import redis_parts
from stacks.objects.stack import images_of
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
    yield from _homes_by_name(stack)
    yield from _metadata_of_jobs(stack)
    yield from _models_that_do_not_scale(stack)
    yield from _services_that_end_early(stack)
    yield from _closed_services(stack)
    yield from _models_out_of_reach(stack)
    yield from _metadata_services(stack)
    yield from _open_clusters(stack)
    yield from _uncounted_gpus(stack)
    yield from _workers_without_proxies(stack)
    yield from _labels_of_schedulers(stack)
    yield from _schedules_that_may_stop(stack)
    yield from _long_waits(stack)
    yield from _faults_of_ray(stack)
    yield from _quotas_beyond_nodes(stack)
    yield from _unused_mirrors(stack)
    yield from _exports_of_two(stack)
    yield from _volumes_of_redis(stack)
    yield from _runs_without_a_limit(stack)


def _clusters(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, RayClusterSettings]]:
    """All RayClusters, each with its place in the stack file and its tenant."""
    for at, tenant in enumerate(stack.tenants):
        for place, cluster in tenant.placed_clusters:
            yield (f"{PREFIX}tenants", at, *place), tenant, cluster


def _open_clusters(stack: StackSettings) -> Iterator[Finding]:
    """RayClusters that run code for everybody who reaches them."""
    for path, _, cluster in _clusters(stack):
        if cluster.auth_options and cluster.auth_options.mode == "disabled":
            message = "who reaches the dashboard runs code in the cluster without a token: remove it, or use token"
            yield Finding((*path, "authOptions", "mode"), "disabled", message, "no-token")


_NOT_COUNTED = re.compile(
    r"nvidia\.com/gpu\..+|nvidia\.com/mig-.+|aliyun\.com/gpu-mem|gpu\.intel\.com/.+|habana\.ai/gaudi"
    r"|aws\.amazon\.com/neuron(device)?|huawei\.com/[Aa]scend.+|cambricon\.com/.+|vivo\.com/.+|.+/[vn]pu"
)
"""Resources of accelerators of which KubeRay or Ray's autoscaler makes none of Ray's (kuberay/offers.py)."""


def _uncounted_gpus(stack: StackSettings) -> Iterator[Finding]:
    """Groups with an accelerator that Ray does not see, so that tasks for it wait."""
    for path, tenant, cluster in _clusters(stack):
        spec = rendered(stack, tenant, cluster)["spec"]
        for number, group in enumerate(spec.get("workerGroupSpecs") or ()):
            resources = group["template"]["spec"]["containers"][0].get("resources") or {}
            names = [name for name in resources.get("limits") or {} if _NOT_COUNTED.fullmatch(name)]
            names += ["a claim of devices (DRA)"] if resources.get("claims") else []
            if names and not {"num-gpus", "resources"} & (group.get("rayStartParams") or {}).keys():
                message = (
                    f"Ray's autoscaler counts no GPU for {names[0]}, so that a group without workers gets none for "
                    "tasks that need one: set num-gpus, or resources, in its rayStartParams"
                )
                inside = setting_at(cluster, stack.nodes, spec, ("spec", "workerGroupSpecs", number))
                yield Finding((*path, *inside), None, message, "uncounted-gpus")


def _workers_without_proxies(stack: StackSettings) -> Iterator[Finding]:
    """Services whose workers are never ready (kuberay#4994)."""
    for at, tenant in enumerate(stack.tenants):
        for number, service in enumerate(tenant.services):
            scales = service.cluster.workers or service.cluster.worker_groups
            if service.config.proxy_location == "HeadOnly" and scales:
                message = (
                    "KubeRay asks each worker for its proxy, so that workers without one are never ready (kuberay#4994)"
                    ": remove it"
                )
                path: Path = (f"{PREFIX}tenants", at, "services", number, "serveConfigV2", "proxy_location")
                yield Finding(path, "HeadOnly", message, "head-proxy")


_SCHEDULERS = {
    KUEUE_QUEUE_LABEL: "Kueue",
    QUEUE_LABEL: "Volcano",
    "kai.scheduler/queue": "KAI",
    "runai/queue": "Run:ai",
    "yunikorn.apache.org/app-id": "YuniKorn",
    "yunikorn.apache.org/queue": "YuniKorn",
    "scheduling.x-k8s.io/pod-group": "the coscheduling plugin",
}
"""Labels that a scheduler reads."""


def _labels_of_schedulers(stack: StackSettings) -> Iterator[Finding]:
    """Queues of a scheduler that the stack does not run, so that they may have no effect."""
    ours = {"Kueue": stack.scheduler and stack.scheduler.kueue, "Volcano": stack.scheduler and stack.scheduler.volcano}
    for path, _, cluster in _clusters(stack):
        for label, value in cluster.labels.items():
            name = _SCHEDULERS.get(label)
            if name and not ours.get(name):
                key = f", and scheduler.{name.lower()} is not set" if name in ours else ", which no key here runs"
                message = f"is for {name}{key}: remove it, unless something else runs {name} in the cluster"
                yield Finding((*path, "labels", label), value, message, "scheduler-label")


def _schedules_that_may_stop(stack: StackSettings) -> Iterator[Finding]:
    """Schedules that one run which does not end would stop for ever."""
    for at, tenant in enumerate(stack.tenants):
        for number, template in enumerate(tenant.job_templates):
            cron = template.cron
            if cron and cron.concurrency_policy == "Forbid" and template.job.active_deadline_seconds is None:
                message = (
                    "one run that does not end stops the schedule, because concurrencyPolicy is Forbid: set "
                    "activeDeadlineSeconds of the template"
                )
                yield Finding((f"{PREFIX}tenants", at, "jobTemplates", number, "cron"), None, message, "endless-run")


def _quotas_beyond_nodes(stack: StackSettings) -> Iterator[Finding]:
    """Quotas of GPUs that bound nothing, because the nodes have fewer."""
    most = sum(pool.count * pool.gpus for pool in stack.nodes)
    for at, tenant in enumerate(stack.tenants):
        gpus = tenant.quota.gpus if tenant.quota else None
        if stack.nodes and gpus is not None and int(gpus) > most:
            message = f"all nodes have {most} GPUs, so that this bounds nothing: set less, or add nodes"
            yield Finding((f"{PREFIX}tenants", at, "quota", "gpus"), gpus, message, "quota-beyond-nodes")


_REQUOTED, _HOSTS = "2.56.0", "2.43.0"
"""The first releases of Ray without a fault: `ray job submit` joins an entrypoint by list2cmdline, which quotes for
Windows (python/ray/dashboard/modules/job/cli.py; ray#63797), and the autoscaler does not read numOfHosts
(autoscaling_config.py)."""


def _faults_of_ray(stack: StackSettings) -> Iterator[Finding]:
    """What a supported release of Ray does otherwise than it says."""
    for at, tenant in enumerate(stack.tenants):
        for place, job in tenant.placed_jobs:
            runs_on = tenant.cluster_of(job)
            expands = any(each in (job.entrypoint or "") for each in EXPANDED)
            by_command = job.submission_mode in ("K8sJobMode", "SidecarMode") and not job.external_cluster
            if runs_on and expands and by_command and version_tuple(runs_on.ray_version) < version_tuple(_REQUOTED):
                message = (
                    f"Ray before {_REQUOTED} quotes it as for Windows, and the head's shell expands $ and ` in it "
                    "(ray#63797): use a newer Ray, set submissionMode to HTTPMode, or put it into a script"
                )
                yield Finding((f"{PREFIX}tenants", at, *place, "entrypoint"), job.entrypoint, message, "fault-of-ray")
    for path, _, cluster in _clusters(stack):
        hosts = [number for number, group in enumerate(cluster.worker_groups) if (group.num_of_hosts or 1) > 1]
        if hosts and cluster.scales and version_tuple(cluster.ray_version) < version_tuple(_HOSTS):
            message = (
                f"the autoscaler of Ray before {_HOSTS} takes each worker for one host: use a newer Ray, or set "
                "autoscaling to false"
            )
            yield Finding((*path, "workerGroups", hosts[0], "numOfHosts"), None, message, "fault-of-ray")


_LONG = "24h"


def _long_waits(stack: StackSettings) -> Iterator[Finding]:
    """Times for which an `up` that fails would look as if it still worked."""
    for at, tenant in enumerate(stack.tenants):
        placed = [((*place, "readyTimeout"), each.ready_timeout) for place, each in tenant.placed_clusters]
        placed += [((*place, "waitTimeout"), each.wait_timeout) for place, each in tenant.placed_jobs]
        placed += [(("services", n, "waitTimeout"), each.wait_timeout) for n, each in enumerate(tenant.services)]
        for path, duration in placed:
            if seconds(duration) > seconds(_LONG):
                message = f"`up` would wait that long before it fails: set less than {_LONG}"
                yield Finding((f"{PREFIX}tenants", at, *path), duration, message, "long-wait")


def _unused_mirrors(stack: StackSettings) -> Iterator[Finding]:
    """Mirrors whose prefix no image of the stack has, for example because it is misspelt."""
    mirrors = stack.images.mirrors
    if not mirrors:
        return
    used = images_of(stack)
    for prefix, target in mirrors.items():
        if not any(image.startswith(target.rstrip("/")) for image in used):
            message = (
                "no image of the stack is pulled from there, because none begins with this: correct it, or remove it"
            )
            yield Finding((f"{PREFIX}images", "mirrors", prefix), target, message, "unused-mirror")


def _exports_of_two(stack: StackSettings) -> Iterator[Finding]:
    """NFS exports that two tenants mount, so that each reads and changes the other's files."""
    first: dict[tuple[str, str], str] = {}
    for at, tenant in enumerate(stack.tenants):
        for number, storage in enumerate(tenant.storage):
            if storage.nfs is None:
                continue
            export = (storage.nfs.server.lower(), storage.nfs.path)
            owner = first.setdefault(export, tenant.name)
            if owner != tenant.name:
                message = f"tenant {owner} mounts it, too, and each may change the other's files: give each its folder"
                path: Path = (f"{PREFIX}tenants", at, "storage", number, "nfs", "path")
                yield Finding(path, storage.nfs.path, message, "shared-export")


_RUNS = "count/rayjobs.ray.io"


def _runs_without_a_limit(stack: StackSettings) -> Iterator[Finding]:
    """Users who may create any number of RayJobs, which the API server keeps for all tenants."""
    for at, tenant in enumerate(stack.tenants):
        templates = [each.name for each in tenant.job_templates]
        creating = any(user.submit_jobs or any(map(user.runs, templates)) for user in tenant.users)
        if creating and not (tenant.quota and _RUNS in tenant.quota.hard):
            message = (
                "users of this tenant may create RayJobs without a limit, and each stays until it is deleted: set "
                f"quota.hard, such as {{{_RUNS}: 100}}"
            )
            yield Finding((f"{PREFIX}tenants", at, "users"), None, message, "unlimited-jobs")


def _services(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, RayServiceSettings]]:
    """All RayServices, each with its place in the stack file and its tenant."""
    for at, tenant in enumerate(stack.tenants):
        for number, service in enumerate(tenant.services):
            yield (f"{PREFIX}tenants", at, "services", number), tenant, service


def _models_that_do_not_scale(stack: StackSettings) -> Iterator[Finding]:
    """Models whose further replicas would wait for workers that nobody adds."""
    for path, _, service in _services(stack):
        if (llm := service.llm) and llm.most > llm.replicas and not service.cluster.scales:
            message = (
                "each replica needs a worker of its own, and the cluster does not scale: remove it, or let the cluster "
                "scale"
            )
            yield Finding((*path, "llm", "maxReplicas"), llm.max_replicas, message, "no-autoscaler")


def _services_that_end_early(stack: StackSettings) -> Iterator[Finding]:
    """Services whose workers end before Serve has moved their requests."""
    for path, _, service in _services(stack):
        drain, shortest = service.cluster.drain_timeout, service.shortest_drain
        if drain is not None and shortest is not None and seconds(drain) < shortest:
            message = (
                f"requests are lost when a worker has to go: Serve needs {shortest} s to move them. Set {shortest}s or "
                "more, or remove it"
            )
            yield Finding((*path, "cluster", "drainTimeout"), drain, message, "short-drain")


def _closed_services(stack: StackSettings) -> Iterator[Finding]:
    """Services that nobody outside of their RayCluster may ask."""
    for path, tenant, service in _services(stack):
        network = tenant.network
        if stack.network.policies and network.policies and not (network.serve_from or network.ingress):
            message = (
                "no NetworkPolicy lets anybody outside of its RayCluster connect to it: set network.serveFrom of the "
                "tenant"
            )
            yield Finding((*path, "name"), service.name, message, "closed-service")


def _models_out_of_reach(stack: StackSettings) -> Iterator[Finding]:
    """Models of a hub or a bucket that pods may not connect to."""
    for path, tenant, service in _services(stack):
        closed = stack.network.policies and tenant.network.policies and not tenant.network.egress
        if (llm := service.llm) is None or not closed:
            continue
        key, source = ("source", llm.source) if llm.source else ("model", llm.model)
        if not source.startswith(("/", "./")):
            message = (
                f"the pods download {source!r}, and the tenant's network has no egress: set network.egress, for "
                "example {internet: true}, or source to a folder"
            )
            yield Finding((*path, "llm", key), source, message, "closed-hub")


_METADATA_SERVICES = tuple(map(ip_address, ("169.254.169.254", "fd00:ec2::254")))
"""Of most clouds, and AWS' by IPv6."""


def _metadata_services(stack: StackSettings) -> Iterator[Finding]:
    """Tenants whose pods may ask the cloud who their node is, and for its credentials."""
    for at, tenant in enumerate(stack.tenants):
        for number, egress in enumerate(tenant.network.egress):
            network = ip_network(egress.cidr) if egress.cidr else ()
            if found := next((each for each in _METADATA_SERVICES if each in network), None):
                message = (
                    f"includes {found}, where clouds give every caller the credentials of the node: leave it out, "
                    "unless the cloud gives pods their own there"
                )
                path: Path = (f"{PREFIX}tenants", at, "network", "egress", number, "cidr")
                yield Finding(path, egress.cidr, message, "metadata-service")


def _metadata_of_jobs(stack: StackSettings) -> Iterator[Finding]:
    """Metadata that Ray would not get: the pod that submits passes it on for a cluster of the job's own alone
    (ray-operator/controllers/ray/common/job.go: BuildJobSubmitCommand)."""
    for at, tenant in enumerate(stack.tenants):
        for place, job in tenant.placed_jobs:
            if job.metadata and job.cluster_selector and job.submission_mode == "K8sJobMode":
                message = (
                    "KubeRay's pod that submits passes no metadata to a selected RayCluster: remove it, or set "
                    "submissionMode to HTTPMode"
                )
                yield Finding((f"{PREFIX}tenants", at, *place, "metadata"), None, message, "job-metadata")


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


def _homes_by_name(stack: StackSettings) -> Iterator[Finding]:
    """HF_HOME on a StorageClass whose name suggests object storage: a guess, because only the cluster has its
    provisioner."""
    for at, tenant in enumerate(stack.tenants):
        for number, storage in enumerate(tenant.storage):
            named = storage.storage_class and named_as_object_storage(storage.storage_class)
            if named and uses(tenant)[storage.name].hf_home:
                message = (
                    f"{storage.storage_class!r} may be object storage by its name, and storage {storage.name!r} is "
                    "HF_HOME: transformers is known to fail on S3-like filesystems. A preview reads the class's "
                    "provisioner in the cluster; nothing to do if it is another one"
                )
                path: Path = (f"{PREFIX}tenants", at, "storage", number, "storageClass")
                yield Finding(path, storage.storage_class, message, "hf-home-class-name")


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
            "end with `argument list too long`. Use `python -m stacks up`, which passes the file's path, or set split"
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
