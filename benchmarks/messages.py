"""All texts of findings, errors and effects, a folder at a time, to read them as a person does:

    .venv/bin/python -m benchmarks.messages [FOLDER ...]      # stacks/checks, components/redis; default: all parts

Reads the source (`ast`): what is raised, printed, yielded as a problem or an effect, or called a message there.
"""

import ast
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

_PARTS = ("core", "kuberay", "policies", "components", "stacks", "local")

_CALLS = {"Problem", "Finding", "Effect", "Kind", "Fixed", "Rule", "Violation", "ended", "echo", "print", "show"}

_NAMES = {"message", "text", "why", "reason", "safer", "hint", "says"}

_SHORTEST = 4
"""Words of a text that is a sentence."""


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for each in _sources(node):
            for found in _strings(each):
                if len(found[1].split()) >= _SHORTEST:
                    yield found


def _sources(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Raise(exc=ast.Call(args=arguments)):
            yield from arguments
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in _CALLS:
            yield from (*arguments, *(each.value for each in node.keywords))
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _NAMES:
            yield value
        case ast.Yield(value=ast.expr() as value):
            yield value


def _strings(value: ast.expr) -> Iterator[tuple[int, str]]:
    match value:
        case ast.Constant(value=str(text)):
            yield value.lineno, text
        case ast.JoinedStr():
            yield value.lineno, "".join(_part(each) for each in value.values)
        case ast.Tuple(elts=several) | ast.List(elts=several):
            yield from (found for each in several for found in _strings(each))
        case ast.IfExp(body=first, orelse=second):
            yield from (*_strings(first), *_strings(second))


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else f"{{{ast.unparse(value)[1:-1] or '...'}}}"


def main(folders: list[str]) -> None:
    for folder in folders or _PARTS:
        files = sorted(Path(folder).rglob("*.py"))
        for parent, some in groupby(files, lambda each: each.parent):
            found = [(file, *each) for file in some for each in sorted(set(texts(file)))]
            if found:
                print(f"\n## {parent} ({len(found)})")
            for file, line, text in found:
                print(f"{file.name}:{line}: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
