"""Errors in settings as people read them: one line for each, with the field, the value, what is allowed."""

import difflib
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_SHOWN = 60
"""Characters of a value that are shown."""


def explain(error: ValidationError, model: type[BaseModel], project: str) -> str:
    """All faults that `model` found, one in each line, as `ray-platform:tenants[0].name: ...`."""
    return "\n".join(f"{_path(fault, project)}{_text(fault, model)}" for fault in error.errors(include_url=False))


def _path(fault: ErrorDetails, project: str) -> str:
    location = fault["loc"]
    if fault["type"] == "extra_forbidden":
        location = location[:-1]
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return f"{project}:{steps.removeprefix('.')}: " if steps else f"{project}: "


def _text(fault: ErrorDetails, model: type[BaseModel]) -> str:
    match fault["type"]:
        case "extra_forbidden":
            return _unknown_key(str(fault["loc"][-1]), _keys(model, fault["loc"][:-1]))
        case "missing":
            return "is required and not there"
        case "value_error":
            return str(fault["ctx"]["error"])
    return f"{_shown(fault['input'])} is not allowed: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown key {key!r}: {suggestion}Known keys: {', '.join(known)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the model at a location, in the order in which they are documented."""
    for step in location:
        if isinstance(step, str):
            field = next((each for each in model.model_fields.values() if each.alias == step), None)
            model = next(_models(field.annotation), model) if field else model
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside a type such as `tuple[Model, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
