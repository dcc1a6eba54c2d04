"""RayClusters, in objects of their own, in RayJobs and in RayServices: who gets in, and of which versions they are."""

import re

from core.types import Settings, Version, image_version, version_tuple

from ..cel.check import of_ray
from ..cel.subjects import HEAD, HEAD_CONTAINER
from ..rule import Severity, Violations, rule
from ..values import Node
from ..walk import Container, RayCluster
from . import remedies

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_VERSION_IN_CEL = "[0-9]+[.][0-9]+[.][0-9]+"
_OUTSIDE_IN_CEL = "['NodePort', 'LoadBalancer']"


def _version(node: Node) -> tuple[int, ...] | None:
    found = _VERSION.match(node.text or "")
    return version_tuple(found[0]) if found else None


def _tagged_in_cel(container: str) -> str:
    """The release that an image's tag begins with, or nothing."""
    tag = f"{container}.?image.orValue('').split('@')[0].find('[^/]*$').find(':.*')"
    return f"{tag}.find('^:{_VERSION_IN_CEL}').find('{_VERSION_IN_CEL}')"


@rule(
    "ray-auth-token",
    Severity.CRITICAL,
    what="Ray lets in only who shows a token.",
    why="Whoever reaches the dashboard or the client's port runs any program. `authOptions: {}` leaves it off.",
    source="https://docs.ray.io/en/latest/ray-security/token-auth.html; kuberay ray-operator/apis/ray/v1",
    fix="Set spec.authOptions.mode: token, literally. Ray 2.52 or newer knows it.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"ray.?authOptions.?mode.orValue('') == 'token' || {HEAD_CONTAINER}.?env.orValue([])"
        ".exists(e, e.name == 'RAY_AUTH_MODE' && e.?value.orValue('') == 'token')"
    ),
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


def _minimal_version_in_cel(options: MinimalVersion) -> str:
    major, minor, patch = options.version.split(".")
    newer = f"v[0] > {major} || v[0] == {major} && (v[1] > {minor} || v[1] == {minor} && v[2] >= {patch})"
    said = f"ray.?rayVersion.orValue('') != '' ? ray.rayVersion.find('^{_VERSION_IN_CEL}')"
    return (
        f"[{said} : {_tagged_in_cel(HEAD_CONTAINER)}]"
        ".all(release, release != '' && "
        f"[release.split('.').map(number, int(number))].all(v, {newer}))"
    )


@rule(
    "ray-min-version",
    Severity.HIGH,
    what="Ray is new enough.",
    why="Before 2.54 the dashboard deletes jobs for whoever asks (CVE-2026-27482).",
    source="https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Set spec.rayVersion, and the images, to a newer release.",
    kinds=_CLUSTERS,
    cel=of_ray(_minimal_version_in_cel),
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
    cel=of_ray(
        "ray.?rayVersion.orValue('') == '' || variables.rayPods.all(pod,"
        f" [{_tagged_in_cel('pod.spec.?containers[?0]')}].all(tag, tag == '' || tag == ray.rayVersion))"
    ),
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
    cel=of_ray(
        f"!({HEAD}.?serviceType.orValue('') in {_OUTSIDE_IN_CEL})"
        f" && !({HEAD}.?headService.?spec.?type.orValue('') in {_OUTSIDE_IN_CEL})"
        f" && {HEAD}.?enableIngress.orValue(false) != true"
    ),
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
