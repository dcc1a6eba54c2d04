"""What pods may do on their node, and what they are promised there. Every pod, wherever its template stands."""

from core.secrets import is_secret
from core.types import Settings

from ..rule import Severity, Violations, rule
from ..values import is_placeholder
from ..walk import Container, Pod
from . import remedies
from .remedies import in_force

_STANDARDS = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"
_RESTRICTED = f"{_STANDARDS}#restricted"
_BASELINE = f"{_STANDARDS}#baseline"
_AUTOSCALER = "; KubeRay gives the autoscaler's container only what autoscalerOptions says"


@rule(
    "pod-nonroot",
    Severity.HIGH,
    what="No container runs as root.",
    why="Root in a container is root on the node once it gets out of the container.",
    source=_RESTRICTED,
    fix="Set securityContext.runAsNonRoot: true in the pod or the container, and no runAsUser: 0.",
)
def nonroot(container: Container) -> Violations:
    """`runAsNonRoot` in force, and no user 0."""
    user, checked = in_force(container, "runAsUser"), in_force(container, "runAsNonRoot")
    if user.number == 0:
        yield user.wrong("runs as root")
    if checked.value is not True:
        yield container.node.at("securityContext", "runAsNonRoot").wrong("nothing keeps it from running as root")


@rule(
    "pod-no-privesc",
    Severity.HIGH,
    what="No process of a container gets more rights than the one that started it.",
    why="Ray's images have sudo without a password: without this, who runs a task is root in its pod.",
    source=f"{_RESTRICTED}; Ray's docker/base-deps/Dockerfile{_AUTOSCALER}",
    fix="Set securityContext.allowPrivilegeEscalation: false in each container, and in autoscalerOptions.",
    remedy=remedies.no_privilege_escalation,
)
def no_privilege_escalation(container: Container) -> Violations:
    """`allowPrivilegeEscalation: false`; Kubernetes allows it where nothing is said."""
    said = container.node.at("securityContext", "allowPrivilegeEscalation")
    if said.value is not False:
        yield said.wrong("a process may get more rights than its parent")


@rule(
    "pod-drop-all",
    Severity.MEDIUM,
    what="Containers drop all capabilities.",
    why="Ray needs none, and some that container runtimes give reach beyond the container's own files and network.",
    source=_RESTRICTED,
    fix="Set securityContext.capabilities.drop: [ALL] in each container, and in autoscalerOptions.",
    remedy=remedies.drop_all,
)
def drop_all(container: Container) -> Violations:
    """`ALL` is dropped."""
    dropped = container.node.at("securityContext", "capabilities", "drop")
    if "ALL" not in [each.text for each in dropped.items()]:
        yield dropped.wrong("keeps the capabilities that the container runtime gives")


class AddedCapabilities(Settings):
    """Options of pod-no-added-capabilities."""

    allowed: tuple[str, ...] = ("NET_BIND_SERVICE",)
    """Capabilities that may be added."""


@rule(
    "pod-no-added-capabilities",
    Severity.HIGH,
    what="Containers add no capabilities.",
    why="Some, such as SYS_ADMIN and SYS_PTRACE, are as good as root on the node.",
    source=_RESTRICTED,
    fix="Remove them from securityContext.capabilities.add.",
)
def no_added_capabilities(container: Container, options: AddedCapabilities) -> Violations:
    """Only those that the options allow."""
    for each in container.node.at("securityContext", "capabilities", "add").items():
        if each.text not in options.allowed:
            yield each.wrong(f"adds {each.shown()}")


@rule(
    "pod-seccomp",
    Severity.MEDIUM,
    what="Containers may only make the system calls that programs usually make.",
    why="Most ways from a container into the kernel use others.",
    source=_RESTRICTED,
    fix="Set securityContext.seccompProfile.type: RuntimeDefault in the pod.",
    remedy=remedies.runtime_default,
)
def seccomp(container: Container) -> Violations:
    """A profile of the runtime's or the node's."""
    profile = in_force(container, "seccompProfile", "type")
    if profile.text not in ("RuntimeDefault", "Localhost"):
        yield profile.wrong(f"the profile is {profile.shown() if profile.said else 'not said'}")


