"""RayClusters, wherever they stand: in an object of their own, a RayJob or a RayService."""

import re

from core.types import Settings, Version, image_version, version_tuple

from ..rule import Severity, Violations, rule
from ..values import Node
from ..walk import Container, Pod, RayCluster
from . import remedies

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def _version(node: Node) -> tuple[int, ...] | None:
    found = _VERSION.match(node.text or "")
    return version_tuple(found[0]) if found else None


@rule(
    "ray-auth-token",
    Severity.CRITICAL,
    what="Ray lets in only who shows a token.",
    why="Whoever reaches the dashboard or the client's port runs any program. `authOptions: {}` leaves it off.",
    source="https://docs.ray.io/en/latest/ray-security/token-auth.html; kuberay ray-operator/apis/ray/v1",
    fix="Set spec.authOptions.mode: token, literally. Ray 2.52 or newer knows it.",
    kinds=_CLUSTERS,
)
def auth_token(cluster: RayCluster) -> Violations:
    """The mode is `token`, or the head's own variable says so."""
    mode = cluster.spec.at("authOptions", "mode")
    said = cluster.head.first.env("RAY_AUTH_MODE") if mode.text != "token" else None
    if mode.text != "token" and (said is None or said.at("value").text != "token"):
        yield mode.wrong(f"is {mode.shown()}" if mode.said else "is not said: anybody is let in")


class MinimalVersion(Settings):
    """Options of ray-min-version."""

    version: Version = "2.54.0"
    """The oldest release that is allowed."""


@rule(
    "ray-min-version",
    Severity.HIGH,
    what="Ray is new enough.",
    why="Before 2.54 the dashboard deletes jobs for whoever asks (CVE-2026-27482).",
    source="https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Set spec.rayVersion, and the images, to a newer release.",
    kinds=_CLUSTERS,
)
def minimal_version(cluster: RayCluster, options: MinimalVersion) -> Violations:
    """`rayVersion`, or else the tag of the head's image, says a release that is not older than the option."""
    said, image = cluster.spec.at("rayVersion"), cluster.head.first.image
    tagged = None if said.said else image_version(image.text or "")
    version = version_tuple(tagged) if tagged else _version(said)
    if version is None:
        yield said.wrong(f"{said.shown()} is no release" if said.said else "is not said")
    elif version < version_tuple(options.version):
        place = image if tagged else said
        yield place.wrong(f"{place.shown()} is older than {options.version}")


@rule(
    "ray-image-version",
    Severity.HIGH,
    what="The images of Ray are of the version that the RayCluster says.",
    why="KubeRay chooses the autoscaler, probes and commands by rayVersion; pods of two versions cannot speak.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#rayversion",
    fix="Say the same version in spec.rayVersion and in the images of head and workers.",
    kinds=_CLUSTERS,
)
def image_is_of_version(cluster: RayCluster) -> Violations:
    """Where a tag begins with a release, it is `rayVersion`."""
    version = cluster.spec.at("rayVersion")
    for pod in cluster.pods():
        image = pod.first.image
        tagged = image_version(image.text or "")
        if version.text and tagged and tagged != version.text:
            yield image.wrong(f"{image.shown()} is not of version {version.shown()}")


@rule(
    "ray-tls",
    Severity.LOW,
    what="Ray's processes speak TLS.",
    why="Without it tokens and data pass the network in plain text. It costs some speed, so it is advice.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/tls.html",
    fix="Set RAY_USE_TLS=1 and the certificates in head and workers, or `tls` in this platform's stack file.",
    kinds=_CLUSTERS,
)
def tls(cluster: RayCluster) -> Violations:
    """`RAY_USE_TLS` in all its pods."""
    for pod in cluster.pods():
        said = pod.first.env("RAY_USE_TLS")
        if said is None or said.at("value").text != "1":
            yield pod.first.node.at("env").wrong("RAY_USE_TLS is not 1")


