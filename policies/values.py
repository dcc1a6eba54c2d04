"""An object and its values with their paths. Some values are secret; some are not known before `pulumi up`.

A rule reads an object through `Node`. Reading an unknown value raises, so that no rule passes without its inputs.
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


_GROUPS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Pod", "PodTemplate", "ReplicationController", "Service", "Secret", "ConfigMap"), ("",)),
    **dict.fromkeys(("Namespace", "ResourceQuota", "PersistentVolumeClaim"), ("",)),
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), ("apps", "extensions")),
    **dict.fromkeys(("NetworkPolicy", "Ingress"), ("networking.k8s.io", "extensions")),
    **dict.fromkeys(("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"), ("rbac.authorization.k8s.io",)),
    **dict.fromkeys(("RayCluster", "RayJob", "RayService", "RayCronJob"), ("ray.io",)),
    "Job": ("batch", "batch.volcano.sh"),
    "CronJob": ("batch",),
    "PodDisruptionBudget": ("policy",),
    "Queue": ("scheduling.volcano.sh",),
}
"""The API groups of the kinds that rules know: kinds of other groups have only the name in common."""

WORKS = ("Work", "ManifestWork")
"""Kinds that carry objects to other clusters. Their own namespaces stand for these clusters."""


def _no_line(path: Path) -> int | None:
    return None


def _unchanged(path: Path, message: str) -> str:
    return message


def is_placeholder(text: str) -> bool:
    """Whether a text is only a placeholder, to be filled in later."""
    return PLACEHOLDER.fullmatch(text) is not None


class Unknown:
    """Type of UNKNOWN."""

    def __repr__(self) -> str:
        """The text for messages."""
        return "not known before `pulumi up`"


UNKNOWN: Final = Unknown()
"""An output of another resource that is not created yet."""


@dataclass(frozen=True)
class Secret:
    """A value that no message may show."""

    value: Any = field(repr=False)


class NotKnownYetError(Exception):
    """A rule has read a value that is not known before `pulumi up`."""

    def __init__(self, node: Node) -> None:
        """Keeps the object and the path of the value."""
        super().__init__(f"{dotted(node.path)} is {UNKNOWN!r}")
        self.owner, self.path = node.owner, node.path


@dataclass(frozen=True, eq=False)
class Object:
    """An object of the Kubernetes API, from a file or from a Pulumi program."""

    body: Mapping[str, Any]
    """The object as in the API, with UNKNOWN and Secret for such values of a Pulumi program."""

    source: str = ""
    """Its file, or its URN."""

    line: Callable[[Path], int | None] = _no_line
    """Line of a value in the file, from 1."""

    protected: bool | None = None
    """Whether Pulumi refuses to delete it; None for objects that Pulumi does not create."""

    within: Object | None = None
    """The object that contains it, and from which an operator creates it."""

    said: Callable[[Path, str], str] = _unchanged
    """A message about a value, with the file's own word for a boolean."""

    @cached_property
    def root(self) -> Node:
        """The whole object."""
        return Node(self.body, self)

    @cached_property
    def group(self) -> str:
        """Its API group; empty for the core group."""
        group, slash, _ = str(self.body.get("apiVersion")).partition("/")
        return group if slash else ""

    @cached_property
    def kind(self) -> str:
        """Its kind; `Service.serving.knative.dev` if it shares only the name with a kind that rules know."""
        kind = str(self.body.get("kind"))
        return kind if self.group in _GROUPS.get(kind, (self.group,)) else f"{kind}.{self.group}"

    @property
    def name(self) -> str | None:
        """Its name. Raises NotKnownYetError."""
        return self.root.at("metadata", "name").text

    @property
    def namespace(self) -> str | None:
        """Its namespace, or that of the object that contains it; None if not set. Raises NotKnownYetError."""
        own = self.root.at("metadata", "namespace").text
        if own or self.within is None or self.within.kind in WORKS:
            return own
        return self.within.namespace

    @property
    def in_pulumi(self) -> bool:
        """Whether it, or an object that contains it, is a resource of Pulumi."""
        return self.protected is not None or (self.within is not None and self.within.in_pulumi)

    def annotation(self, key: str) -> Node:
        """One of its annotations. Raises NotKnownYetError."""
        return self.root.at("metadata", "annotations", key)

    def label(self, key: str) -> Node:
        """One of its labels. Raises NotKnownYetError."""
        return self.root.at("metadata", "labels", key)

    def __str__(self) -> str:
        """KIND/NAMESPACE/NAME, such as `RayCluster/team-a/training`."""
        metadata = self.body.get("metadata")
        parts = [_shown(metadata.get(key)) if isinstance(metadata, Mapping) else "" for key in ("namespace", "name")]
        return "/".join(filter(None, [self.kind, *parts]))


