"""Container images: allowed registries, and mirrors to pull from.

The checks of rayVersion and of allowed registries use the configured name, before any mirror: a mirror has the same
image under another name, and the stack file must mean the same with and without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from core.problems import Path
from core.types import DnsSubdomain, ImagePrefix, Settings

DOCKER_HUB = "docker.io"
"""Default registry."""

_ALIASES = {"index.docker.io": DOCKER_HUB}
"""Aliases of registries."""

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class ImagesSettings(Settings):
    """Registries to pull the images of all pods of the stack from."""

    mirrors: dict[ImagePrefix, ImagePrefix] = Field(default_factory=dict)
    """Prefixes of image names and their replacements: `{docker.io: registry.example.com/hub}`. The longest matching
    prefix applies. A name without a registry is of `docker.io`. Tag and digest stay."""


class TenantImagesSettings(Settings):
    """Images that the tenant's RayClusters may use, and the Secrets to pull them."""

    registries: tuple[ImagePrefix, ...] = ()
    """Allowed prefixes of the configured image names, before any mirror: `quay.io/research`. Default: all."""

    pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in the tenant's namespace with which all pods of its RayClusters pull images, in addition to those of the
    RayCluster itself."""


def full_name(image: str) -> str:
    """An image's name with its registry: `docker.io/rayproject/ray:2.60.0` of `rayproject/ray:2.60.0`.

    It follows the grammar of github.com/distribution/reference (normalize.go, splitDockerDomain): the first part is a
    registry if it has a dot or a port or is localhost, and the official images of Docker Hub are in `library`.
    """
    first, slash, rest = image.partition("/")
    if not (slash and ("." in first or ":" in first or first == "localhost")):
        first, rest = DOCKER_HUB, image
    first = _ALIASES.get(first, first)
    return f"{first}/{rest}" if first != DOCKER_HUB or "/" in rest else f"{first}/library/{rest}"


def mirrored(image: str, mirrors: Mapping[str, str]) -> str:
    """The name to pull an image by; unchanged if no mirror matches."""
    prefix = mirror_of(image, mirrors)
    return image if prefix is None else mirrors[prefix] + full_name(image).removeprefix(_prefix(prefix))


def mirror_of(image: str, mirrors: Mapping[str, str]) -> str | None:
    """The longest prefix of mirrors that an image begins with; None if no mirror matches."""
    matching = [prefix for prefix in mirrors if _begins_with(full_name(image), prefix)]
    return max(matching, key=lambda prefix: len(_prefix(prefix)), default=None)


def with_mirrors(body: Mapping[str, Any], mirrors: Mapping[str, str]) -> dict[str, Any]:
    """An object with the names of its images rewritten; unknown values stay."""
    rewritten: dict[str, Any] = _mapped(body, (), mirrors) if mirrors else dict(body)
    return rewritten


def images_in(body: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The images in an object, each with its path: of containers in all pod templates, of image volumes, and of the
    autoscaler. Containers that KubeRay adds to pods have the image of Ray's container.
    """
    if isinstance(body, list | tuple):
        for index, item in enumerate(body):
            yield from images_in(item, (*path, index))
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if isinstance(value, str):
                if _names_an_image((*path, key)):
                    yield (*path, key), value
            else:
                yield from images_in(value, (*path, key))


def not_allowed(body: Mapping[str, Any], registries: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The images in an object without an allowed prefix. Without registries all images are allowed."""
    for path, image in images_in(body) if registries else ():
        if not any(_begins_with(full_name(image), prefix) for prefix in registries):
            yield path, image


def _begins_with(name: str, prefix: str) -> bool:
    """Whether a full name is in a registry, or below a path in it: `quay.io/kube` is not a prefix of
    `quay.io/kuberay/operator`."""
    whole = _prefix(prefix)
    return name.startswith(whole) and (name[len(whole) :] or ":")[0] in "/:@"


def _prefix(prefix: str) -> str:
    first, slash, rest = prefix.partition("/")
    return f"{_ALIASES.get(first, first)}{slash}{rest}"


def _mapped(value: Any, path: Path, mirrors: Mapping[str, str]) -> Any:
    if isinstance(value, list | tuple):
        return [_mapped(item, (*path, index), mirrors) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: _mapped(item, (*path, key), mirrors) for key, item in value.items()}
    return mirrored(value, mirrors) if isinstance(value, str) and _names_an_image(path) else value


def _names_an_image(path: Path) -> bool:
    match path:
        case (*_, list_name, int(), "image") if list_name in _CONTAINERS:
            return True
        case (*_, "autoscalerOptions", "image") | (*_, "volumes", int(), "image", "reference"):
            return True
    return False
