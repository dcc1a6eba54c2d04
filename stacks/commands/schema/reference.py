"""The reference page of the stack file: a table for each model, generated from the models' docstrings."""

import ast
import functools
import inspect
import types as python_types
import typing
from collections.abc import Iterator
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from core import types
from core.docstrings import docstrings, field_docs
from core.stack_file import PROJECT
from stacks.commands.schema.stack_file import paragraphs
from stacks.settings import StackSettings

FILE = Path(__file__).parents[3] / "docs" / "reference" / "stack-file.md"
"""The committed page."""

HEAD = f"""# The stack file: reference

Made from the models by `ray-platform schema --write`; [the guide](../stack-file.md) is the way in. Each table is a
mapping of `Pulumi.STACK.yaml`, and lists its places. Keys are under `config`, with the prefix `{PROJECT}:`.

Editors with the YAML language server complete all of it, with KubeRay's own fields in `overrides` and `podTemplate`, in
a file whose first line is

    # yaml-language-server: $schema=./stack-file.schema.json
"""

Model = type[BaseModel]


def reference_text() -> str:
    places = _places()
    tables = [_section(model, where) for model, where in places.items()]
    return "\n".join([HEAD, *tables, _formats(places)])


def _places() -> dict[Model, list[str]]:
    """Each model with its places in a stack file, in the order in which a reader meets them."""
    found: dict[Model, list[str]] = {}

    def walk(model: Model, place: str) -> None:
        found.setdefault(model, []).append(place)
        for _, key, annotation, _ in _fields(model):
            for inner, steps in _models(annotation):
                walk(inner, f"{place}.{key}{steps}" if place else f"{PROJECT}:{key}{steps}")

    walk(StackSettings, "")
    return found


def _fields(model: Model) -> Iterator[tuple[str, str, Any, FieldInfo]]:
    """Name, key, type and definition of each field."""
    annotations = typing.get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        yield name, field.alias or name, annotations[name], field


def _models(annotation: Any, steps: str = "") -> Iterator[tuple[Model, str]]:
    """The models inside a type, with the steps that lead to them: `[]` into a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, steps
    inside = "[]" if typing.get_origin(annotation) is tuple else ""
    for argument in typing.get_args(annotation):
        yield from _models(argument, steps + inside)


def _section(model: Model, places: list[str]) -> str:
    where = f"`{'`, `'.join(places)}`\n\n" if places != [""] else ""
    rows = [
        f"| {_anchor(model, key)}`{key}` | {_cell(_type(annotation, field))} | {_default(field)} "
        f"| {_meaning(annotation, field.description or field_docs(model).get(name, ''))} |"
        for name, key, annotation, field in _fields(model)
    ]
    head = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {_title(model)}\n", f"{where}{paragraphs(inspect.getdoc(model) or '')}\n", *head, *rows, ""])


def _title(model: Model) -> str:
    return "The whole file" if model is StackSettings else model.__name__.removesuffix("Settings")


def _link(model: Model) -> str:
    return f"[{_title(model)}](#{_title(model).lower()})"


def _anchor(model: Model, key: str) -> str:
    return f'<a id="{_title(model).lower().replace(" ", "-")}-{key.lower()}"></a>'


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n\n", "<br>").replace("\n", " ")


def _meaning(annotation: Any, docstring: str) -> str:
    """The field's docstring, else the docstring of its model."""
    inside = [inspect.getdoc(model) or "" for model, _ in _models(annotation)]
    return _cell(paragraphs(docstring or next(iter(inside), "").partition("\n\n")[0]))


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return "**required**"
    if default is None or default in ("", (), {}) or isinstance(default, BaseModel):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(annotation: Any, field: FieldInfo | None = None) -> str:
    """A type in words: a format by its name, a model by its link."""
    if alias := _named(annotation):
        return f"[{_words(alias)}](#formats)"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        short = next((each for each in annotation.__metadata__ if isinstance(each, BeforeValidator)), None)
        accepted = short.json_schema_input_type if short else PydanticUndefined
        return _type(arguments[0] if accepted is PydanticUndefined else accepted, field)
    if origin in (Union, python_types.UnionType):
        return " or ".join(_type(each, field) for each in arguments if each is not type(None))
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "mapping" if arguments[1] is Any else f"mapping of {_type(arguments[0])} to {_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _link(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{each.value}`" for each in annotation)
    return _PLAIN.get(annotation, "any") + _bounds(field)


_PLAIN = {str: "text", int: "integer", float: "number", bool: "true or false", date: "date"}


def _bounds(field: FieldInfo | None) -> str:
    limits = field.metadata if field else []
    least = next((each.ge for each in limits if isinstance(each, Ge)), None)
    above = next((each.gt for each in limits if isinstance(each, Gt)), None)
    most = next((each.le for each in limits if isinstance(each, Le)), None)
    if above is not None:
        return f", above {above}" if most is None else f", above {above}, at most {most}"
    if least is None and most is None:
        return ""
    return f", at least {least}" if most is None else f", {least} to {most}"


def _named(annotation: Any) -> str | None:
    """The name of a type in core/types.py."""
    return next(
        (name for name, alias in vars(types).items() if name in _formats_of_types() and alias == annotation), None
    )


def _words(name: str) -> str:
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name).strip()


@functools.cache
def _formats_of_types() -> dict[str, str]:
    """The formats of core/types.py, with the docstring below each."""
    return docstrings(ast.parse(inspect.getsource(types)).body)


def _formats(places: dict[Model, list[str]]) -> str:
    used = {name for model in places for *_, annotation, _ in _fields(model) for name in _names_in(annotation)}
    rows = [
        f"| {_words(name)} | {_cell(paragraphs(text))} |" for name, text in _formats_of_types().items() if name in used
    ]
    return "\n".join(["## Formats\n", "| Format | Meaning |", "|---|---|", *rows, ""])


def _names_in(annotation: Any) -> Iterator[str]:
    if name := _named(annotation):
        yield name
    else:
        for argument in typing.get_args(annotation):
            yield from _names_in(argument)
