"""Resources, probes and variables of pods. The rules apply to every pod template of an object."""

from core.secrets import (
    ABOUT_A_SECRET,
    HARMLESS,
    PLACEHOLDER,
    SECRET,
    SECRET_VALUE,
    SECRET_VALUE_HAS,
    is_secret,
    secret_in,
)
from policies.cel import OWN_CONTAINERS, of_containers, of_pods, of_ray, quantity, text
from policies.rule import Severity, Violations, rule
from policies.values import is_placeholder
from policies.walk import Container, Pod


@rule(
    "pod-requests",
    Severity.MEDIUM,
    what="Containers request CPU and memory.",
    why="Ray takes what a pod requests as its capacity, and Volcano and quotas can count nothing else.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#resources",
    fix="Set resources.requests.cpu and .memory, or the limits, which count for both.",
    cel=of_pods(
        f"{OWN_CONTAINERS}.all(c, ['cpu', 'memory'].all(r, c.?resources.?requests[?r].hasValue()"
        " || c.?resources.?limits[?r].hasValue()))"
    ),
)
def requests(container: Container) -> Violations:
    """Requires a request or a limit of both. KubeRay sets the requests of the autoscaler."""
    if container.role == "autoscaler":
        return
    for resource in ("cpu", "memory"):
        request, limit = (container.node.at("resources", kind, resource) for kind in ("requests", "limits"))
        if not request.is_set and not limit.is_set:
            yield request.wrong(f"asks for no {resource}")


@rule(
    "pod-memory-limit",
    Severity.MEDIUM,
    what="The memory that a container asks for is what it may have, in pods of Ray.",
    why="Ray plans with the limit: memory beyond the request is not reserved, and the kubelet may kill the pod.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#resources",
    fix="Set resources.limits.memory and resources.requests.memory to the same amount.",
    cel=of_ray(
        "variables.rayPods.all(pod, pod.spec.?containers.orValue([]).all(c,"
        " c.?resources.?limits[?'memory'].hasValue() && (!c.?resources.?requests[?'memory'].hasValue()"
        f" || {quantity('c.resources.requests.memory')}.compareTo({quantity('c.resources.limits.memory')}) == 0)))"
    ),
)
def memory_limit(container: Container) -> Violations:
    """Requires a limit, and no smaller request."""
    if container.pod.ray is None or container.role != "container":
        return
    request, limit = (container.node.at("resources", kind, "memory") for kind in ("requests", "limits"))
    if not limit.is_set:
        yield limit.wrong("has no limit of memory")
    elif request.is_set and request.quantity != limit.quantity:
        yield request.wrong(f"asks for {request.shown()} and may have {limit.shown()}")


@rule(
    "pod-probes",
    Severity.LOW,
    what="Long-running programs have probes.",
    why="Otherwise Kubernetes sends work to a program that hangs. KubeRay adds probes to Ray's containers.",
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    fix="Set readinessProbe and livenessProbe.",
    kinds=("Deployment", "StatefulSet", "DaemonSet"),
)
def probes(container: Container) -> Violations:
    """Requires both probes. Init containers are skipped."""
    if container.role == "init":
        return
    for key in ("readinessProbe", "livenessProbe"):
        if not container.node.at(key).is_set:
            yield container.node.at(key).wrong("is missing")


def _looks_in_cel(value: str) -> str:
    """CEL for whether a text has a secret that is known by its look."""
    return " && ".join(f"{value}.matches({text(each.pattern)})" for each in (SECRET_VALUE_HAS, SECRET_VALUE))


# Placeholders last: only few values need that match, and the API server limits the cost of an expression.
_NO_PLAIN_SECRET_IN_CEL = (
    f"!({_looks_in_cel('e.value')}"
    f" || e.name.matches({text(f'(?i){SECRET.pattern}')})"
    f" && !e.name.matches({text(f'(?i){ABOUT_A_SECRET.pattern}')})"
    f" && !e.value.matches({text(f'(?i)^(?:{HARMLESS.pattern})$')}))"
    f" || e.value.matches({text(f'^(?:{PLACEHOLDER.pattern})$')})"
)


@rule(
    "pod-no-plain-secret",
    Severity.CRITICAL,
    what="No password or token stands in plain text in a pod's environment or command.",
    why="Whoever may read the object, its manifest in git or Pulumi's state reads it.",
    source="https://kubernetes.io/docs/concepts/configuration/secret/",
    fix="Keep it in a Secret, and name that with valueFrom.secretKeyRef. Then replace it: it has been seen.",
    cel=of_containers(
        f"c.?env.orValue([]).all(e, e.?value.orValue('') == '' || {_NO_PLAIN_SECRET_IN_CEL})"
        f" && (c.?command.orValue([]) + c.?args.orValue([])).all(a, !({_looks_in_cel('a')}))"
    ),
)
def no_plain_secret(container: Container) -> Violations:
    """Rejects variables that look like secrets by name or value, except `<token>` or `$TOKEN`; and words of command and
    args that look like one. Shows no value."""
    for key in ("command", "args"):
        for word in container.node.at(key).items():
            if kind := secret_in(word.text or ""):
                yield word.wrong(f"has {kind}")
    for variable in container.node.at("env").items():
        name, value = variable.at("name").text, variable.at("value").text
        if name and value and is_secret(name, value) and not is_placeholder(value):
            yield variable.at("value").wrong(f"{variable.at('name').shown()} looks like a secret")


@rule(
    "pod-memory-volume-limit",
    Severity.MEDIUM,
    what="Volumes in memory have a limit.",
    why="They count as the container's memory: a full volume kills Ray. KubeRay's own /dev/shm has a limit.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    fix="Set emptyDir.sizeLimit.",
    cel=of_pods(
        "pod.spec.?volumes.orValue([]).all(v, v.?emptyDir.?medium.orValue('') != 'Memory'"
        " || v.emptyDir.?sizeLimit.hasValue())"
    ),
)
def memory_volume_limit(pod: Pod) -> Violations:
    """Requires a `sizeLimit` if the medium is memory."""
    for volume in pod.spec.at("volumes").items():
        empty_dir = volume.at("emptyDir")
        if empty_dir.at("medium").text == "Memory" and not empty_dir.at("sizeLimit").is_set:
            yield empty_dir.at("sizeLimit").wrong("may take all memory of the pod")


@rule(
    "pod-binary-quantities",
    Severity.MEDIUM,
    what="Memory is at least one mebibyte.",
    why="`64` and `64m` are bytes and thousandths of bytes. Kubernetes accepts both, and kills the container at once.",
    source="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory",
    fix="Write the unit: 64Gi.",
    cel=of_containers(
        "['requests', 'limits'].all(k, !c.?resources[?k][?'memory'].hasValue()"
        f" || !{quantity('c.resources[k].memory')}.isLessThan(quantity('1Mi')))"
    ),
)
def memory_has_a_unit(container: Container) -> Violations:
    """Rejects amounts of memory without a unit."""
    for kind in ("requests", "limits"):
        memory = container.node.at("resources", kind, "memory")
        if memory.quantity is not None and memory.quantity < 2**20:
            yield memory.wrong(f"{memory.shown()} is less than a mebibyte")
