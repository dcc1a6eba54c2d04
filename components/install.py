"""Installs a program with CustomResourceDefinitions, or checks an existing one: KubeRay's operator, Volcano, Kueue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pulumi

from components.cluster import Cluster, ClusterUnreachableError
from components.crds.definitions import MissingDefinitionError, definitions_of
from components.crds.live import differences
from components.dynamic.definitions import CustomResourceDefinitions, DefinitionsArgs
from components.dynamic.guards import CrdGuard, CrdGuardArgs
from components.kubernetes import create, field_manager
from components.kubernetes_cluster import KubernetesCluster
from components.manifest_files import ManifestError
from components.objects import named
from components.pulumi_internals import unknown
from core.body import Body
from core.images import with_mirrors
from core.versions import UnsupportedVersionError, image_release, release_of

NOT_INSTALLED = (ManifestError, MissingDefinitionError, UnsupportedVersionError, ClusterUnreachableError)
"""Errors of installing or finding a program."""


@dataclass(frozen=True)
class Manifest:
    """The manifest of a program to install."""

    objects: Sequence[Body]
    """Definitions are references (`crds.definitions`)."""

    changes: Sequence[str] = ()
    """What its definitions change in the cluster, a line for each (`crds.live.differences`)."""


def compared(cluster: Cluster, objects: Sequence[Body]) -> Manifest:
    """The manifest with these objects, compared with the cluster. Raises MissingDefinitionError and
    ClusterUnreachableError."""
    return Manifest(objects, tuple(differences(cluster, definitions_of(objects), field_manager())))


SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class SchedulerArgs(Generic[SettingsT]):
    """Arguments of Volcano, and of Kueue."""

    settings: SettingsT

    cluster: Cluster = field(default_factory=KubernetesCluster)

    policies: Sequence[Body] = ()
    """NetworkPolicies of its namespace, if the stack creates the namespace."""

    mirrors: Mapping[str, str] = field(default_factory=dict)
    """Mirrors of images (core.images)."""

    existing: pulumi.Input[str] | None = None
    """Version of the existing installation (Installed.version). Default: it is read while the component is
    constructed."""

    manifest: Manifest | None = None
    """Default: it is read while the component is constructed, and not compared with the cluster."""


@dataclass(frozen=True)
class InstallArgs:
    definitions: DefinitionsArgs

    stages: Sequence[Sequence[Body]]
    """Its objects; each stage needs the one before it."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the stack creates, by name: objects in them wait for them."""

    mirrors: Mapping[str, str] = field(default_factory=dict)
    """Mirrors of their images (core.images)."""


def install(name: str, args: InstallArgs, opts: pulumi.ResourceOptions) -> CrdGuard:
    """Creates the definitions, then stage after stage, then the guard, which is deleted before all of them.

    `opts`: of each resource.
    """
    given = args.definitions
    made: list[pulumi.Resource] = [CustomResourceDefinitions(f"{name}-crds", given, opts)]
    for stage in args.stages:
        # The previous stage depends on all stages before it.
        objects = named(with_mirrors(body, args.mirrors) for body in stage)
        made = list(create(name, objects, _after(made, opts), args.namespaces).values())
    guarded = CrdGuardArgs(given.guard, [each.resource for each in given.definitions], given.cluster.connection)
    return CrdGuard(f"{name}-crd-guard", guarded, _after(made, opts))


def _after(made: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(made)))


@dataclass(frozen=True)
class Installation:
    version: str | None
    """Version by the image's tag; None if it is not installed or the tag has no version."""

    served: tuple[str, ...] = ()
    """API versions that the CRD serves; empty without a CRD."""


@dataclass(frozen=True)
class Installed:
    """A program that may be installed already, and how to find its version."""

    title: str
    setting: str
    """Its setting in the stack file: `scheduler.volcano`."""

    deployment: str
    crd: str
    crd_version: str
    """API version of the CRD that is used here."""

    releases: Sequence[str]
    """Minor versions that are supported."""

    def version(self, cluster: Cluster, namespace: str) -> pulumi.Input[str]:
        """The version of the installation in the cluster; not known if the cluster does not exist yet.

        Raises UnsupportedVersionError, and ClusterUnreachableError.
        """
        return self.check(self.look(cluster, namespace), namespace) if cluster.exists else unknown()

    def look(self, cluster: Cluster, namespace: str) -> Installation:
        """Reads the installation in the cluster. Raises ClusterUnreachableError."""
        crd = cluster.get("apiextensions.k8s.io/v1", "customresourcedefinitions", None, self.crd)
        deployment = cluster.get("apps/v1", "deployments", namespace, self.deployment)
        return installation_of(crd, deployment)

    def check(self, live: Installation, namespace: str) -> str:
        """Its version. Raises UnsupportedVersionError unless it is supported and has its CRDs."""
        if live.version is None:
            problem = (
                f"there is no Deployment {self.deployment} with a version in namespace {namespace!r}: set "
                f"{self.setting}.namespace to where it is, or {self.setting}.install to manifests"
            )
        elif release_of(live.version) not in self.releases:
            problem = f"{self.title} {live.version} is not supported: install a supported one"
        elif self.crd_version not in live.served:
            problem = f"{self.crd} does not serve {self.crd_version}: apply the CRDs of {self.title} {live.version}"
        else:
            return live.version
        served = f"CRD {self.crd} serving {', '.join(live.served)}" if live.served else f"no CRD {self.crd}"
        supported = " or ".join(f"{release}.x" for release in self.releases)
        raise UnsupportedVersionError(
            f"{self.setting}.install is existing, and the cluster has: {self.deployment} {live.version or 'none'}, "
            f"{served}. Here {problem}. Supported: {supported}."
        )


def installation_of(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Installation:
    """The versions of a CRD and a Deployment."""
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    versions = crd["spec"]["versions"] if crd else []
    return Installation(image_release(image), tuple(version["name"] for version in versions if version["served"]))
