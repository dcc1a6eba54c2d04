"""Who is bound to roles, by the objects that a stack renders."""

from collections.abc import Mapping

from core.body import ReadOnlyBody


def people_by_binding(objects: Mapping[tuple[str, str], ReadOnlyBody], namespace: str) -> dict[str, list[str]]:
    """The names of the subjects of each RoleBinding of a namespace. `objects`: by kind and name with the namespace."""
    return {
        name.removeprefix(f"{namespace}/"): [each["name"] for each in body["subjects"]]
        for (kind, name), body in objects.items()
        if kind == "RoleBinding" and name.startswith(f"{namespace}/")
    }