@dataclass(frozen=True)
class Violation:
    """A violation of a rule."""

    owner: Object
    """The object that has to change."""

    path: Path
    """Path in the object."""

    message: str
    """Description of the problem, in one line, without the path."""


@dataclass(frozen=True)
class Change:
    """A field that a remedy adds to an object."""

    path: Path
    """Path of a field that is not set."""

    value: Any
    """A plain value."""


class Node:
    """A value in an object. The value is None if the field is missing or has another type."""

    __slots__ = ("_value", "owner", "path", "secret")

    def __init__(self, value: Any, owner: Object, path: Path = (), secret: bool = False) -> None:
        """`value`: mappings, lists, text, numbers; UNKNOWN and Secret anywhere in it."""
        while isinstance(value, Secret):
            value, secret = value.value, True
        self._value, self.owner, self.path, self.secret = value, owner, path, secret

    def at(self, *steps: str | int) -> Node:
        """The value below, by keys and indexes. Raises NotKnownYetError if a value on the path is not known."""
        value, secret = self._value, self.secret
        for depth, step in enumerate(steps):
            while isinstance(value, Secret):
                value, secret = value.value, True
            if value is UNKNOWN:
                raise NotKnownYetError(Node(value, self.owner, (*self.path, *steps[:depth]), secret))
            if isinstance(step, str):
                value = value.get(step) if _is_mapping(value) else None
            else:
                value = value[step] if _is_list(value) and step < len(value) else None
        return Node(value, self.owner, (*self.path, *steps), secret)

    @property
    def raw(self) -> Any:
        """The value as it is, with UNKNOWN and Secret in it."""
        return self._value

    @property
    def value(self) -> Any:
        """The plain value. Raises NotKnownYetError if it, or anything in it, is not known."""
        known = self._known()
        if _is_mapping(known):
            return {key: node.value for key, node in self.entries()}
        if _is_list(known):
            return [node.value for node in self.items()]
        return known

    @property
    def is_set(self) -> bool:
        """Whether the value is set. Values inside it may be unknown. Raises NotKnownYetError if it is unknown."""
        return self._known() is not None

    @property
    def text(self) -> str | None:
        """The value if it is text or a number, as text. Raises NotKnownYetError."""
        known = self._known()
        if isinstance(known, int | float) and not isinstance(known, bool):
            return str(known)
        return known if isinstance(known, str) else None

    @property
    def given(self) -> str | None:
        """As `text`. Raises NotKnownYetError also for a placeholder, such as `${NAME}`: something else fills it in."""
        text = self.text
        if text is not None and PLACEHOLDER.search(text):
            raise NotKnownYetError(self)
        return text

    @property
    def number(self) -> int | None:
        """The value if it is an integer. Raises NotKnownYetError, also for a placeholder."""
        known = self._known()
        if isinstance(known, str) and PLACEHOLDER.search(known):
            raise NotKnownYetError(self)
        if isinstance(known, float) and known.is_integer():
            return int(known)
        return known if isinstance(known, int) and not isinstance(known, bool) else None

    @property
    def quantity(self) -> Decimal | None:
        """The value if it is a quantity of Kubernetes. Raises NotKnownYetError, also for a placeholder."""
        try:
            return amount(self.given) if self.given is not None else None
        except NotAQuantityError:
            return None

    def items(self) -> Iterator[Node]:
        """The items of a list; nothing for other types. Raises NotKnownYetError."""
        known = self._known()
        if _is_list(known):
            for index, value in enumerate(known):
                yield Node(value, self.owner, (*self.path, index), self.secret)

    def entries(self) -> Iterator[tuple[str, Node]]:
        """The values of a mapping by key; nothing for other types. Raises NotKnownYetError."""
        known = self._known()
        if _is_mapping(known):
            for key, value in known.items():
                yield key, Node(value, self.owner, (*self.path, key), self.secret)

    def wrong(self, message: str) -> Violation:
        """A violation at this path."""
        return Violation(self.owner, self.path, message)

    def change(self, value: Any) -> Change:
        """A change that sets this path."""
        return Change(self.path, value)

    def shown(self) -> str:
        """The value as a message may show it. Raises NotKnownYetError."""
        if self.secret:
            return "[secret]"
        known = self._known()
        if _is_mapping(known):
            return "a mapping"
        if _is_list(known):
            return "a list"
        return str(known).lower() if isinstance(known, bool) else repr(known)

    def _known(self) -> Any:
        if self._value is UNKNOWN:
            raise NotKnownYetError(self)
        return self._value


def _is_mapping(value: Any) -> bool:
    # isinstance with an abstract class takes ten times as long, and nearly all values are dicts.
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101 -- in this order


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, Sequence) and not isinstance(value, str))


def _shown(value: Any) -> str:
    if value is UNKNOWN:
        return NOT_KNOWN
    return "[secret]" if isinstance(value, Secret) else str(value or "")
