"""How the KubeRay operator is provisioned, or found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ..cluster import ClusterUnreachableError
from ..crd_guard import resources_of
from ..kubernetes import KubernetesObject, in_namespace
from ..kustomize import render
from ..manifest_files import ManifestError
from . import existing, upgrade
from .guard import CrdGuard
from .manifests import Body, UnexpectedTreeError, object_name, operator_objects
from .settings import OperatorSettings
from .supported import UnsupportedVersionError, check_ray

_REASONS = (
    ManifestError,
    UnexpectedTreeError,
    UnsupportedVersionError,
    ClusterUnreachableError,
    upgrade.UnsafeUpgradeError,
)


@dataclass(frozen=True)
class KubeRayOperatorArgs:
    """What a KubeRayOperator is made from."""

    settings: OperatorSettings

    ray_versions: tuple[str, ...] = ()
    """Versions of Ray that clusters of this stack have; the operator must support them."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Watched namespaces that this program makes, by name: the operator's Roles in them wait for them."""

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    policies: Sequence[Body] = ()
    """NetworkPolicies of the operator's namespace, where the stack makes that."""


class KubeRayOperator(pulumi.ComponentResource):
    """KubeRay's CRDs, then the operator's access, then the operator, each object a resource of its own.

    CRDs are upgraded before the operator and never deleted while there is an object of their kinds. What is there is
    read and checked, in previews too: an upgrade must not harm what runs. With `install: existing` nothing is created.

    Whatever needs the operator depends on this component: it exists once the operator's Deployment is available. What
    the component depends on (`depends_on`), such as the scheduler whose PodGroups it makes, all of it depends on.

    Outputs:
        version: the operator's version.
        namespace: the operator's namespace.

    Raises pulumi.RunError where the kustomize tree cannot be rendered or is of another version, the existing operator
    is not supported, a version of Ray is too old for it, or the change from what is there would harm what runs.
    """

    version: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: KubeRayOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:KubeRayOperator", name, None, opts)
        self._below = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        settings = args.settings
        try:
            if settings.install == "existing":
                there = existing.look(args.context, settings.namespace)
                version = existing.check(there, settings.namespace, args.ray_versions)
            else:
                check_ray(settings.version, args.ray_versions)
                if warning := upgrade.check(args.context, settings):
                    pulumi.log.warn(warning, self)
                tree = render(settings.tree, pinned=settings.location is None)
                first, access, last = operator_objects(tree, settings)
                self._provision(name, args, (first, [*access, *args.policies], last))
                version = settings.version
        except _REASONS as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(version)
        self.namespace = pulumi.Output.from_input(settings.namespace)
        self.register_outputs({"version": self.version, "namespace": self.namespace})

    def _provision(self, name: str, args: KubeRayOperatorArgs, stages: Sequence[list[Body]]) -> None:
        made: list[pulumi.Resource] = []
        for stage in stages:
            made += [
                KubernetesObject(
                    f"{name}-{object_name(body)}",
                    _in_made_namespace(body, args.namespaces),
                    pulumi.ResourceOptions.merge(self._below, pulumi.ResourceOptions(depends_on=list(made))),
                )
                for body in stage
            ]
        crds = [body for body in stages[0] if body["kind"] == "CustomResourceDefinition"]
        CrdGuard(
            f"{name}-crd-guard",
            {"resources": resources_of(crds), "context": args.context},
            pulumi.ResourceOptions.merge(self._below, pulumi.ResourceOptions(depends_on=made)),
        )


def _in_made_namespace(body: Body, namespaces: Mapping[str, pulumi.Input[str]]) -> Mapping[str, Any]:
    made = namespaces.get(body["metadata"].get("namespace", ""))
    return body if made is None else in_namespace(body, made)
