"""Which images run."""

from core.types import ImagePrefix, Settings
from core.versions import image_tag
from policies.cel import ALWAYS, OWN_CONTAINERS, listed, of_containers, of_pods
from policies.rule import Severity, Violations, rule
from policies.walk import Container

_NAME_AND_TAG_IN_CEL = "c.image.split('@')[0].find('[^/]*$')"


@rule(
    "img-no-latest",
    Severity.HIGH,
    what="Images have a tag with a version, or a digest.",
    why="Head and workers that start on different days run different versions of Ray, and cannot speak to each other.",
    source="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    fix="Name the version: rayproject/ray:2.60.0.",
    cel=of_containers(
        f"!has(c.image) || c.image.contains('@') || {_NAME_AND_TAG_IN_CEL}.matches('^[^:]*:')"
        f" && !{_NAME_AND_TAG_IN_CEL}.matches('^[^:]*:(latest|nightly|master|main)(-.*)?$')"
    ),
)
def no_latest(container: Container) -> Violations:
    """Rejects a missing tag and `latest` in any form, such as `latest-gpu`, unless the image has a digest."""
    if (image := container.image.given) and moves(image):
        yield container.image.wrong(f"{container.image.shown()} is another image tomorrow")


def moves(image: str) -> bool:
    """Whether a name is another image tomorrow: it has no digest, and no tag or one in the form of `latest`."""
    tag = image_tag(image)
    return "@" not in image and (tag or "latest").partition("-")[0] in ("latest", "nightly", "master", "main")


@rule(
    "img-said",
    Severity.MEDIUM,
    what="Containers have an image.",
    why="Kubernetes refuses a pod without an image, but only when KubeRay creates it.",
    source="https://kubernetes.io/docs/concepts/containers/images/",
    fix="Set image.",
    cel=of_pods(f"{OWN_CONTAINERS}.all(c, has(c.image))"),
)
def has_image(container: Container) -> Violations:
    """Requires an image. The default for the autoscaler is the image of Ray's container."""
    if container.role != "autoscaler" and not container.image.is_set:
        yield container.image.wrong("names no image")


@rule(
    "img-digest",
    Severity.LOW,
    what="Images are pinned by their digest.",
    why="A tag can be moved: what was tested may not be what runs.",
    source="https://kubernetes.io/docs/concepts/containers/images/#image-pull-policy",
    fix="Add @sha256: and the digest, which `docker buildx imagetools inspect` shows.",
)
def digest(container: Container) -> Violations:
    """Requires a digest."""
    if (image := container.image.given) and "@" not in image:
        yield container.image.wrong(f"{container.image.shown()} has no digest")


class Registries(Settings):
    """Options of img-registry."""

    allowed: tuple[ImagePrefix, ...] = ()
    """Prefixes of image names that are allowed; empty: all."""


def _registry_in_cel(options: Registries) -> str:
    if not options.allowed:
        return ALWAYS
    beginnings = listed(f"{prefix}{end}" for prefix in options.allowed for end in "/:@")
    full = (
        "c.image.matches('^([^/]*[.:][^/]*|localhost)/') ? c.image : "
        "(c.image.contains('/') ? 'docker.io/' : 'docker.io/library/') + c.image"
    )
    return f"!has(c.image) || [{full}].exists(image, {beginnings}.exists(prefix, image.startsWith(prefix)))"


@rule(
    "img-registry",
    Severity.HIGH,
    what="Images are from registries that are allowed.",
    why="Whoever may use any image can run any program.",
    source="https://kubernetes.io/docs/concepts/security/application-security-checklist/#images",
    fix="Copy the image to one of them, or add its registry to the rule's option `allowed`.",
    cel=of_containers(_registry_in_cel),
)
def registry(container: Container, options: Registries) -> Violations:
    """The image begins with an allowed prefix. A name without a registry is of Docker Hub."""
    image = container.image.given if options.allowed else None
    if image is not None and not is_of(image, options.allowed):
        yield container.image.wrong(f"{container.image.shown()} is from none of {', '.join(options.allowed)}")


def is_of(image: str, allowed: tuple[str, ...]) -> bool:
    """Whether the name of an image begins with one of the prefixes."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    full = image if named else f"docker.io/{image if slash else f'library/{image}'}"
    return any(full.startswith((f"{each}/", f"{each}:", f"{each}@")) for each in allowed)


@rule(
    "img-no-bitnami",
    Severity.HIGH,
    what="No image is Bitnami's.",
    why="Since August 2025 those with versions are frozen, without security fixes, under bitnamilegacy.",
    source="https://github.com/bitnami/containers/issues/83267",
    fix="Take the project's own image, such as redis:8 or valkey/valkey:9.",
    cel=of_containers("!c.?image.orValue('').matches('(^|/)(bitnami|bitnamilegacy)/')"),
)
def no_bitnami(container: Container) -> Violations:
    """Rejects `bitnami/` and `bitnamilegacy/`."""
    image = container.image.text or ""
    if {"bitnami", "bitnamilegacy"} & set(image.split("/")[:-1]):
        yield container.image.wrong(f"{container.image.shown()} gets no fixes any more")
