"""Objects of the Kubernetes API as Pulumi resources, body for body."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pulumi

from components.bodies import FIELD_MANAGER_ANNOTATION, in_namespace
from components.objects import Object
from core.body import Body
from core.environment import environment_of

_WITHOUT_PREFIX = "core/v1"


class KubernetesObject(pulumi.CustomResource):
    """One object of any kind. Its body is sent to the Kubernetes provider unchanged.

    The SDK's typed classes rename nested keys. For custom resources its CustomResource does not return `status`. This
    class sends every kind verbatim and returns `status`.

    Outputs:
        metadata, spec, status: as the API server returned them; None if the kind has no such field.
    """

    metadata: pulumi.Output[dict[str, Any]]
    spec: pulumi.Output[dict[str, Any] | None]
    status: pulumi.Output[dict[str, Any] | None]

    def __init__(self, name: str, args: Body, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"metadata": None, "spec": None, "status": None}
        super().__init__(token(args["apiVersion"], args["kind"]), name, {**outputs, **by_this_stack(args)}, opts)


def create(
    name: str,
    objects: Iterable[Object],
    opts: pulumi.ResourceOptions,
    namespaces: Mapping[str, pulumi.Input[str]] = MappingProxyType({}),
    made: Mapping[str, pulumi.Resource] = MappingProxyType({}),
) -> dict[str, KubernetesObject]:
    """Creates the objects of a list, each after those that it needs. Returns them by their names in the list.

    `name`: prefix of their resources' names. `opts`: of each. `namespaces`: those that this program creates, by name:
    an object in one waits for it. `made`: objects of the list that exist already.
    """
    created: dict[str, KubernetesObject] = {}
    for each in objects:
        # What it needs may be in another stack of the environment.
        first = [found for needed in each.after if (found := created.get(needed) or made.get(needed))]
        own = opts
        if first or each.protected:
            kept = each.protected or None
            more = pulumi.ResourceOptions(depends_on=first, protect=kept, retain_on_delete=kept)
            own = pulumi.ResourceOptions.merge(opts, more)
        inside = namespaces.get(each.namespace or "")
        body = each.body if inside is None else in_namespace(each.body, inside)
        created[each.name] = KubernetesObject(f"{name}-{each.name}", body, own)
    return created


def uid(made: KubernetesObject) -> pulumi.Output[str | None]:
    return made.metadata.apply(lambda metadata: (metadata or {}).get("uid"))


def dependencies(opts: pulumi.ResourceOptions | None) -> list[Any]:
    """What a component depends on, which its children do not inherit."""
    given = opts.depends_on if opts else None
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) else [given]


def below(parent: pulumi.Resource, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Options of a component's child that waits for what the component depends on."""
    return pulumi.ResourceOptions(parent=parent, depends_on=dependencies(opts))


def token(api_version: str, kind: str) -> str:
    """The provider's type token: kinds of the core group are under `core/v1` there, all others as in the API."""
    return f"kubernetes:{_WITHOUT_PREFIX if api_version == 'v1' else api_version}:{kind}"


def field_manager() -> str:
    """The field manager of all objects of this environment, in all its stacks."""
    return f"pulumi-{pulumi.get_project()}-{environment_of(pulumi.get_stack())}"


def by_this_stack(body: Body) -> Body:
    """The object with the environment's field manager, which is the same in all stacks of a split environment.

    Without the annotation the provider generates a name for each resource that it creates. An object that is imported
    after an interrupted update would have both the old and the new manager, and conflict at every edit.
    """
    manager = {FIELD_MANAGER_ANNOTATION: field_manager()}
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**manager, **(metadata.get("annotations") or {})}}}
