"""Identities of objects: kinds, names, ids, annotations."""

import secrets
from dataclasses import dataclass
from typing import Any

from local.plugins.kubernetes.values import Json

AUTONAMED = "pulumi.com/autonamed"
"""Annotation of objects whose name was generated, so that a replacement can exist beside the old one."""

SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Fields of metadata that only the server writes (Kubernetes API reference, ObjectMeta)."""


@dataclass(frozen=True)
class Kind:
    """A group, version and kind; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def builtin(self) -> bool:
        """Whether it is a kind of Kubernetes itself, by its group."""
        return "." not in self.group or self.group.endswith(".k8s.io")

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"

    @classmethod
    def of(cls, api_version: str, kind: str) -> "Kind":
        group, _, version = api_version.rpartition("/")
        return cls("" if group == "core" else group, version, kind)

    @classmethod
    def of_object(cls, obj: Json) -> "Kind":
        return cls.of(obj.get("apiVersion", ""), obj.get("kind", ""))

    @classmethod
    def of_urn(cls, urn: str) -> "Kind":
        """The kind in a resource's type: `...$kubernetes:apps/v1:Deployment::name`."""
        _, module, kind = urn.split("::")[2].rpartition("$")[2].split(":")
        return cls.of(module, kind)


CONFIG_MAP = Kind("", "v1", "ConfigMap")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
SECRET = Kind("", "v1", "Secret")


def urn_name(urn: str) -> str:
    return urn.split("::", 3)[3]


def at(obj: Any, *path: str) -> Any:
    """The value at a path of nested mappings, None if there is none."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def name_of(obj: Json) -> str:
    return at(obj, "metadata", "name") or ""


def namespace_of(obj: Json) -> str:
    return at(obj, "metadata", "namespace") or ""


def id_of(obj: Json) -> str:
    """The resource's id in the state: `namespace/name`, or `name` for a kind without namespaces."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def split_id(identifier: str) -> tuple[str, str]:
    """The namespace (empty for a kind without one) and the name in an id."""
    namespace, _, name = identifier.rpartition("/")
    return namespace, name


def annotation(obj: Json, key: str) -> str:
    value = at(obj, "metadata", "annotations", key)
    return value if isinstance(value, str) else ""


def is_true(obj: Json, key: str) -> bool:
    return annotation(obj, key) == "true"


def is_autonamed(obj: Json) -> bool:
    return is_true(obj, AUTONAMED)


def unique_name(prefix: str, seed: bytes) -> str:
    """The prefix and eight hexadecimal digits: from the engine's seed, so that a preview and its update agree."""
    return prefix + (seed.hex()[:8] if len(seed) >= 4 else secrets.token_hex(4))


def is_kind_of_list(kind: Kind) -> bool:
    """Whether a kind of Kubernetes itself is the list of another, as `kubectl get -o yaml` writes them."""
    return kind.builtin and kind.kind.endswith("List")
