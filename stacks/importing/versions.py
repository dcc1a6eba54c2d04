"""Which Ray a cluster has, and its image."""

import re
from typing import Any

from components.ray_cluster.settings import FIRST_RAY_WITH_TOKENS
from core.problems import Path
from core.types import image_version, version_tuple

from .answers import Answers
from .notes import Note, RefusedError
from .reader import Log

_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def versions(image: str | None, answers: Answers, log: Log, path: Path, said: Any = None) -> dict[str, Any]:
    """`rayVersion`, `image` and `verifyImageTag`.

    `said`: what the input says of the version. Raises RefusedError, with `path`, where nothing tells the version.
    """
    of_image = image_version(image) if image else None
    version = answers.ray_version or _release(said) or of_image
    if version is None:
        what = f"image {image!r} does not tell" if image else "no image is named, so nothing tells"
        raise RefusedError(Note(path, f"{what} which Ray it is", "say it, for example --ray-version 2.60.0"))
    if version_tuple(version) < version_tuple(FIRST_RAY_WITH_TOKENS):
        log.advise(
            path,
            f"Ray {version} cannot ask callers for a token, so whoever reaches the dashboard may run anything",
            f"use Ray {FIRST_RAY_WITH_TOKENS} or later",
            at=("rayVersion",),
        )
    if image is None:
        made = f"rayproject/ray:{version}"
        log.advise(
            path, "no image is named", f"it is {made} here; use one with all that your code needs", at=("image",)
        )
        return {"rayVersion": version, "image": made}
    if of_image == version:
        return {"rayVersion": version, "image": image}
    log.advise(
        path,
        f"the tag of image {image!r} is not {version}",
        "name an image of that Ray by its version, and drop verifyImageTag",
        at=("image",),
    )
    return {"rayVersion": version, "image": image, "verifyImageTag": False}


def _release(said: Any) -> str | None:
    return said if isinstance(said, str) and _RELEASE.fullmatch(said) else None
