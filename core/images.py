"""Container images: which registries they may come from, and the mirrors that they are pulled from instead.

What is checked, rayVersion against the tag and the allowed registries, is the name as it is said: a mirror has the same
image under another name, and the stack file has to mean the same with it and without.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from .problems import Path
from .types import DnsSubdomain, ImagePrefix, Settings

DOCKER_HUB = "docker.io"
"""Registry of a name that has none."""

_ALIASES = {"index.docker.io": DOCKER_HUB}
"""Names of a registry that mean another's."""

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class ImagesSettings(Settings):
    """Where the images of everything that the stack makes are pulled from."""

    mirrors: dict[ImagePrefix, ImagePrefix] = Field(default_factory=dict)
    """What the names of images begin with, and what stands there instead: `{docker.io: registry.example.com/hub}`. Of
    several that fit the longest counts. A name without a registry is `docker.io`'s. Tag and digest stay."""


class TenantImagesSettings(Settings):
    """Which images the tenant's RayClusters may have, and how they are pulled."""

    registries: tuple[ImagePrefix, ...] = ()
    """What the names of the images may begin with, as they are said, before any mirror: `quay.io/research`. Default:
    anything."""

    pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in the tenant's namespace that all pods of its RayClusters pull their images with, beside those that a
    RayCluster names itself."""


def full_name(image: str) -> str:
    """An image's name with its registry: `docker.io/rayproject/ray:2.60.0` of `rayproject/ray:2.60.0`.

    As the reference grammar of github.com/distribution/reference has it (normalize.go, splitDockerDomain): the first
    part is a registry if it has a dot or a port or is localhost, and Docker Hub's own images are in `library`.
    """
    first, slash, rest = image.partition("/")
    if not (slash and ("." in first or ":" in first or first == "localhost")):
        first, rest = DOCKER_HUB, image
    first = _ALIASES.get(first, first)
    return f"{first}/{rest}" if first != DOCKER_HUB or "/" in rest else f"{first}/library/{rest}"


def mirrored(image: str, mirrors: Mapping[str, str]) -> str:
    """The name to pull an image by: as said where no mirror fits."""
    name = full_name(image)
    fitting = [prefix for prefix in mirrors if _begins_with(name, prefix)]
    if not fitting:
        return image
    longest = max(fitting, key=lambda prefix: len(_prefix(prefix)))
    return mirrors[longest] + name.removeprefix(_prefix(longest))


def with_mirrors(body: Mapping[str, Any], mirrors: Mapping[str, str]) -> dict[str, Any]:
    """An object with the names of its images rewritten; values that are not known yet stay."""
    rewritten: dict[str, Any] = _mapped(body, (), mirrors) if mirrors else dict(body)
    return rewritten


def images_in(body: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The images that an object names, each with its path: of containers wherever it has pods, of image volumes, and of
    KubeRay's autoscaler. What KubeRay adds to pods itself has the image of Ray's container beside it.
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
    """The images that an object names and that begin with none of the allowed; with none given all are."""
    for path, image in images_in(body) if registries else ():
        if not any(_begins_with(full_name(image), prefix) for prefix in registries):
            yield path, image


def _begins_with(name: str, prefix: str) -> bool:
    """Whether a full name is of a registry or below a path of one: `quay.io/kube` is not the beginning of
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