@rule(
    "pod-no-privileged",
    Severity.CRITICAL,
    what="No container is privileged.",
    why="A privileged container can do all that root on the node can.",
    source=_BASELINE,
    fix="Remove securityContext.privileged; GPUs need it nowhere, NVIDIA's device plugin gives them.",
)
def no_privileged(container: Container) -> Violations:
    """`privileged` is not set."""
    said = container.node.at("securityContext", "privileged")
    if said.value is True:
        yield said.wrong("is privileged")


@rule(
    "pod-no-host",
    Severity.CRITICAL,
    what="Pods have a network, processes and memory of their own.",
    why="In the node's network no NetworkPolicy holds and Ray's ports are open; the node's processes can be read.",
    source=_BASELINE,
    fix="Remove hostNetwork, hostPID and hostIPC.",
)
def no_host(pod: Pod) -> Violations:
    """None of the node's namespaces."""
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.at(key).value is True:
            yield pod.spec.at(key).wrong("shares it with the node")


@rule(
    "pod-no-host-ports",
    Severity.HIGH,
    what="Containers open no port of their node.",
    why="It is reached past Services, and only one such pod fits a node: Ray's workers would wait for nodes.",
    source=_BASELINE,
    fix="Remove hostPort; a Service leads to the pod.",
)
def no_host_ports(container: Container) -> Violations:
    """No `hostPort`."""
    for port in container.node.at("ports").items():
        if port.at("hostPort").number:
            yield port.at("hostPort").wrong(f"opens port {port.at('hostPort').number} of the node")


class HostPaths(Settings):
    """Options of pod-no-host-path."""

    allowed: tuple[str, ...] = ()
    """Paths of nodes that may be mounted, each with all below it."""


@rule(
    "pod-no-host-path",
    Severity.CRITICAL,
    what="Pods mount no files of their node.",
    why="With the container runtime's socket or /etc a pod takes over its node.",
    source=_BASELINE,
    fix="Use an emptyDir, or a PersistentVolumeClaim; node-local disks through a CSI driver.",
)
def no_host_path(pod: Pod, options: HostPaths) -> Violations:
    """No `hostPath`, but below those allowed."""
    for volume in pod.spec.at("volumes").items():
        path = volume.at("hostPath", "path")
        if path.text and not any(f"{path.text}/".startswith(f"{each.rstrip('/')}/") for each in options.allowed):
            yield path.wrong(f"mounts {path.shown()} of the node")


@rule(
    "pod-readonly-root",
    Severity.LOW,
    what="Containers write only into volumes.",
    why="What has got in cannot change programs. Ray writes into its home and /tmp, so it is advice there.",
    source="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
    fix="Set securityContext.readOnlyRootFilesystem: true, with an emptyDir where the program writes.",
)
def readonly_root(container: Container) -> Violations:
    """`readOnlyRootFilesystem`."""
    said = container.node.at("securityContext", "readOnlyRootFilesystem")
    if said.value is not True:
        yield said.wrong("may write into its image's files")


@rule(
    "pod-proc-mount",
    Severity.HIGH,
    what="Containers see of /proc what the container runtime shows.",
    why="Unmasked, they see and change what is the node's.",
    source=_BASELINE,
    fix="Remove securityContext.procMount.",
)
def proc_mount(container: Container) -> Violations:
    """`procMount` is `Default`."""
    said = container.node.at("securityContext", "procMount")
    if said.said and said.text != "Default":
        yield said.wrong(f"is {said.shown()}")


