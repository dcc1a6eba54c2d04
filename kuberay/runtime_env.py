"""A runtime environment of Ray, and what Ray refuses in it, or ignores. Pure functions.

From ray/runtime_env/runtime_env.py and ray/_private/runtime_env/validation.py of Ray 2.60;
tests/unit/kuberay/test_runtime_env.py compares them.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from core.problems import Path, Problem
from core.types import Env


class RuntimeEnvSettings(BaseModel):
    """A runtime environment of Ray, with all its keys (docs.ray.io, Runtime environments)."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    env_vars: Env = Field(default_factory=dict)
    """Environment variables of the job's processes."""

    @property
    def others(self) -> dict[str, Any]:
        """Its other keys."""
        return self.model_extra or {}


_RULE = "runtime-env"

_TEXT, _LIST, _MAPPING = "text", "a list", "a mapping"

KEYS: Mapping[str, tuple[str, ...]] = {
    "conda": (_TEXT, _MAPPING),
    "config": (_MAPPING,),
    "container": (_MAPPING,),
    "env_vars": (_MAPPING,),
    "excludes": (_LIST,),
    "image_uri": (_TEXT,),
    "java_jars": (_LIST,),
    "pip": (_TEXT, _LIST, _MAPPING),
    "py_executable": (_TEXT,),
    "py_modules": (_LIST,),
    "uv": (_TEXT, _LIST, _MAPPING),
    "worker_process_setup_hook": (_TEXT,),
    "working_dir": (_TEXT,),
}
"""Its keys, each with what it may be. Ray has further ones that begin with `_`, and plugins may add any."""

_PACKAGES = ("conda", "pip", "uv")
"""At most one of them."""

_IMAGES = ("container", "image_uri")
"""Each runs the worker in a container of its own, and takes only _BESIDE_IMAGES."""

_BESIDE_IMAGES = ("config", "env_vars")

_TIMEOUT = "setup_timeout_seconds"

_PACKED = (".zip", ".tar.gz", ".tgz", ".tar.xz")
_ARCHIVES: Mapping[str, tuple[str, ...]] = {"working_dir": _PACKED, "py_modules": (*_PACKED, ".whl")}
"""Ends of remote URIs (python/ray/_common/runtime_env_package.py: RUNTIME_ENV_PACKAGE_EXTENSIONS). Before 2.60 Ray
takes fewer."""

_FETCHED = ("gcs", "http", "https", "s3", "gs", "azure", "abfss", "file")
"""Schemes of URIs of archives."""

_REMOTE = ("gcs", "conda", "pip", "uv", "http", "https", "s3", "gs", "azure", "abfss", "file", "local")
"""Schemes of URIs (python/ray/_common/runtime_env_uri.py: Protocol)."""


def problems_of_runtime_env(values: Mapping[str, Any], uploads: str | None = None) -> Iterator[Problem]:
    """What is wrong with it; paths in it. `uploads`: who gets it without uploading folders, so that only URIs work."""
    for key, value in values.items():
        kinds = KEYS.get(key)
        if kinds is None and (like := difflib.get_close_matches(key, KEYS, 1)):
            message = f"Ray would ignore key {key!r}: did you mean {like[0]!r}?"
            yield Problem((key,), None, message, _RULE)
        elif kinds is not None and value is not None and _kind(value) not in kinds:
            message = f"Ray refuses {_kind(value)} here: write {' or '.join(kinds)}"
            yield Problem((key,), value if isinstance(value, bool | int | float | str) else None, message, _RULE)
    if len(given := [key for key in _PACKAGES if values.get(key) is not None]) > 1:
        message = f"Ray refuses it together with {given[0]}: remove one, or name its packages in conda's dependencies"
        yield Problem((given[1],), None, message, _RULE)
    for image in (key for key in _IMAGES if values.get(key)):
        for other in (key for key in values if key not in (image, *_BESIDE_IMAGES)):
            message = (
                f"Ray refuses it together with {image}, which takes only {' and '.join(_BESIDE_IMAGES)}: remove one"
            )
            yield Problem((other,), None, message, _RULE)
    config = values.get("config")
    timeout = config.get(_TIMEOUT) if isinstance(config, Mapping) else None
    if isinstance(timeout, int) and timeout <= 0 and timeout != -1:
        yield Problem(("config", _TIMEOUT), timeout, "Ray refuses it: give seconds, or -1 for no limit", _RULE)
    yield from _archives(values)
    if uploads:
        yield from _folders(values, uploads)


def _placed(values: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """The places of code."""
    placed: list[tuple[Path, Any]] = [(("working_dir",), values.get("working_dir"))]
    modules = values.get("py_modules")
    placed += [(("py_modules", at), each) for at, each in enumerate(modules)] if isinstance(modules, list) else []
    return [(path, each) for path, each in placed if isinstance(each, str)]


def _archives(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Remote URIs of what is not an archive."""
    for path, uri in _placed(values):
        scheme, separator, rest = uri.partition("://")
        ends = _ARCHIVES[str(path[0])]
        if separator and scheme in _FETCHED and not rest.partition("?")[0].endswith(ends):
            message = f"Ray refuses what does not end in {', '.join(ends)}: write the URI of an archive"
            yield Problem(path, uri, message, _RULE)


def _folders(values: Mapping[str, Any], uploads: str) -> Iterator[Problem]:
    """Folders of this machine, which would have to be uploaded."""
    for path, uri in _placed(values):
        if uri.partition("://")[0] not in _REMOTE:
            message = (
                f"{uploads} uploads nothing: write the URI of an archive (https://, s3://, gs://), or local:// and a "
                "folder of the image"
            )
            yield Problem(path, uri, message, _RULE)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return _TEXT
    if isinstance(value, Mapping):
        return _MAPPING
    return _LIST if isinstance(value, Sequence) else "a number or truth value"
