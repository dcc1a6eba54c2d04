"""Installs a program with CustomResourceDefinitions, or checks an existing one: KubeRay's operator, Volcano, Kueue."""

import base64
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import pulumi

from components.cluster import Cluster, ClusterUnreachableError, Connection
from components.crds.definitions import MissingDefinitionError, definitions_of
from components.crds.live import differences
from components.dynamic.definitions import CustomResourceDefinitions, DefinitionsArgs
from components.dynamic.generated import ServerCertificate
from components.dynamic.guards import CrdGuard, CrdGuardArgs, CrdGuardProvider
from components.kubernetes import below, by_this_stack, create, field_manager
from components.kubernetes_cluster import KubernetesCluster
from components.manifest_files import ManifestError, Objects
from components.objects import named
from components.pulumi_internals import unknown
from components.scheduler_manifest import Certificate
from core.body import Body
from core.images import with_mirrors
from core.versions import UnsupportedVersionError, image_release, release_of

NOT_INSTALLED = (ManifestError, MissingDefinitionError, UnsupportedVersionError, ClusterUnreachableError)
"""Errors of installing or finding a program."""


@dataclass(frozen=True)
class Manifest:
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
    program: str
    """Its name, in messages: `KubeRay`."""

    release: str

    manifest: Manifest

    guard: CrdGuardProvider
    """Blocks the deletion of its definitions while objects of their kinds exist."""

    stages: Sequence[Sequence[Body]]
    """Its objects; each stage needs the one before it."""

    connection: Connection

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the stack creates, by name: objects in them wait for them."""

    mirrors: Mapping[str, str] = field(default_factory=dict)
    """Mirrors of their images (core.images)."""

    webhook: Mapping[str, pulumi.Input[str]] | None = None
    """`namespace` and `caBundle` of the conversion webhook, if there is one."""


def install(name: str, args: InstallArgs, opts: pulumi.ResourceOptions) -> CrdGuard:
    """Creates the definitions, then stage after stage, then the guard, which is deleted before all of them.

    `opts`: of each resource.
    """
    definitions, connection = definitions_of(args.manifest.objects), args.connection
    given = DefinitionsArgs(
        args.program, args.release, definitions, args.guard, connection, args.webhook, args.manifest.changes
    )
    made: list[pulumi.Resource] = [CustomResourceDefinitions(f"{name}-crds", given, opts)]
    for stage in args.stages:
        # The previous stage depends on all stages before it.
        objects = named(with_mirrors(body, args.mirrors) for body in stage)
        made = list(create(name, objects, _after(made, opts), args.namespaces).values())
    deployments = [
        by_this_stack(with_mirrors(body, args.mirrors))
        for stage in args.stages
        for body in stage
        if body["kind"] == "Deployment"
    ]
    resources = [each.resource for each in definitions]
    guarded = CrdGuardArgs(args.guard, resources, connection, deployments, field_manager())
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

    read: Callable[[Any], Objects]
    """The objects of the manifest that its settings name. Raises ManifestError."""

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
            f"{served}. Problem: {problem}. Supported: {supported}."
        )


def installation_of(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Installation:
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    versions = crd["spec"]["versions"] if crd else []
    return Installation(image_release(image), tuple(version["name"] for version in versions if version["served"]))


def certificate_of(made: ServerCertificate, authority: pulumi.Output[str]) -> Certificate:
    """`authority`: PEM."""
    return Certificate(
        authority,
        made.certificate,
        made.key,
        bundle=authority.apply(lambda pem: base64.b64encode(pem.encode()).decode()),
        digest=made.certificate.apply(lambda pem: hashlib.sha256(pem.encode()).hexdigest()),
    )


class Scheduler(pulumi.ComponentResource):
    """The CRDs of a scheduler as one resource; then its access and configuration, then its programs, a resource for
    each object.

    CRDs are never deleted while objects of their kinds exist. With `install: existing` nothing is created: the existing
    installation is read and checked, in previews too.

    Resources that need the scheduler depend on this component, which is complete once its Deployments are available.

    Outputs:
        version: the scheduler's version.

    Raises pulumi.RunError if the manifest cannot be read or is of another release, or if the existing installation is
    not supported.
    """

    program: ClassVar[Installed]
    guard: ClassVar[CrdGuardProvider]

    version: pulumi.Output[str]

    def __init__(self, name: str, args: SchedulerArgs[Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"ray-platform:index:{type(self).__name__}", name, None, opts)
        settings, version = args.settings, args.existing
        try:
            if settings.install == "manifests":
                version = settings.version
                manifest = args.manifest or Manifest(self.program.read(settings))
                (first, access, last), webhook = self._objects(name, manifest.objects, settings)
                stages = (first, [*access, *args.policies], last)
                installed = InstallArgs(
                    self.program.title,
                    settings.version,
                    manifest,
                    self.guard,
                    stages,
                    args.cluster.connection,
                    mirrors=args.mirrors,
                    webhook=webhook,
                )
                install(name, installed, below(self, opts))
            elif version is None:
                version = self.program.version(args.cluster, settings.namespace)
        except NOT_INSTALLED as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(version)
        self.register_outputs({"version": self.version})

    @abstractmethod
    def _objects(
        self, name: str, manifest: Sequence[Body], settings: Any
    ) -> tuple[tuple[list[Body], ...], Mapping[str, pulumi.Input[str]] | None]:
        """The three stages of its objects, and its conversion webhook, as `InstallArgs` has them."""
