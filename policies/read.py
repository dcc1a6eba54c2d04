"""Reads files: the configuration of the rules, and objects as `kubectl apply --filename` does."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from core.messages import findings
from core.problems import Finding, StackFileError
from core.problems import Path as Steps
from core.stack_file import PREFIX, read, stack_file
from core.types import Settings
from core.yaml_reader.document import Document, DocumentError, documents

from .configuration import Configuration, PoliciesSettings
from .values import Object

FILE = Path(__file__).with_name("configuration.yaml")
"""The default file."""

KEY = f"{PREFIX}policies"
"""Key of the policies in a stack file."""


class ConfigurationError(Exception):
    """The configuration of the rules is not valid; the text has one line for each error."""


class _StackPolicies(Settings):
    policies: PoliciesSettings = PoliciesSettings()


def load(file: Path = FILE) -> Configuration:
    """Loads a configuration file of the pack. Raises ConfigurationError."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    try:
        return Configuration.model_validate({} if values is None else values, by_alias=True, by_name=False)
    except ValidationError as error:
        mapping = values if isinstance(values, Mapping) else {}
        found = findings(error.errors(include_url=False), Configuration, mapping, "")
        raise ConfigurationError("\n".join(each.in_file(str(file)) for each in found)) from error


def of_stack_file(file: Path) -> PoliciesSettings:
    """The policies in a stack file, of any Pulumi program. Raises ConfigurationError."""
    try:
        loaded = stack_file(file, read(file))
        policies, found = _validated(loaded.config.get(KEY))
        if found:
            raise loaded.error(found)
    except StackFileError as error:
        raise ConfigurationError(str(error)) from error
    return policies


def of_config(config: Mapping[str, str]) -> PoliciesSettings:
    """The policies in the configuration of a stack, as the engine passes it. Raises ConfigurationError."""
    text = config.get(KEY)
    try:
        value = None if text is None else json.loads(text)
    except ValueError:
        value = text
    policies, found = _validated(value)
    if found:
        raise ConfigurationError("\n".join(map(str, found)))
    return policies


def _validated(value: Any) -> tuple[PoliciesSettings, list[Finding]]:
    values = {} if value is None else {"policies": value}
    try:
        return _StackPolicies.model_validate(values, by_alias=True, by_name=False).policies, []
    except ValidationError as error:
        return PoliciesSettings(), findings(error.errors(include_url=False), _StackPolicies, values, PREFIX)


STDIN = "-"
"""Argument for standard input."""

_SUFFIXES = (".yaml", ".yml", ".json")

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
"""File names of kustomizations, which contain no objects."""


class UnreadableError(Exception):
    """A file cannot be read, or contains something other than Kubernetes objects."""


def objects(names: Iterable[str]) -> Iterator[Object]:
    """The objects in files, in folders (recursively), and in standard input. Raises UnreadableError."""
    for name in names:
        if name == STDIN:
            yield from in_text(sys.stdin.read(), "<stdin>")
        else:
            for file in _files(Path(name)):
                yield from in_text(_text(file), str(file))


def in_text(text: str, source: str) -> Iterator[Object]:
    """The objects in a YAML text. Raises UnreadableError."""
    try:
        for document in documents(text):
            yield from _in_document(document, source)
    except DocumentError as error:
        raise UnreadableError(f"{source}:{error.span.line}:{error.span.column}: {error.message}") from error


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        found = (each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        yield from sorted(each for each in found if each.name not in _KUSTOMIZATIONS)
    else:
        yield path


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{file}: cannot be read: {error}") from error


def _in_document(document: Document, source: str) -> Iterator[Object]:
    value = document.value
    if value is None:
        return
    listed = isinstance(value, Mapping) and str(value.get("kind", "")).endswith("List") and "items" in value
    for path, body in _items(value) if listed else [((), value)]:
        if not isinstance(body, Mapping) or not {"apiVersion", "kind"} <= body.keys():
            line = document.span(path).line
            raise UnreadableError(f"{source}:{line}: this is not a Kubernetes object: it has no apiVersion and kind")
        yield Object(body, source, _lines(document, path))


def _items(value: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    return ((("items", index), body) for index, body in enumerate(value["items"] or ()))


def _lines(document: Document, path: Steps) -> Any:
    return lambda steps: document.span((*path, *steps)).line
