"""Reads files: the configuration of the rules, and objects as `kubectl apply --filename` does."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from core.messages import findings
from core.problems import Finding, StackFileError
from core.problems import Path as Steps
from core.stack_file import EXTENDS, PREFIX, as_yaml, read, stack_file
from core.types import Settings
from core.yaml_reader.document import Document, documents
from core.yaml_reader.scalars import DocumentError, resolve_of_kubernetes
from policies.configuration import Configuration, PoliciesSettings
from policies.values import Object

FILE = Path(__file__).with_name("configuration.yaml")
"""The default file."""

CONFIGURATION = "RAY_PLATFORM_POLICIES"
"""Environment variable with the path of a configuration that replaces that of the pack."""

PROGRAM = FILE.parents[1]
"""The folder of Pulumi.yaml and the stack files."""

KEY = f"{PREFIX}policies"
"""Key of the policies in a stack file."""

_EXTENDS = f"{PREFIX}{EXTENDS}"


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


def of_pack() -> Configuration:
    """The configuration that the policy pack uses. Raises ConfigurationError."""
    return load(Path(os.environ.get(CONFIGURATION) or FILE))


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
    """The policies in the configuration of a stack, as the engine passes it; bases of its stack file are in the folder
    of the program. Raises ConfigurationError."""
    own = {key: _value(config[key]) for key in (KEY, _EXTENDS) if key in config}
    if _EXTENDS in own:
        try:
            merged = stack_file(PROGRAM / "configuration", as_yaml({"config": own}))
        except StackFileError as error:
            raise ConfigurationError(str(error)) from error
        own = merged.config
    policies, found = _validated(own.get(KEY))
    if found:
        raise ConfigurationError("\n".join(map(str, found)))
    return policies


def _value(text: str) -> Any:
    """A value as the engine passes it: mappings and lists are JSON, scalars text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _validated(value: Any) -> tuple[PoliciesSettings, list[Finding]]:
    values = {} if value is None else {"policies": value}
    try:
        return _StackPolicies.model_validate(values, by_alias=True, by_name=False).policies, []
    except ValidationError as error:
        return PoliciesSettings(), findings(error.errors(include_url=False), _StackPolicies, values, PREFIX)


STDIN = "-"
"""Argument for standard input."""

_SUFFIXES = (".yaml", ".yml", ".json")

_RENDER = "pipe `helm template NAME CHART` into `ray-platform policies -`"

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
"""File names of kustomizations, which contain no objects."""


@dataclass(frozen=True)
class Unreadable:
    """A file that cannot be read, or a part of one that is not a Kubernetes object."""

    source: str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(each) for each in (self.source, self.line, self.column) if each) + f": {self.message}"


def objects(names: Iterable[str]) -> Iterator[Object | Unreadable]:
    """The objects in files, in folders (recursively), and in standard input, and what is none.

    At least one: input without any object is unreadable.
    """
    for name in names:
        read_any = False
        for each in _in_bytes(sys.stdin.buffer.read(), "<stdin>") if name == STDIN else _in_files(Path(name)):
            read_any = True
            yield each
        if not read_any:
            yield Unreadable("<stdin>" if name == STDIN else name, "has no Kubernetes object: nothing was judged")


def in_text(text: str, source: str) -> Iterator[Object | Unreadable]:
    """The objects in a YAML text, and what is none."""
    try:
        for document in documents(text, resolve_of_kubernetes):
            if document.value is not None:
                yield from _in_document(document, (), document.value, source)
    except DocumentError as error:
        message = f"it is a template of Helm: {_RENDER}" if "{{" in text else error.message
        yield Unreadable(source, message, error.span.line, error.span.column)


def _in_files(path: Path) -> Iterator[Object | Unreadable]:
    for file in _files(path):
        try:
            content = file.read_bytes()
        except OSError as error:
            yield Unreadable(str(file), f"cannot be read: {error.strerror}")
        else:
            yield from _in_bytes(content, str(file))


def _in_bytes(content: bytes, source: str) -> Iterator[Object | Unreadable]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        yield Unreadable(source, "it is not text in UTF-8: save it as UTF-8")
    else:
        yield from in_text(text, source)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        found = (each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        yield from sorted(each for each in found if each.name not in _KUSTOMIZATIONS)
    else:
        yield path


def _in_document(document: Document, path: Steps, body: Any, source: str) -> Iterator[Object | Unreadable]:
    is_list = isinstance(body, Mapping) and str(body.get("kind", "")).endswith("List") and "items" in body
    if is_list and isinstance(body["items"], list | None):
        for index, each in enumerate(body["items"] or ()):
            yield from _in_document(document, (*path, "items", index), each, source)
    elif is_list:
        yield Unreadable(source, "items is not a list", document.span((*path, "items")).line)
    elif isinstance(body, Mapping) and str(body.get("apiVersion")).startswith("kustomize.config.k8s.io/"):
        message = "it is a Kustomization: pipe `kubectl kustomize FOLDER` into `ray-platform policies -`"
        yield Unreadable(source, message, document.span(path).line)
    elif isinstance(body, Mapping) and {"apiVersion", "kind"} <= body.keys():
        yield Object(
            body,
            source,
            lambda steps: document.line((*path, *steps)),
            said=lambda steps, message: document.said((*path, *steps), message),
        )
    else:
        values = isinstance(body, Mapping) and {"head", "worker"} <= body.keys()
        hint = f". Values of Helm are judged as what the chart renders: {_RENDER}" if values else ""
        message = f"this is not a Kubernetes object: it has no apiVersion and kind{hint}"
        yield Unreadable(source, message, document.span(path).line)
