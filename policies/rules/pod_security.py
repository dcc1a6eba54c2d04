"""What pods may do on their node. The rules apply to every pod template of an object."""

from core.pods import PROFILES, RESTRICTED_CAPABILITIES
from core.types import Settings
from policies.cel import listed, of_containers, of_pods
from policies.rule import Severity, Violations, rule
from policies.rules import remedies
from policies.rules.remedies import in_force
from policies.values import Object
from policies.walk import Container, Pod

_STANDARDS = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"
_RESTRICTED = f"{_STANDARDS}#restricted"
_BASELINE = f"{_STANDARDS}#baseline"
_AUTOSCALER = "; KubeRay gives the autoscaler's container only the fields of autoscalerOptions"


def _in_force_in_cel(*steps: str) -> str:
    """CEL for the effective value of a container: its own security context, or else that of its pod."""
    below = "".join(f".?{step}" for step in ("securityContext", *steps))
    return f"c{below}.or(pod.spec{below})"


@rule(
    "pod-nonroot",
    Severity.HIGH,
    what="No container runs as root.",
    why="Root in a container is root on the node once it gets out of the container.",
    source=_RESTRICTED,
    fix="Set securityContext.runAsNonRoot: true in the pod or the container, and no runAsUser: 0.",
    cel=of_containers(
        f"{_in_force_in_cel('runAsUser')}.orValue(1) != 0 && {_in_force_in_cel('runAsNonRoot')}.orValue(false) == true"
    ),
)
def nonroot(container: Container) -> Violations:
    """Requires an effective `runAsNonRoot` and rejects user 0."""
    user, checked = in_force(container, "runAsUser"), in_force(container, "runAsNonRoot")
    if user.number == 0:
        yield user.wrong("runs as root")
    if checked.value is not True:
        yield container.node.at("securityContext", "runAsNonRoot").wrong("nothing keeps it from running as root")


@rule(
    "pod-no-privesc",
    Severity.HIGH,
    what="No process of a container gets more rights than the one that started it.",
    why="Ray's images have sudo without a password: otherwise whoever runs a task is root in its pod.",
    source=f"{_RESTRICTED}; Ray's docker/base-deps/Dockerfile{_AUTOSCALER}",
    fix="Set securityContext.allowPrivilegeEscalation: false in each container, and in autoscalerOptions.",
    remedy=remedies.no_privilege_escalation,
    cel=of_containers("c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"),
)
def no_privilege_escalation(container: Container) -> Violations:
    """Requires `allowPrivilegeEscalation: false`. The default of Kubernetes is true."""
    escalation = container.node.at("securityContext", "allowPrivilegeEscalation")
    if escalation.value is not False:
        yield escalation.wrong("a process may get more rights than its parent")


@rule(
    "pod-drop-all",
    Severity.MEDIUM,
    what="Containers drop all capabilities.",
    why="Ray needs none, and some that container runtimes give reach beyond the container's own files and network.",
    source=_RESTRICTED,
    fix="Set securityContext.capabilities.drop: [ALL] in each container, and in autoscalerOptions.",
    remedy=remedies.drop_all,
    cel=of_containers("'ALL' in c.?securityContext.?capabilities.?drop.orValue([])"),
)
def drop_all(container: Container) -> Violations:
    """`ALL` is dropped."""
    dropped = container.node.at("securityContext", "capabilities", "drop")
    if "ALL" not in [each.text for each in dropped.items()]:
        yield dropped.wrong("keeps the capabilities that the container runtime gives")


class AddedCapabilities(Settings):
    """Options of pod-no-added-capabilities."""

    allowed: tuple[str, ...] = RESTRICTED_CAPABILITIES
    """Capabilities that may be added."""


def _no_added_capabilities_in_cel(options: AddedCapabilities) -> str:
    return f"c.?securityContext.?capabilities.?add.orValue([]).all(added, added in {listed(options.allowed)})"


@rule(
    "pod-no-added-capabilities",
    Severity.HIGH,
    what="Containers add no capabilities.",
    why="Some, such as SYS_ADMIN and SYS_PTRACE, are as good as root on the node.",
    source=_RESTRICTED,
    fix="Remove them from securityContext.capabilities.add.",
    cel=of_containers(_no_added_capabilities_in_cel),
)
def no_added_capabilities(container: Container, options: AddedCapabilities) -> Violations:
    """Rejects capabilities that the options do not allow."""
    for each in container.node.at("securityContext", "capabilities", "add").items():
        if each.text not in options.allowed:
            yield each.wrong(f"adds {each.shown()}")


@rule(
    "pod-seccomp",
    Severity.MEDIUM,
    what="Containers may only make the system calls that programs usually make.",
    why="Most attacks from a container on the kernel use other system calls.",
    source=_RESTRICTED,
    fix="Set securityContext.seccompProfile.type: RuntimeDefault in the pod.",
    remedy=remedies.runtime_default,
    cel=of_containers(f"{_in_force_in_cel('seccompProfile', 'type')}.orValue('') in {listed(PROFILES)}"),
)
def seccomp(container: Container) -> Violations:
    """Requires the profile of the container runtime or one of the node."""
    profile = in_force(container, "seccompProfile", "type")
    if profile.text not in PROFILES:
        yield profile.wrong(f"the profile is {profile.shown() if profile.is_set else 'not set'}")


