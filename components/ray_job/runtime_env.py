"""What Ray refuses in a runtime environment, or ignores. Pure functions.

From ray/runtime_env/runtime_env.py and ray/_private/runtime_env/validation.py of Ray 2.60;
tests/unit/ray_job/test_runtime_env.py compares them.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.ray_job.settings import RuntimeEnvSettings
from core.problems import Path, Problem

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

_REMOTE = ("gcs", "conda", "pip", "uv", "http", "https", "s3", "gs", "azure", "abfss", "file", "local")
"""Schemes of URIs (python/ray/_common/runtime_env_uri.py: Protocol)."""


def problems_of_runtime_env(environment: RuntimeEnvSettings | None, uploads: str | None = None) -> Iterator[Problem]:
    """What is wrong with it; paths in it. `uploads`: who gets it without uploading folders, so that only URIs work."""
    values: Mapping[str, Any] = (environment.model_extra if environment else None) or {}
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
    if uploads:
        yield from _folders(values, uploads)


def _folders(values: Mapping[str, Any], uploads: str) -> Iterator[Problem]:
    """Folders of this machine, which would have to be uploaded."""
    placed: list[tuple[Path, Any]] = [(("working_dir",), values.get("working_dir"))]
    modules = values.get("py_modules")
    placed += [(("py_modules", at), each) for at, each in enumerate(modules)] if isinstance(modules, list) else []
    for path, uri in placed:
        if isinstance(uri, str) and uri.partition("://")[0] not in _REMOTE:
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
