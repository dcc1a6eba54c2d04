"""How the KubeRay operator is provisioned, or found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.cluster import Cluster
from components.dynamic.guards import CrdGuardProvider
from components.install import NOT_INSTALLED, InstallArgs, Manifest, install
from components.kubernetes import below
from components.kubernetes_cluster import KubernetesCluster
from components.manifest_files import Objects, render
from components.operator import upgrade
from components.operator.manifests import operator_objects
from components.operator.settings import OperatorSettings
from components.pulumi_internals import unknown
from core.body import Body

REFUSED = (*NOT_INSTALLED, upgrade.UnsafeUpgradeError)
"""Errors of installing, finding or upgrading the operator."""


@dataclass(frozen=True)
class KubeRayOperatorArgs:
    settings: OperatorSettings

    ray_versions: tuple[str, ...] = ()
    """Ray versions of this stack's clusters. The operator must support them."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Watched namespaces that this program creates, by name: the operator's Roles in them wait for them."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    policies: Sequence[Body] = ()
    """NetworkPolicies of the operator's namespace, if the stack creates the namespace."""

    mirrors: Mapping[str, str] = field(default_factory=dict)
    """Mirrors of images (core.images)."""

    judged: upgrade.Judged | None = None
    """The comparison with the live operator. Default: it is read while the component is constructed."""

    manifest: Manifest | None = None
    """KubeRay's. Default: it is rendered while the component is constructed, and not compared with the cluster."""


class KubeRayOperator(pulumi.ComponentResource):
    """KubeRay's CRDs as one resource; then the operator's access, then the operator, a resource for each object.

    CRDs are upgraded before the operator and never deleted while objects of their kinds exist. The live installation is
    read and checked, in previews too: an upgrade must not harm running clusters. With `install: existing` nothing is
    created.

    Resources that need the operator depend on this component, which is complete once the operator's Deployment is
    available. All its resources depend on everything that the component depends on (`depends_on`), such as the
    scheduler for whose PodGroups the operator has rights.

    Outputs:
        version: the operator's version.
        namespace: the operator's namespace.

    Raises pulumi.RunError if the kustomize tree cannot be rendered or is of another version, the existing operator is
    not supported, a version of Ray is too old for it, or the change of the live operator would harm running clusters.
    """

    version: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: KubeRayOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:KubeRayOperator", name, None, opts)
        settings = args.settings
        judged = args.judged
        try:
            if judged is None and (settings.install == "manifests" or args.cluster.exists):
                judged = upgrade.judged(args.cluster, settings, args.ray_versions)
            if judged and judged.warning:
                pulumi.log.warn(judged.warning, self)
            if settings.install == "manifests":
                manifest = args.manifest or Manifest(operator_tree(settings))
                first, access, last = operator_objects(manifest.objects, settings)
                stages, guard = (first, [*access, *args.policies], last), CrdGuardProvider("KubeRay")
                connection = args.cluster.connection
                installed = InstallArgs(
                    "KubeRay", settings.version, manifest, guard, stages, connection, args.namespaces, args.mirrors
                )
                install(name, installed, below(self, opts))
        except REFUSED as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(judged.version if judged else unknown())
        self.namespace = pulumi.Output.from_input(settings.namespace)
        self.register_outputs({"version": self.version, "namespace": self.namespace})


def operator_tree(settings: OperatorSettings) -> Objects:
    """The objects of KubeRay's kustomize tree. Raises ManifestError."""
    return render(settings.tree, pinned=settings.location is None)