@rule(
    "pod-no-privileged",
    Severity.CRITICAL,
    what="No container is privileged.",
    why="A privileged container can do all that root on the node can.",
    source=_BASELINE,
    fix="Remove securityContext.privileged; GPUs need it nowhere, NVIDIA's device plugin gives them.",
    cel=of_containers("c.?securityContext.?privileged.orValue(false) != true"),
)
def no_privileged(container: Container) -> Violations:
    """`privileged` is not set."""
    privileged = container.node.at("securityContext", "privileged")
    if privileged.value is True:
        yield privileged.wrong("is privileged")


@rule(
    "pod-no-host",
    Severity.CRITICAL,
    what="Pods have a network, processes and memory of their own.",
    why="In the node's network no NetworkPolicy applies and Ray's ports are open; the node's processes can be read.",
    source=_BASELINE,
    fix="Remove hostNetwork, hostPID and hostIPC.",
    cel=of_pods(
        "pod.spec.?hostNetwork.orValue(false) != true && pod.spec.?hostPID.orValue(false) != true"
        " && pod.spec.?hostIPC.orValue(false) != true"
    ),
)
def no_host(pod: Pod) -> Violations:
    """Rejects the namespaces of the node."""
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.at(key).value is True:
            yield pod.spec.at(key).wrong("shares it with the node")


@rule(
    "pod-no-host-ports",
    Severity.HIGH,
    what="Containers open no port of their node.",
    why="The port bypasses Services, and only one such pod fits a node: Ray's workers would wait for nodes.",
    source=_BASELINE,
    fix="Remove hostPort; a Service leads to the pod.",
    cel=of_containers("c.?ports.orValue([]).all(port, port.?hostPort.orValue(0) == 0)"),
)
def no_host_ports(container: Container) -> Violations:
    """Rejects `hostPort`."""
    for port in container.node.at("ports").items():
        if port.at("hostPort").number:
            yield port.at("hostPort").wrong(f"opens port {port.at('hostPort').number} of the node")


class HostPaths(Settings):
    """Options of pod-no-host-path."""

    allowed: tuple[str, ...] = ()
    """Paths of nodes that may be mounted, each with everything below it."""


def _no_host_path_in_cel(options: HostPaths) -> str:
    allowed = listed(f"{path.rstrip('/')}/" for path in options.allowed)
    return (
        "pod.spec.?volumes.orValue([]).all(v, v.?hostPath.?path.orValue('') == '' || "
        f"{allowed}.exists(path, (v.hostPath.path + '/').startsWith(path)))"
    )


@rule(
    "pod-no-host-path",
    Severity.CRITICAL,
    what="Pods mount no files of their node.",
    why="With the container runtime's socket or /etc a pod takes over its node.",
    source=_BASELINE,
    fix="Use an emptyDir, or a PersistentVolumeClaim; node-local disks through a CSI driver.",
    cel=of_pods(_no_host_path_in_cel),
)
def no_host_path(pod: Pod, options: HostPaths) -> Violations:
    """Rejects `hostPath` outside the allowed paths."""
    for volume in pod.spec.at("volumes").items():
        path = volume.at("hostPath", "path")
        if path.text and not any(f"{path.text}/".startswith(f"{each.rstrip('/')}/") for each in options.allowed):
            yield path.wrong(f"mounts {path.shown()} of the node")


@rule(
    "volume-no-host-path",
    Severity.HIGH,
    what="PersistentVolumes are not folders of a node.",
    why="By a claim for it a pod mounts files of its node, and Pod Security does not look into claims.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#hostpath",
    fix="Use a CSI driver, or `local` with nodeAffinity for a disk that is for pods alone.",
    kinds=("PersistentVolume",),
)
def no_host_path_by_a_claim(owner: Object) -> Violations:
    """Rejects PersistentVolumes with `hostPath`."""
    path = owner.root.at("spec", "hostPath", "path")
    if path.text:
        yield path.wrong(f"is {path.shown()} of the node")


@rule(
    "pod-readonly-root",
    Severity.LOW,
    what="Containers write only into volumes.",
    why="An intruder cannot change programs. Ray writes into its home and /tmp, so this is advice.",
    source="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
    fix="Set securityContext.readOnlyRootFilesystem: true, with an emptyDir where the program writes.",
)
def readonly_root(container: Container) -> Violations:
    """Requires `readOnlyRootFilesystem`."""
    readonly = container.node.at("securityContext", "readOnlyRootFilesystem")
    if readonly.value is not True:
        yield readonly.wrong("may write into its image's files")


@rule(
    "pod-proc-mount",
    Severity.HIGH,
    what="Containers see of /proc what the container runtime shows.",
    why="Without masks they can read and change settings of the node.",
    source=_BASELINE,
    fix="Remove securityContext.procMount.",
    cel=of_containers("c.?securityContext.?procMount.orValue('Default') == 'Default'"),
)
def proc_mount(container: Container) -> Violations:
    """`procMount` is `Default`."""
    mount = container.node.at("securityContext", "procMount")
    if mount.is_set and mount.text != "Default":
        yield mount.wrong(f"is {mount.shown()}")