@rule(
    "ray-no-public-dashboard",
    Severity.CRITICAL,
    what="The head's ports are not open to the outside.",
    why="Who reaches the dashboard runs programs: ShadowRay took over thousands of clusters so.",
    source="https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Remove serviceType and enableIngress of headGroupSpec; use `kubectl port-forward` or an Ingress with a login.",
    kinds=_CLUSTERS,
)
def no_public_dashboard(cluster: RayCluster) -> Violations:
    """The head's Service stays inside, and KubeRay makes no Ingress of its own."""
    head = cluster.spec.at("headGroupSpec")
    for said in (head.at("serviceType"), head.at("headService", "spec", "type")):
        if said.text in ("NodePort", "LoadBalancer"):
            yield said.wrong(f"{said.shown()} opens all of Ray's ports to the outside")
    if head.at("enableIngress").value is True:
        yield head.at("enableIngress").wrong("KubeRay's Ingress asks for no login")


@rule(
    "ray-head-zero-cpu",
    Severity.MEDIUM,
    what="No task or actor runs on the head.",
    why="One that fills the head's memory takes the cluster down.",
    source="https://docs.ray.io/en/latest/cluster/vms/user-guides/large-cluster-best-practices.html",
    fix='Set headGroupSpec.rayStartParams.num-cpus: "0".',
    kinds=_CLUSTERS,
)
def head_zero_cpu(cluster: RayCluster) -> Violations:
    """Ray counts no CPU of the head, by its start parameters or its group's resources, where there are workers."""
    group = cluster.spec.at("headGroupSpec")
    said, of_group = group.at("rayStartParams", "num-cpus"), group.at("resources", "CPU")
    if not cluster.alone and (of_group if of_group.said else said).quantity != 0:
        yield said.wrong(f"is {said.shown()}: tasks run on the head" if said.said else "tasks run on the head")


@rule(
    "ray-head-zero-gpu",
    Severity.MEDIUM,
    what="The head has no GPU.",
    why="It is kept for as long as the cluster lives, and no task should run there.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html",
    fix="Remove GPUs from the limits of the head's container.",
    kinds=_CLUSTERS,
)
def head_zero_gpu(cluster: RayCluster) -> Violations:
    """No GPU in the limits of the head's container, where there are workers."""
    if cluster.alone:
        return
    for resource, amount in cluster.head.first.node.at("resources", "limits").entries():
        if resource.endswith("/gpu") and amount.quantity:
            yield amount.wrong(f"the head keeps {amount.shown()} of {resource}")


@rule(
    "ray-worker-no-sa-token",
    Severity.HIGH,
    what="Workers have no token of Kubernetes.",
    why="What runs in a task would speak to the API server with the rights of the worker's account.",
    source="https://kubernetes.io/docs/concepts/security/service-accounts/#assign-to-pod; kuberay#1416",
    fix="Set automountServiceAccountToken: false in the workers' pod templates.",
    kinds=_CLUSTERS,
    remedy=remedies.no_token_in_workers,
)
def worker_no_token(cluster: RayCluster) -> Violations:
    """Not mounted, unless Ray has Kubernetes review tokens, for which workers show theirs."""
    if cluster.spec.at("authOptions", "enableK8sTokenAuth").value is True:
        return
    for pod in cluster.workers():
        said = pod.spec.at("automountServiceAccountToken")
        if said.value is not False:
            yield said.wrong("tasks can use the account's token")


@rule(
    "ray-head-priority",
    Severity.LOW,
    what="The head goes before its workers.",
    why="Where nodes are full the scheduler evicts whoever has the lowest priority, and without its head all is lost.",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    fix="Give the head a PriorityClass that is higher than the workers'.",
    kinds=_CLUSTERS,
)
def head_priority(cluster: RayCluster) -> Violations:
    """The head names a class, and no worker names the same."""
    if cluster.alone:
        return
    head = cluster.head.spec.at("priorityClassName")
    if not head.said:
        yield head.wrong("is not said")
    elif head.text in [pod.spec.at("priorityClassName").text for pod in cluster.workers()]:
        yield head.wrong(f"{head.shown()} is the workers' too")


