"""What KubeRay and Ray accept, and the author of an object cannot want. Pure functions; paths are in the object."""

import math
import re
from collections.abc import Iterator

from core.body import ReadOnlyBody
from core.nodes import ACCELERATOR
from core.problems import Path, Problem
from core.quantities import amount
from kuberay.demands import workers_without_proxies
from kuberay.faults import faults_of_cluster, faults_of_job, faults_of_service
from kuberay.offers import CPU, GPU, counted_by_autoscaler, fits, offers_of, resource_of_ray
from kuberay.ray_start import IDLE_MEMORY, custom_resources, drain_before_hook, hook_that_ends_ray
from kuberay.rules import groups_of
from kuberay.running import variable_of
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from kuberay.serve_config import ServeConfigSettings


def advice_on_cluster(body: ReadOnlyBody, path: Path = ("spec",)) -> Iterator[Problem]:
    """Of a RayCluster. `path`: of its spec in the object."""
    spec = body["spec"]
    yield from _left_to_others(body, path)
    yield from _no_cpu_at_all(body, path)
    yield from _password_of_the_cleanup(spec, path)
    yield from (each.below(path) for each in faults_of_cluster(spec))
    for at, group in groups_of(spec, path):
        yield from _shared_sessions(group, at)
        yield from _no_room_for_tasks(group, at)
        yield from _more_cpus(group, at)
        if "groupName" in group:
            yield from _uncounted_gpus(group, at)
            yield from _slices_of_other_sizes(group, at)
            yield from _nodes_networks(group, at)
            yield from _restarted(spec, group, at)
            yield from _undrained(spec, group, at)


def advice_on_job(spec: ReadOnlyBody, ray_version: str | None) -> Iterator[Problem]:
    """Of a RayJob; paths in its spec. `ray_version`: of the RayCluster that it runs on."""
    yield from faults_of_job(spec, ray_version)
    # Ray gets it for a cluster of the job's own alone (ray-operator/controllers/ray/common/job.go:
    # BuildJobSubmitCommand).
    if spec.get("metadata") and spec.get("clusterSelector") and spec.get("submissionMode") in (None, "", "K8sJobMode"):
        message = (
            "KubeRay's pod that submits passes no metadata to a selected RayCluster: remove it, or set submissionMode "
            "to HTTPMode"
        )
        yield Problem(("metadata",), None, message, "job-metadata-lost")


def advice_on_service(config: ServeConfigSettings, spec: ReadOnlyBody) -> Iterator[Problem]:
    """Of a RayService with its Serve config; paths in its `spec`."""
    yield from workers_without_proxies(config, spec["rayClusterConfig"])
    yield from faults_of_service(config, spec)


