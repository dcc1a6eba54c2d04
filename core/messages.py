"""Converts pydantic errors to findings: each error once, at its place in the file, with what to write instead."""

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from core.problems import UNKNOWN_FIELD, Finding, Path, Problem, Problems, few, in_one_line, quoted, shown
from core.stack_file import PREFIX
from core.suggestions import keys_meant

_MAPPING = "a mapping (`key: value`) is expected here"
_LIST = "a list (`- item`) is expected here"
_WHOLE = "a whole number is expected here"
_NUMBER = "a number is expected here"

_EXPECTED = {
    "model_type": ("wrong-type", _MAPPING),
    "dict_type": ("wrong-type", _MAPPING),
    "tuple_type": ("wrong-type", _LIST),
    "list_type": ("wrong-type", _LIST),
    "string_type": ("wrong-type", "text is expected here"),
    "int_type": ("wrong-type", _WHOLE),
    "int_parsing": ("wrong-type", _WHOLE),
    "int_from_float": ("wrong-type", _WHOLE),
    "int_parsing_size": ("out-of-range", "a smaller number is expected here"),
    "float_type": ("wrong-type", _NUMBER),
    "float_parsing": ("wrong-type", _NUMBER),
    "finite_number": ("out-of-range", "a finite number is expected here"),
    "bool_type": ("wrong-type", "write true or false"),
    "bool_parsing": ("wrong-type", "write true or false"),
    "literal_error": ("not-allowed-value", "use {expected}"),
    "enum": ("not-allowed-value", "use {expected}"),
    "greater_than_equal": ("out-of-range", "give at least {ge}"),
    "greater_than": ("out-of-range", "give more than {gt:g}"),
    "less_than_equal": ("out-of-range", "give at most {le}"),
    "less_than": ("out-of-range", "give less than {lt}"),
    "too_short": ("out-of-range", "write something, or leave the key out"),
    "string_too_short": ("out-of-range", "write something, or leave the key out"),
    "string_pattern_mismatch": ("wrong-format", "give a match of {pattern}"),
}
"""Rule and hint for each pydantic error type."""

_SECRET_KEY = re.compile(
    r"(?!.*(names?|secrets|ref|path|file|mode|auth)$).*"
    r"(passw|passphrase|secret|token|credential|api_?key|private_?key|access_?key)",
    re.IGNORECASE | re.DOTALL,
)
"""A key whose value may be secret, unless it is only a reference to a secret."""

_POLICIES = f"{PREFIX}policies"

MOST = 1000
"""Maximum number of listed errors."""

LONGEST_VALUE = 200
"""Maximum characters of a value in a finding."""

_LONGEST_KEY = 100


def findings(
    faults: list[ErrorDetails], model: type[BaseModel], values: Mapping[str, Any], prefix: str
) -> list[Finding]:
    """The findings of `model` in the values; `prefix` is the prefix of their keys: `ray-platform:`."""
    problems = (problem for fault in faults[:MOST] for problem in _problems(fault, model))
    return [*of_problems(problems, values, prefix), *_too_many(len(faults))]


def of_problems(problems: Iterable[Problem], values: Mapping[str, Any], prefix: str) -> list[Finding]:
    """The findings for problems of settings in the values, without duplicates."""
    found: dict[tuple[Path, str], Finding] = {}
    for problem in problems:
        path = _as_written(problem.path, values)
        finding = _finding((f"{prefix}{path[0]}", *path[1:]) if path else (), problem)
        found.setdefault((finding.path, finding.rule), finding)
    return list(found.values())


def _too_many(faults: int) -> list[Finding]:
    message = f"{faults - MOST} more errors are not listed: correct these first"
    return [Finding((), None, message, "too-many")] if faults > MOST else []


def may_be_secret(path: Path, rule: str = "") -> bool:
    """Whether the value at a path must not be shown, by its key or by the rule."""
    if "secret" in rule:
        return True
    if path[:1] == (_POLICIES,):
        return False  # its keys are the ids of rules, some of them about tokens
    return secret_key(next((step for step in reversed(path) if isinstance(step, str)), ""))


def secret_key(key: str) -> bool:
    """Whether the value of a key may be secret."""
    return bool(_SECRET_KEY.match(key))


def _finding(path: Path, problem: Problem) -> Finding:
    value, message = problem.value, problem.message
    if may_be_secret(path, problem.rule):
        if isinstance(value, str) and value:
            message = message.replace(repr(value), "the value").replace(value, "***")
        value = None
    elif isinstance(value, str):
        message = message.replace(repr(value), shown(value))
        value = value[:LONGEST_VALUE]
    elif isinstance(value, Mapping | list | tuple):
        value = None  # a secret may be anywhere in it
    return Finding(path, value, in_one_line(message), problem.rule, rendered=problem.rendered)


