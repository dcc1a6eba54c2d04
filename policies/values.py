"""An object and its values, each with where it stands: some are secret, and some are not known before `pulumi up`.

A rule reads an object through `Node`. What it reads and cannot know raises, so that no rule passes by not having seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from core.problems import Path, dotted
from core.quantities import NotAQuantityError, amount
from core.secrets import PLACEHOLDER

NOT_KNOWN = "(not known before `pulumi up`)"


def _no_line(path: Path) -> int | None:
    return None


def is_placeholder(text: str) -> bool:
    """Whether a text says only that something is to be filled in."""
    return PLACEHOLDER.fullmatch(text) is not None


class Unknown:
    """Type of UNKNOWN."""

    def __repr__(self) -> str:
        """As a message shows it."""
        return "not known before `pulumi up`"


UNKNOWN: Final = Unknown()
"""A value that another resource gives once it is made."""


@dataclass(frozen=True)
class Secret:
    """A value that nobody may be shown."""

    value: Any = field(repr=False)


class NotKnownYetError(Exception):
    """A value was read that is not known before `pulumi up`."""

    def __init__(self, node: Node) -> None:
        """Keep where it stands."""
        super().__init__(f"{dotted(node.path)} is {UNKNOWN!r}")
        self.owner, self.path = node.owner, node.path


@dataclass(frozen=True, eq=False)
class Object:
    """An object of the Kubernetes API, from a file or from a Pulumi program."""

    body: Mapping[str, Any]
    """As the API has it, with UNKNOWN and Secret where a Pulumi program has them."""

    source: str = ""
    """The file that it is in, or its URN."""

    line: Callable[[Path], int | None] = _no_line
    """The line of the file in which a value stands, from 1."""

    protected: bool | None = None
    """Whether Pulumi refuses to delete it; None where Pulumi does not make it."""

    @cached_property
    def root(self) -> Node:
        """All of it."""
        return Node(self.body, self)

    @cached_property
    def group(self) -> str:
        """Group of its API; empty for Kubernetes' core."""
        group, slash, _ = str(self.body.get("apiVersion")).partition("/")
        return group if slash else ""

    @cached_property
    def kind(self) -> str:
        """Its kind."""
        return str(self.body.get("kind"))

    @property
    def name(self) -> str | None:
        """Its name. Raises NotKnownYetError."""
        return self.root.at("metadata", "name").text

    @property
    def namespace(self) -> str | None:
        """Its namespace, None where it says none. Raises NotKnownYetError."""
        return self.root.at("metadata", "namespace").text

    def annotation(self, key: str) -> Node:
        """One of its annotations. Raises NotKnownYetError."""
        return self.root.at("metadata", "annotations", key)

    def label(self, key: str) -> Node:
        """One of its labels. Raises NotKnownYetError."""
        return self.root.at("metadata", "labels", key)

    def __str__(self) -> str:
        """What it is called: `RayCluster/team-a/training`."""
        metadata = self.body.get("metadata")
        parts = [_shown(metadata.get(key)) if isinstance(metadata, Mapping) else "" for key in ("namespace", "name")]
        return "/".join(filter(None, [self.kind, *parts]))


@dataclass(frozen=True)
class Violation:
    """What a rule finds wrong."""

    owner: Object
    """The object that has to change."""

    path: Path
    """Where, in the object."""

    message: str
    """What is wrong there, in one line, without the path."""


@dataclass(frozen=True)
class Change:
    """What a rule's remedy puts into an object."""

    path: Path
    """Where: a place at which nothing stands."""

    value: Any
    """A plain value."""


class Node:
    """A value in an object. Of what is not there, or is of another shape, the value is None."""

    __slots__ = ("_value", "owner", "path", "secret")

    def __init__(self, value: Any, owner: Object, path: Path = (), secret: bool = False) -> None:
        """`value`: mappings, lists, text, numbers; UNKNOWN and Secret anywhere in it."""
        while isinstance(value, Secret):
            value, secret = value.value, True
        self._value, self.owner, self.path, self.secret = value, owner, path, secret

    def at(self, *steps: str | int) -> Node:
        """The value below, by keys and indexes. Raises NotKnownYetError where one on the way is not known."""
        held, secret = self._value, self.secret
        for passed, step in enumerate(steps):
            while isinstance(held, Secret):
                held, secret = held.value, True
            if held is UNKNOWN:
                raise NotKnownYetError(Node(held, self.owner, (*self.path, *steps[:passed]), secret))
            if isinstance(step, str):
                held = held.get(step) if _is_mapping(held) else None
            else:
                held = held[step] if _is_list(held) and step < len(held) else None
        return Node(held, self.owner, (*self.path, *steps), secret)

    @property
    def value(self) -> Any:
        """The plain value. Raises NotKnownYetError where it, or anything in it, is not known."""
        held = self._known()
        if _is_mapping(held):
            return {key: node.value for key, node in self.entries()}
        if _is_list(held):
            return [node.value for node in self.items()]
        return held

    @property
    def said(self) -> bool:
        """Whether there is a value, known or not in what it holds. Raises NotKnownYetError where not even that is."""
        return self._known() is not None

    @property
    def text(self) -> str | None:
        """The value where it is text; a number as text. Raises NotKnownYetError."""
        held = self._known()
        if isinstance(held, int | float) and not isinstance(held, bool):
            return str(held)
        return held if isinstance(held, str) else None

    @property
    def number(self) -> int | None:
        """The value where it is a whole number. Raises NotKnownYetError."""
        held = self._known()
        if isinstance(held, float) and held.is_integer():
            return int(held)
        return held if isinstance(held, int) and not isinstance(held, bool) else None

    @property
    def quantity(self) -> Decimal | None:
        """The value where it is a quantity of Kubernetes'. Raises NotKnownYetError."""
        try:
            return amount(self.text) if self.text is not None else None
        except NotAQuantityError:
            return None

    def items(self) -> Iterator[Node]:
        """What a list holds; nothing of what is no list. Raises NotKnownYetError."""
        held = self._known()
        if _is_list(held):
            for index, value in enumerate(held):
                yield Node(value, self.owner, (*self.path, index), self.secret)

    def entries(self) -> Iterator[tuple[str, Node]]:
        """What a mapping holds, by key; nothing of what is no mapping. Raises NotKnownYetError."""
        held = self._known()
        if _is_mapping(held):
            for key, value in held.items():
                yield key, Node(value, self.owner, (*self.path, key), self.secret)

    def wrong(self, message: str) -> Violation:
        """The violation at this place."""
        return Violation(self.owner, self.path, message)

    def change(self, value: Any) -> Change:
        """That this stands at this place."""
        return Change(self.path, value)

    def shown(self) -> str:
        """The value as a message may show it. Raises NotKnownYetError."""
        if self.secret:
            return "[secret]"
        held = self._known()
        if _is_mapping(held):
            return "a mapping"
        if _is_list(held):
            return "a list"
        return str(held).lower() if isinstance(held, bool) else repr(held)

    def _known(self) -> Any:
        if self._value is UNKNOWN:
            raise NotKnownYetError(self)
        return self._value


def _is_mapping(held: Any) -> bool:
    # Asking an abstract class takes ten times as long, and nearly all are dicts.
    return isinstance(held, dict) or isinstance(held, Mapping)  # noqa: SIM101 -- in this order


def _is_list(held: Any) -> bool:
    return isinstance(held, list) or (isinstance(held, Sequence) and not isinstance(held, str))


def _shown(value: Any) -> str:
    if value is UNKNOWN:
        return NOT_KNOWN
    return "[secret]" if isinstance(value, Secret) else str(value or "")