def _password_of_the_cleanup(spec: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """KubeRay sets the variable from the flag's text, which no shell has read (ray-operator/controllers/ray/common/
    pod.go: configureGCSFaultTolerance)."""
    head = spec["headGroupSpec"]
    password = (head.get("rayStartParams") or {}).get("redis-password")
    if password and variable_of((), head, "REDIS_PASSWORD") is None:
        message = (
            "KubeRay's job that deletes the keys of a removed RayCluster from Redis gets the name of the variable as "
            "its password: set the head's REDIS_PASSWORD from the Secret, and write $REDIS_PASSWORD here"
        )
        yield Problem((*path, "headGroupSpec", "rayStartParams", "redis-password"), None, message, "redis-cleanup")


def _resources(group: ReadOnlyBody) -> ReadOnlyBody:
    """Those of Ray's container."""
    found: ReadOnlyBody = group["template"]["spec"]["containers"][0].get("resources") or {}
    return found


def _uncounted_gpus(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A group with an accelerator that Ray does not see, so that tasks for it wait."""
    limits = [name for name in _resources(group).get("limits") or {} if ACCELERATOR.search(name)]
    names = [name for name in limits if not counted_by_autoscaler(name)]
    names += ["a claim of devices (DRA)"] if _resources(group).get("claims") else []
    if not names:
        return
    ray_name = GPU if names[0] not in limits else resource_of_ray(names[0]) or "neuron_cores"
    params = group.get("rayStartParams") or {}
    of_gpus = bool(params.keys() & {"num-gpus", "resources"})
    given = of_gpus if ray_name == GPU else ray_name in custom_resources(params.get("resources", ""))
    if not given and not group.get("resources"):
        flag = "num-gpus" if ray_name == GPU else f"resources with {ray_name}"
        message = (
            f"Ray's autoscaler does not count {names[0]}, so that a group without workers gets none for tasks that "
            f"need it: set {flag} in its rayStartParams"
        )
        yield Problem(path, None, message, "uncounted-gpus")


_TOPOLOGY, _TPU = "cloud.google.com/gke-tpu-topology", "google.com/tpu"


def _slices_of_other_sizes(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A group of TPUs whose hosts are not those of its topology, so that a slice is never whole; or that names none, so
    that neither GKE nor Ray's autoscaler knows the slice (Ray, autoscaling_config.py)."""
    chips = (_resources(group).get("limits") or {}).get(_TPU)
    if not chips or not amount(str(chips)):
        return
    topology, hosts = (
        (group["template"]["spec"].get("nodeSelector") or {}).get(_TOPOLOGY),
        group.get("numOfHosts") or 1,
    )
    if topology is None:
        message = f"its pods select no slice of TPUs: set nodeSelector {_TOPOLOGY} of its pods"
        yield Problem(path, None, message, "tpu-hosts")
    elif re.fullmatch(r"\d{1,4}(x\d{1,4}){1,2}", topology):
        needed = math.prod(map(int, topology.split("x"))) / int(amount(str(chips)))
        if needed != hosts:
            message = (
                f"a slice of {topology} with {chips} chips in a pod has {needed:g} hosts, and numOfHosts is {hosts}: "
                "set numOfHosts, or another topology"
            )
            yield Problem(path, None, message, "tpu-hosts")


def _shared_sessions(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Claims at the folder in which each node of Ray has its sockets and logs."""
    pod = group["template"]["spec"]
    volumes = pod.get("volumes") or ()
    shared = {each["name"] for each in volumes if each.keys() & {"persistentVolumeClaim", "nfs"}}
    for index, mount in enumerate(pod["containers"][0].get("volumeMounts") or ()):
        place = mount["mountPath"].rstrip("/")
        if mount["name"] in shared and place in ("/tmp", "/tmp/ray") and "subPathExpr" not in mount:  # noqa: S108
            message = (
                "Ray has sockets and logs of each pod below /tmp/ray, which pods with the same volume mix: mount it "
                "elsewhere"
            )
            inside: Path = (*path, "template", "spec", "containers", 0, "volumeMounts", index, "mountPath")
            yield Problem(inside, mount["mountPath"], message, "shared-session")


_CPUS = "num-cpus"

_LEAST_FOR_TASKS = 100 * 2**20
"""Bytes below which not even one process of a task fits."""


def _no_room_for_tasks(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A container whose memory Ray needs for itself, so that the first task ends the pod."""
    limit = (_resources(group).get("limits") or {}).get("memory")
    left = amount(str(limit)) * 7 / 10 - IDLE_MEMORY if limit is not None else _LEAST_FOR_TASKS
    if left < _LEAST_FOR_TASKS:
        message = (
            f"of {limit} of memory Ray's own processes take 240Mi and its object store three tenths, which leaves "
            "nothing for tasks: set at least 1Gi"
        )
        inside: Path = (*path, "template", "spec", "containers", 0, "resources", "limits", "memory")
        yield Problem(inside, limit, message, "no-room-for-tasks")


def _more_cpus(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """More CPUs for tasks than the container may use."""
    limit, given = (_resources(group).get("limits") or {}).get("cpu"), (group.get("rayStartParams") or {}).get(_CPUS)
    if limit is not None and given and given.isdecimal() and int(given) > math.ceil(amount(str(limit))):
        message = (
            f"Ray would start tasks for {given} CPUs at a time, and the container has {limit}: remove it, unless the "
            "tasks only wait"
        )
        yield Problem((*path, "rayStartParams", _CPUS), given, message, "more-cpus")


def _nodes_networks(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Pods that would meet on a node, where each listens on the same ports."""
    pod = group["template"]["spec"]
    apart = (pod.get("affinity") or {}).get("podAntiAffinity")
    if pod.get("hostNetwork") and group.get("maxReplicas") != 1 and not apart:
        message = (
            "two of its pods on a node would both listen there on the ports of Ray's agent and metrics (52365, 8080), "
            "and the second one fails: set a podAntiAffinity on kubernetes.io/hostname, or remove it"
        )
        yield Problem((*path, "template", "spec", "hostNetwork"), True, message, "host-network")


def _restarted(spec: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Workers that Kubernetes restarts beside the first autoscaler; KubeRay refuses it beside the second one."""
    policy = group["template"]["spec"].get("restartPolicy")
    if spec.get("enableInTreeAutoscaling") and policy not in (None, "", "Never"):
        message = (
            "Kubernetes would restart Ray in a pod that Ray's autoscaler takes for lost, or removes: set Never, or "
            "remove it for the autoscaler v2"
        )
        yield Problem((*path, "template", "spec", "restartPolicy"), policy, message, "restarted-worker")


def _undrained(spec: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A hook of older guides, from before Ray drained its node at SIGTERM."""
    pod = group["template"]["spec"]
    if (hook := hook_that_ends_ray(pod)) and drain_before_hook(pod, spec.get("rayVersion")):
        message = (
            "the hook ends Ray, and with it running tasks, before its drain, which lets them finish within "
            "drainTimeout: remove it"
        )
        inside: Path = ("template", "spec", "containers", 0, "lifecycle", "preStop")
        yield Problem((*path, *inside), hook, message, "undone-drain")


def _left_to_others(body: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A RayCluster that KubeRay leaves to another controller, or that runs only when somebody edits it."""
    spec = body["spec"]
    if spec.get("suspend") is True and KUEUE_QUEUE_LABEL not in (body["metadata"].get("labels") or {}):
        message = "it has no pods, and nothing resumes it, until this is false: remove it, unless it is to rest"
        yield Problem((*path, "suspend"), True, message, "stays-suspended")
    owner = spec.get("managedBy")
    if owner not in (None, "ray.io/kuberay-operator"):
        message = (
            f"the operator of this cluster creates no pods for it, and leaves it to {owner}: remove it, unless "
            "MultiKueue runs here"
        )
        yield Problem((*path, "managedBy"), owner, message, "managed-elsewhere")


def _no_cpu_at_all(body: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A RayCluster in which no task or replica could run, because each reserves a CPU unless its code says
    otherwise."""
    if not any(fits({CPU: 0.001}, each) for each in offers_of(body)):
        names = [group.get("groupName", "the head") for _, group in groups_of(body["spec"])]
        message = (
            f"no node offers a CPU to Ray ({', '.join(names)}: num-cpus 0), so that tasks and replicas wait for ever, "
            "unless they ask for none: add workers, or set num-cpus of the head"
        )
        yield Problem(path, None, message, "no-cpu-at-all")