def _problems(fault: ErrorDetails, model: type[BaseModel]) -> Iterator[Problem]:
    location, kind = fault["loc"], fault["type"]
    value = fault["input"]
    if kind == "extra_forbidden":
        message = _unknown_key(str(location[-1]), _model_at(model, location[:-1]), _of_tenants(location, model))
        yield Problem(location, None, message, UNKNOWN_FIELD)
    elif kind == "missing":
        yield Problem(location, None, "is required, but missing", "required-field")
    elif kind == "value_error":
        reason = fault["ctx"]["error"]
        if isinstance(reason, Problems):
            yield from (each.below(location) for each in reason.problems)
        else:
            yield Problem(location, value if _is_scalar(value) else None, str(reason), "wrong-value")
    elif kind in ("string_type", "dict_type") and (advice := _of_variables(location, value)):
        yield Problem(location, None, advice, "wrong-type")
    elif kind == "string_type" and isinstance(value, int | float):
        message = f"{shown(value)} is not allowed: text is expected here; {quoted(value)}"
        yield Problem(location, value, message, "wrong-type")
    else:
        rule, hint = _EXPECTED.get(kind, ("wrong-value", ""))
        hint = hint.format(**fault.get("ctx", {})) or fault["msg"]
        if kind == "model_type" and (meant := _model_at(model, location)).__name__ == fault["ctx"]["class_name"]:
            hint += f"; its keys: {few(_keys(meant), _MOST_KEYS)}"
        reason = "is empty" if value is None else f"{shown(value)} is not allowed"
        yield Problem(location, value if _is_scalar(value) else None, f"{reason}: {hint}", rule)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _as_written(location: Path, values: Any) -> Path:
    """A location as in the file: without the steps that pydantic adds, or that a short form omits."""
    path: list[str | int] = []
    for step in location:
        if isinstance(values, list) and isinstance(step, int):
            values = values[step] if step < len(values) else None
        elif isinstance(values, dict) and isinstance(step, str) and (step != "[key]" or step in values):
            values = values.get(step)
        elif values is not None:
            continue
        path.append(step)
    return tuple(path)


def _of_variables(location: Path, value: Any) -> str | None:
    """The message for environment variables of a RayCluster as a pod has them."""
    if "clusters" not in location:
        return None
    within = "podTemplate of head and workers, {spec: {containers: [{name: ray-head, env: [...]}]}} or name: ray-worker"
    if location[-1] == "env" and isinstance(value, list):
        return f"a list is not allowed: write `NAME: value` for each; what has valueFrom belongs into {within}"
    if location[-2:-1] == ("env",) and isinstance(value, dict):
        return f"a mapping is not allowed: text is expected here; what has valueFrom belongs into {within}"
    return None


_TENANTS = "tenants"

_MOST_KEYS = 6
"""The most keys that are listed beside a suggestion."""


def _of_tenants(location: Path, model: type[BaseModel]) -> str | None:
    """Where a tenant has a key that is written outside of tenants: `tenants[].jobs[]` for `jobs[0].cluster`."""
    if _TENANTS not in _keys(model) or location[0] == _TENANTS:
        return None
    tenant, inside, key = _model_at(model, (_TENANTS,)), location[:-1], location[-1]
    if (inside and inside[0] not in _keys(tenant)) or key not in _keys(_model_at(tenant, inside)):
        return None
    return "".join([f"{_TENANTS}[]", *("[]" if isinstance(step, int) else f".{step}" for step in inside)])


def _unknown_key(key: str, model: type[BaseModel], belongs: str | None) -> str:
    known = _keys(model)
    if belongs:
        return f"unknown key {shown(key)}: it belongs under {belongs}. Known keys: {few(known, _MOST_KEYS)}"
    near = keys_meant(key, known) or _below(key, model) or _nearest(key, known)
    if near:
        suggestion = f"did you mean {' and '.join(map(repr, near))}?"
        return f"unknown key {shown(key)}: {suggestion} Known keys: {few(known, _MOST_KEYS)}"
    return f"unknown key {shown(key)}: Known keys: {', '.join(known)}"


def _below(key: str, model: type[BaseModel]) -> tuple[str, ...]:
    """The key that another means of the items in a list of the model: `variants.cpu` for `num_cpus`."""
    for name, field in model.model_fields.items():
        inner = next(_models(field.annotation), None) if "tuple" in str(field.annotation) else None
        if inner and (meant := keys_meant(key, _keys(inner))):
            return (f"{field.alias or name}.{meant[0]}",)
    return ()


@functools.lru_cache
def _nearest(key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(difflib.get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.6))


def _model_at(model: type[BaseModel], location: Path) -> type[BaseModel]:
    """The model at a location."""
    for step in location:
        if isinstance(step, str):
            field = next((each for each in model.model_fields.values() if each.alias == step), None)
            model = next(_models(field.annotation), model) if field else model
    return model


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a model, in the order in which they are documented."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside a type such as `tuple[Model, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
