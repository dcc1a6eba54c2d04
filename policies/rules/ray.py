"""RayClusters, standalone, in RayJobs and in RayServices: authentication, exposure and versions."""

import re

from core.types import Settings, Version
from core.versions import RAYS_IMAGE, ray_image_version, version_tuple
from policies.cel import HEAD, HEAD_CONTAINER, of_ray, text
from policies.rule import Severity, Violations, rule
from policies.rules import remedies
from policies.values import Node
from policies.walk import Container, RayCluster

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_VERSION_IN_CEL = "[0-9]+[.][0-9]+[.][0-9]+"
_OUTSIDE_IN_CEL = "['NodePort', 'LoadBalancer']"


def _version(node: Node) -> tuple[int, ...] | None:
    found = _VERSION.match(node.given or "")
    return version_tuple(found[0]) if found else None


def _tagged_in_cel(container: str) -> str:
    """CEL for the release that the tag of an image of Ray begins with; empty without one."""
    tag = f"{container}.?image.orValue('').split('@')[0].find('[^/]*$').find({text(f'{RAYS_IMAGE}.*')}).find(':.*')"
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
    """The mode is `token` in `authOptions` or in the variable of the head."""
    mode = cluster.spec.at("authOptions", "mode")
    variable = cluster.head.first.env("RAY_AUTH_MODE") if mode.given != "token" else None
    if mode.text != "token" and (variable is None or variable.at("value").text != "token"):
        yield mode.wrong(f"is {mode.shown()}" if mode.is_set else "is not set: everybody has access")


class MinimalVersion(Settings):
    """Options of ray-min-version."""

    version: Version = "2.54.0"
    """The oldest release that is allowed."""


def _minimal_version_in_cel(options: MinimalVersion) -> str:
    major, minor, patch = options.version.split(".")
    newer = f"v[0] > {major} || v[0] == {major} && (v[1] > {minor} || v[1] == {minor} && v[2] >= {patch})"
    ray_version = f"ray.?rayVersion.orValue('') != '' ? ray.rayVersion.find('^{_VERSION_IN_CEL}')"
    return (
        f"[{ray_version} : {_tagged_in_cel(HEAD_CONTAINER)}]"
        ".all(release, release != '' && "
        f"[release.split('.').map(number, int(number))].all(v, {newer}))"
    )


@rule(
    "ray-min-version",
    Severity.HIGH,
    what="Ray is new enough.",
    why="Before 2.54 the dashboard deletes jobs for every client (CVE-2026-27482).",
    source="https://docs.ray.io/en/latest/ray-security/index.html",
    fix="Set spec.rayVersion, and the images, to a newer release.",
    kinds=_CLUSTERS,
    cel=of_ray(_minimal_version_in_cel),
)
def minimal_version(cluster: RayCluster, options: MinimalVersion) -> Violations:
    """`rayVersion`, or else the tag of the head's image of Ray, is a release that is not older than the option."""
    ray_version, image = cluster.spec.at("rayVersion"), cluster.head.first.image
    tagged = None if ray_version.is_set else ray_image_version(image.given or "")
    version = version_tuple(tagged) if tagged else _version(ray_version)
    if version is None:
        yield ray_version.wrong(f"{ray_version.shown()} is not a release" if ray_version.is_set else "is not set")
    elif version < version_tuple(options.version):
        place = image if tagged else ray_version
        yield place.wrong(f"{place.shown()} is older than {options.version}")


@rule(
    "ray-image-version",
    Severity.HIGH,
    what="The images of Ray have the RayCluster's rayVersion.",
    why="KubeRay chooses the autoscaler, probes and commands by rayVersion; pods of two versions cannot speak.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html#rayversion",
    fix="Set the same version in spec.rayVersion and in the images of head and workers.",
    kinds=_CLUSTERS,
    cel=of_ray(
        "ray.?rayVersion.orValue('') == '' || variables.rayPods.all(pod,"
        f" [{_tagged_in_cel('pod.spec.?containers[?0]')}].all(tag, tag == '' || tag == ray.rayVersion))"
    ),
)
def image_is_of_version(cluster: RayCluster) -> Violations:
    """If the tag of an image of Ray begins with a release, that release is `rayVersion`.

    An image of Ray has the word ray in its name: the tag of another one is its application's version.
    """
    version = cluster.spec.at("rayVersion")
    for pod in cluster.pods():
        image = pod.first.image
        tagged = ray_image_version(image.given or "")
        if version.given and tagged and tagged != version.text:
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
    """Requires `RAY_USE_TLS=1` in all pods of the cluster."""
    for pod in cluster.pods():
        variable = pod.first.env("RAY_USE_TLS")
        if variable is None or variable.at("value").text != "1":
            yield pod.first.node.at("env").wrong("RAY_USE_TLS is not 1")


@rule(
    "ray-no-public-dashboard",
    Severity.CRITICAL,
    what="The head's ports are not open to the outside.",
    why="Whoever reaches the dashboard can run programs: ShadowRay took over thousands of clusters this way.",
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
    """The Service of the head is internal, and KubeRay creates no Ingress."""
    head = cluster.spec.at("headGroupSpec")
    for service_type in (head.at("serviceType"), head.at("headService", "spec", "type")):
        if service_type.text in ("NodePort", "LoadBalancer"):
            yield service_type.wrong(f"{service_type.shown()} opens all of Ray's ports to the outside")
    if head.at("enableIngress").value is True:
        yield head.at("enableIngress").wrong("KubeRay's Ingress asks for no login")


@rule(
    "ray-background-delete",
    Severity.MEDIUM,
    what="Pulumi deletes RayClusters in the background.",
    why="In the foreground the garbage collector deletes the Job that cleans up Redis while the operator needs it.",
    source="https://www.pulumi.com/registry/packages/kubernetes/installation-configuration/",
    fix="Set the annotation pulumi.com/deletionPropagationPolicy: background.",
    kinds=("RayCluster",),
    remedy=remedies.background_delete,
)
def background_delete(cluster: RayCluster) -> Violations:
    """Requires the annotation on resources of Pulumi."""
    propagation = cluster.owner.annotation("pulumi.com/deletionPropagationPolicy")
    if cluster.owner.kind == "RayCluster" and cluster.owner.protected is not None and propagation.text != "background":
        yield propagation.wrong(f"is {propagation.shown()}" if propagation.is_set else "is not set")


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
    """Compares the tag of the operator's image with the option."""
    image = (container.image.text or "").partition("@")[0]
    found = re.fullmatch(r"(?:.*/)?kuberay/operator:v?(\d+\.\d+\.\d+)", image)
    if found and version_tuple(found[1]) < version_tuple(options.version):
        yield container.image.wrong(f"{container.image.shown()} is older than {options.version}")