@rule(
    "pod-requests",
    Severity.MEDIUM,
    what="Containers say how much CPU and memory they need.",
    why="Ray counts what a pod asks for as what it has, and Volcano and quotas can count nothing else.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#resources",
    fix="Set resources.requests.cpu and .memory, or the limits, which count for both.",
)
def requests(container: Container) -> Violations:
    """A request, or a limit, of both. What the autoscaler asks for KubeRay says."""
    if container.role == "autoscaler":
        return
    for resource in ("cpu", "memory"):
        asked, limit = (container.node.at("resources", kind, resource) for kind in ("requests", "limits"))
        if not asked.said and not limit.said:
            yield asked.wrong(f"asks for no {resource}")


@rule(
    "pod-memory-limit",
    Severity.MEDIUM,
    what="The memory that a container asks for is what it may have, in pods of Ray.",
    why="Ray plans with the limit: what was not asked for is taken back, and the kubelet kills the pod.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#resources",
    fix="Set resources.limits.memory and resources.requests.memory to the same amount.",
)
def memory_limit(container: Container) -> Violations:
    """A limit, and no smaller request."""
    if container.pod.ray is None or container.role != "container":
        return
    asked, limit = (container.node.at("resources", kind, "memory") for kind in ("requests", "limits"))
    if not limit.said:
        yield limit.wrong("has no limit of memory")
    elif asked.said and asked.quantity != limit.quantity:
        yield asked.wrong(f"asks for {asked.shown()} and may have {limit.shown()}")


@rule(
    "pod-probes",
    Severity.LOW,
    what="Programs that run for long are asked whether they do.",
    why="Kubernetes sends work to, and waits for, a program that hangs. KubeRay gives Ray's containers probes itself.",
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    fix="Set readinessProbe and livenessProbe.",
    kinds=("Deployment", "StatefulSet", "DaemonSet"),
)
def probes(container: Container) -> Violations:
    """Both, where the program is no init container."""
    if container.role == "init":
        return
    for key in ("readinessProbe", "livenessProbe"):
        if not container.node.at(key).said:
            yield container.node.at(key).wrong("is missing")


@rule(
    "pod-no-plain-secret",
    Severity.CRITICAL,
    what="No password or token stands in plain text in a pod's environment.",
    why="Whoever may read the object, its manifest in git or Pulumi's state reads it.",
    source="https://kubernetes.io/docs/concepts/configuration/secret/",
    fix="Keep it in a Secret, and name that with valueFrom.secretKeyRef. Then replace it: it has been seen.",
)
def no_plain_secret(container: Container) -> Violations:
    """No variable that looks like a secret by its name or its value, but `<token>` or `$TOKEN`. It is never shown."""
    for variable in container.node.at("env").items():
        name, value = variable.at("name").text, variable.at("value").text
        if name and value and is_secret(name, value) and not is_placeholder(value):
            yield variable.at("value").wrong(f"{variable.at('name').shown()} looks like a secret")


@rule(
    "pod-memory-volume-limit",
    Severity.MEDIUM,
    what="Volumes in memory have a limit.",
    why="They count as the container's memory: one that fills up kills Ray. KubeRay's own /dev/shm has one.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    fix="Set emptyDir.sizeLimit.",
)
def memory_volume_limit(pod: Pod) -> Violations:
    """A `sizeLimit` where the medium is memory."""
    for volume in pod.spec.at("volumes").items():
        made = volume.at("emptyDir")
        if made.at("medium").text == "Memory" and not made.at("sizeLimit").said:
            yield made.at("sizeLimit").wrong("may take all memory of the pod")


@rule(
    "pod-binary-quantities",
    Severity.MEDIUM,
    what="Memory is at least one mebibyte.",
    why="`64` and `64m` are bytes and thousandths of them: Kubernetes takes them, and the container is killed at once.",
    source="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory",
    fix="Write the unit: 64Gi.",
)
def memory_has_a_unit(container: Container) -> Violations:
    """No amount of memory that lacks its unit."""
    for kind in ("requests", "limits"):
        said = container.node.at("resources", kind, "memory")
        if said.quantity is not None and said.quantity < 2**20:
            yield said.wrong(f"{said.shown()} is less than a mebibyte")
