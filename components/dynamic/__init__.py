"""Dynamic resources: those whose providers are part of this program.

States refer to the classes of providers by their modules, and Pulumi's Python plugin imports them. So all are in this
package, each beside its resource, and nothing else is.
"""

from typing import Any, ClassVar

import pulumi
import pulumi.dynamic

from components.pulumi_internals import restored_pickler


class Resource(pulumi.dynamic.Resource):
    """A dynamic resource without a limit on their number in a stack (`restored_pickler`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with restored_pickler():
            super().__init__(*args, **kwargs)


class Provider(pulumi.dynamic.ResourceProvider):
    """The base of all providers. It compares inputs, and an update stores them."""

    serialize_as_secret_always = False

    replacing: ClassVar[tuple[str, ...]] = ()
    """Inputs of which a change makes another resource."""

    compared: ClassVar[tuple[str, ...] | None] = None
    """Further inputs of which a change is an update. None: all that there are, which the state then has as of the last
    `up`. A resource whose deletion does something needs that, because the deletion uses them."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> pulumi.dynamic.DiffResult:
        moved = self.moved(_olds, _news)
        compared = {*_olds, *_news} if self.compared is None else self.compared
        changes = bool(moved) or any(_olds.get(key) != _news.get(key) for key in compared)
        return pulumi.dynamic.DiffResult(changes=changes, replaces=moved)

    def moved(self, olds: dict[str, Any], news: dict[str, Any]) -> list[str]:
        """The inputs that make another resource."""
        return [key for key in self.replacing if olds.get(key) != news.get(key)]

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> pulumi.dynamic.UpdateResult:
        return pulumi.dynamic.UpdateResult(dict(_news))