@rule(
    "ray-gpu-node-affinity",
    Severity.MEDIUM,
    what="Workers with GPUs say which nodes they are for.",
    why="A cluster with two kinds of GPUs gives them either, and a job runs at the speed of the slowest.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html",
    fix="Set nodeSelector or a node affinity, for example on nvidia.com/gpu.product.",
    kinds=_CLUSTERS,
)
def gpu_node_affinity(cluster: RayCluster) -> Violations:
    """A node selector or a node affinity."""
    for pod in cluster.workers():
        asks = any(
            resource.endswith("/gpu") and amount.quantity
            for resource, amount in pod.first.node.at("resources", "limits").entries()
        )
        if asks and not pod.spec.at("nodeSelector").said and not pod.spec.at("affinity", "nodeAffinity").said:
            yield pod.spec.at("nodeSelector").wrong("runs on any node with a GPU")


@rule(
    "ray-background-delete",
    Severity.MEDIUM,
    what="Pulumi deletes RayClusters in the background.",
    why="In the foreground the garbage collector takes the Job that cleans up Redis from under the operator.",
    source="https://www.pulumi.com/registry/packages/kubernetes/installation-configuration/",
    fix="Set the annotation pulumi.com/deletionPropagationPolicy: background.",
    kinds=("RayCluster",),
    remedy=remedies.background_delete,
)
def background_delete(cluster: RayCluster) -> Violations:
    """The annotation, on what Pulumi makes."""
    said = cluster.owner.annotation("pulumi.com/deletionPropagationPolicy")
    if cluster.owner.protected is not None and said.text != "background":
        yield said.wrong(f"is {said.shown()}" if said.said else "is not said")


class OperatorVersion(Settings):
    """Options of ray-operator-minver."""

    version: Version = "1.6.2"
    """The oldest release that is allowed."""


@rule(
    "ray-operator-minver",
    Severity.MEDIUM,
    what="The KubeRay operator is new enough.",
    why="Before 1.6.2 a RayCluster whose Redis is gone can never be deleted.",
    source="https://github.com/ray-project/kuberay/releases",
    fix="Install a newer operator, its CRDs first.",
    kinds=("Deployment",),
)
def operator_version(container: Container, options: OperatorVersion) -> Violations:
    """The tag of the operator's image."""
    image = (container.image.text or "").partition("@")[0]
    found = re.fullmatch(r"(?:.*/)?kuberay/operator:v?(\d+\.\d+\.\d+)", image)
    if found and version_tuple(found[1]) < version_tuple(options.version):
        yield container.image.wrong(f"{container.image.shown()} is older than {options.version}")


class HeadMemory(Settings):
    """Options of ray-head-memory."""

    gibibytes: int = 2
    """The least that a head should have."""


@rule(
    "ray-head-memory",
    Severity.MEDIUM,
    what="The head has memory for the GCS and the dashboard.",
    why="A head that runs out of memory takes the cluster down with it.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html; kuberay#4287",
    fix="Give the head's container more memory: 8Gi is a good beginning.",
    kinds=_CLUSTERS,
)
def head_memory(cluster: RayCluster, options: HeadMemory) -> Violations:
    """A limit of memory of so many GiB."""
    limit = cluster.head.first.node.at("resources", "limits", "memory")
    if limit.quantity is not None and limit.quantity < options.gibibytes * 2**30:
        yield limit.wrong(f"{limit.shown()} is less than {options.gibibytes}Gi")


@rule(
    "ray-worker-stops",
    Severity.LOW,
    what="Pods have time to stop.",
    why="Kubernetes kills what runs at once, and Ray notices only when its heartbeats are missing.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html",
    fix="Remove terminationGracePeriodSeconds: 0.",
    kinds=_CLUSTERS,
)
def worker_stops(pod: Pod) -> Violations:
    """Not zero seconds."""
    said = pod.spec.at("terminationGracePeriodSeconds")
    if pod.ray is not None and said.number == 0:
        yield said.wrong("is killed at once")
