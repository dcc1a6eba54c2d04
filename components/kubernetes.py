"""Objects of the Kubernetes API as Pulumi resources, body for body."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.bodies import FIELD_MANAGER_ANNOTATION, Body, in_namespace
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
        super().__init__(token(args["apiVersion"], args["kind"]), name, {**outputs, **_by_this_stack(args)}, opts)


def in_turn(name: str, bodies: Mapping[str, Body], namespace: Any, opts: pulumi.ResourceOptions) -> None:
    """Creates objects in a namespace one after the other, so that a pod starts when what it needs exists.

    `bodies`: by the last part of their resource's name, in that order. `opts`: of each.
    """
    made: list[pulumi.Resource] = []
    for part, body in bodies.items():
        after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(made)))
        made.append(KubernetesObject(f"{name}-{part}", in_namespace(body, namespace), after))


def token(api_version: str, kind: str) -> str:
    """The provider's type token: kinds of the core group are under `core/v1` there, all others as in the API."""
    return f"kubernetes:{_WITHOUT_PREFIX if api_version == 'v1' else api_version}:{kind}"


def field_manager() -> str:
    """The field manager of all objects of this environment, in all its stacks."""
    return f"pulumi-{pulumi.get_project()}-{environment_of(pulumi.get_stack())}"


def _by_this_stack(body: Body) -> Body:
    """The object with the environment's field manager, which is the same in all stacks of a split environment.

    Without the annotation the provider generates a name for each resource that it creates. An object that is imported
    after an interrupted update would have both the old and the new manager, and conflict at every edit.
    """
    manager = {FIELD_MANAGER_ANNOTATION: field_manager()}
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**manager, **(metadata.get("annotations") or {})}}}
