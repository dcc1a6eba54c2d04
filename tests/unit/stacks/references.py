"""The objects that an object names in its fields, and that therefore exist before it."""

from collections.abc import Iterator
from typing import Any

REFERENCES = {
    "serviceAccountName": "ServiceAccount",
    "claimName": "PersistentVolumeClaim",
    "volumeName": "PersistentVolume",
    "priorityClassName": "PriorityClass",
    "configMap": "ConfigMap",
    "queue": "Queue",
    "secretKeyRef": "Secret",
    "secretName": "Secret",
}
"""Fields of objects that have names of other objects, and their kinds."""


def needed(value: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of each object that an object refers to."""
    for key, inner in value.items() if isinstance(value, dict) else ((None, each) for each in value):
        name = inner.get("name") if key in ("configMap", "secretKeyRef") and isinstance(inner, dict) else inner
        if key in REFERENCES and isinstance(name, str):
            yield REFERENCES[key], name
        if isinstance(inner, dict | list):
            yield from needed(inner)
