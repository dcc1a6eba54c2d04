"""Names, quantities, durations and versions in the format of the stack file.

And environment variables that it must not have in plain text.
"""

import re
from decimal import Decimal
from math import ceil
from typing import Any

from core.problems import Path
from core.quantities import NotAQuantityError, amount
from core.secrets import ADVICE, SECRET, is_secret, secret_in
from core.versions import image_version, ray_image_version, version_tuple
from kuberay.releases import FIRST_RAY_WITH_TOKENS
from stacks.commands.importing.reader import Answers, Log, Note, Reader, RefusedError


def dns_name(text: str, limit: int, fallback: str) -> str:
    """The nearest RFC 1035 label: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        return fallback
    if not name[0].isalpha():
        name = f"{fallback}-{name}"
    return name[:limit].rstrip("-")


def number(value: float) -> str:
    """A number without an empty fraction: 2.0 is `2`."""
    return str(int(value)) if value == int(value) else str(value)


def duration(seconds: float) -> str:
    """Seconds in the format of Kubernetes durations: 300 is `5m`."""
    whole = max(1, round(seconds))
    for unit, length in (("h", 3600), ("m", 60)):
        if whole % length == 0:
            return f"{whole // length}{unit}"
    return f"{whole}s"


def bytes_quantity(count: float) -> str:
    """Bytes as a Kubernetes quantity: whole Gi, or else Mi rounded down."""
    whole = max(int(count), 2**20)
    return f"{whole // 2**30}Gi" if whole % 2**30 == 0 else f"{whole // 2**20}Mi"


def whole_cpus(cpu: str) -> str:
    """The number of CPUs that Ray derives from a container's: whole ones, rounded up; 1 if it cannot be parsed."""
    return str(ceil(cpus(cpu)))


def cpus(cpu: str) -> Decimal:
    """The CPUs of a container; 1 if they cannot be parsed."""
    try:
        return amount(cpu)
    except NotAQuantityError:
        return Decimal(1)


RELEASE = re.compile(r"\d+\.\d+\.\d+")
"""A release of Ray."""


def versions(image: str | None, answers: Answers, log: Log, path: Path, configured: Any = None) -> dict[str, Any]:
    """`rayVersion`, `image` and `verifyImageTag`.

    `configured`: the version in the input. Raises RefusedError, with `path`, if the version is unknown.
    """
    of_image = ray_image_version(image) if image else None
    version = answers.ray_version or _release(configured) or of_image
    if version is None:
        what = "no image is set, so the version of Ray is unknown"
        if image and image_version(image):
            what = f"the tag of image {image!r} is the version of an application, not of Ray"
        elif image:
            what = f"the tag of image {image!r} has no version of Ray"
        raise RefusedError(Note(path, what, "set the version, for example --ray-version 2.60.0"))
    if version_tuple(version) < version_tuple(FIRST_RAY_WITH_TOKENS):
        log.advise(
            path,
            f"Ray {version} cannot ask callers for a token, so everybody who can reach the dashboard can run anything",
            f"use Ray {FIRST_RAY_WITH_TOKENS} or later",
            at=("rayVersion",),
        )
    if image is None:
        made = f"rayproject/ray:{version}"
        log.advise(
            path, "no image is set", f"it is {made} here; use one that has all that your code needs", at=("image",)
        )
        return {"rayVersion": version, "image": made}
    if image_version(image) == version:
        return {"rayVersion": version, "image": image}
    log.advise(
        path,
        f"the tag of image {image!r} is not {version}",
        "use an image with that version of Ray in its tag, and remove verifyImageTag",
        at=("image",),
    )
    return {"rayVersion": version, "image": image, "verifyImageTag": False}


def of_groups(cluster: dict[str, Any], log: Log, path: Path) -> None:
    """Sets `verifyImageTag` to false if worker groups have images of applications, whose tags have other versions."""
    for group in cluster.get("workerGroups", []):
        image = group.get("image")
        if image and ray_image_version(image) is None and image_version(image) != cluster["rayVersion"]:
            cluster["verifyImageTag"] = False
            log.advise(
                path,
                f"the tag of image {image!r} is not {cluster['rayVersion']}",
                "use an image with that version of Ray in its tag, and remove verifyImageTag",
                at=("workerGroups", group["groupName"], "image"),
            )


def _release(configured: Any) -> str | None:
    return configured if isinstance(configured, str) and RELEASE.fullmatch(configured) else None


def is_secret_annotation(name: str, value: str) -> bool:
    """Whether the value of an annotation or a label is a secret, by its look or because its name ends as that of one.

    `checksum/secret` and `vault.hashicorp.com/agent-inject-secret-config` are none.
    """
    prefix, _, last = name.rpartition("/")
    variable = re.sub(r"[-.]", "_", last)
    *_, end = (0, *(found.end() for found in SECRET.finditer(variable)))
    named = end == len(variable) and not prefix.startswith("checksum")
    return secret_in(value) is not None or (named and is_secret(variable, value))


def is_noted_secret(name: str, value: str, part: Reader, annotation: bool = False) -> bool:
    """Whether a variable or an annotation is a secret in plain text; if so, it is noted without its value."""
    if not (is_secret_annotation(name, value) if annotation else is_secret(name, value)):
        return False
    part.note(f"{name!r} looks like a secret, and a stack file is plain text", ADVICE)
    return True
