"""The tables of docs/access.md as data: persons, verbs, resources and namespaces."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from local import paths

PAGE = paths.ROOT / "docs" / "access.md"

PLACES = {
    "own": {"own"},
    "tenants": {"own", "foreign"},
    "operator": {"operator"},
    "scheduler": {"scheduler"},
    "monitoring": {"monitoring"},
    "logs": {"logs"},
    "everywhere": {"own", "foreign", "operator", "scheduler", "monitoring", "logs", "outside"},
    "yes": {""},
    "no": set[str](),
}
"""The kinds of namespaces for each word of the cells; the empty kind for resources without a namespace."""

WITHOUT_NAMESPACE = "What has no namespace:"
"""The line above tables of resources without a namespace."""

_RESOURCE = re.compile(r"([a-z]+)(?:/([a-z]+))?(?:\.([a-z0-9.-]+))?(?: named (\S+))?")


@dataclass(frozen=True, order=True)
class Action:
    """A verb on a resource, in a namespace of a kind or in none."""

    verb: str
    group: str
    resource: str
    subresource: str
    name: str
    place: str

    @property
    def kind(self) -> str:
        """The resource with its subresource, as in rules."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def by(self, rule: dict[str, Any]) -> bool:
        """Whether a rule of RBAC, which has no wildcards, allows it."""
        return (
            self.verb in rule["verbs"]
            and self.group in rule["apiGroups"]
            and self.kind in rule["resources"]
            and self.name in rule.get("resourceNames", [self.name])
        )

    def __str__(self) -> str:
        named = f" named {self.name}" if self.name else ""
        where = {"": "", "own": " in its own namespace"}.get(self.place, f" in a namespace: {self.place}")
        return f"{self.verb} {self.kind}{f'.{self.group}' if self.group else ''}{named}{where}"

    def review(self, user: str, groups: list[str], namespace: str) -> dict[str, Any]:
        """The SubjectAccessReview for this action of a user."""
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "name": self.name,
            "namespace": namespace,
        }
        return {"spec": {"user": user, "groups": groups, "resourceAttributes": attributes}}


def table() -> dict[str, dict[Action, bool]]:
    """For each column of the page, which actions are allowed."""
    found: dict[str, dict[Action, bool]] = {}
    header: list[str] = []
    places = [""]
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:2] == ["Verbs", "Resources"]:
            header = cells[2:]
        elif line and not cells:
            header, places = [], [""] if line == WITHOUT_NAMESPACE else sorted(PLACES["everywhere"])
        elif header and set(line) - set("|- "):
            verbs, resources, *answers = cells
            for who, answer in zip(header, answers, strict=True):
                for action, allowed in _row(verbs, resources, answer, places):
                    assert action not in found.setdefault(who, {}), f"{who}: {action} is in the page twice"
                    found[who][action] = allowed
    return found


def _row(verbs: str, resources: str, answer: str, places: list[str]) -> Iterator[tuple[Action, bool]]:
    where = set().union(*(PLACES[word] for word in answer.split(", ")))
    for text in resources.split(", "):
        match = _RESOURCE.fullmatch(text)
        assert match, f"{text!r} is not a resource"
        resource, subresource, group, name = (part or "" for part in match.groups())
        for verb in verbs.split(", "):
            for place in places:
                yield Action(verb, group, resource, subresource, name, place), place in where
