"""The docstrings below fields and constants, read from the source.

Pydantic's `use_attribute_docstrings` reads them when a model is imported, a sixth of a program's start. Only the
reference pages and the schema need them.
"""

import ast
import functools
import inspect
import itertools
import textwrap

from pydantic import BaseModel


@functools.cache
def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The docstring of each field of a model by the field's name, also of inherited fields."""
    docs: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            docs |= _own_docs(each)
    return {name: text for name, text in docs.items() if name in model.model_fields}


def _own_docs(model: type[BaseModel]) -> dict[str, str]:
    try:
        source = inspect.getsource(model)
    except OSError:
        return {}  # pydantic.create_model has made it
    [body] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(body, ast.ClassDef)
    return docstrings(body.body)


def docstrings(statements: list[ast.stmt]) -> dict[str, str]:
    """The docstring below each assignment to a name."""
    return {
        target.id: inspect.cleandoc(text.value.value)
        for assigned, text in itertools.pairwise(statements)
        for target in _targets(assigned)
        if isinstance(target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.AnnAssign):
        return [statement.target]
    return statement.targets if isinstance(statement, ast.Assign) else []
