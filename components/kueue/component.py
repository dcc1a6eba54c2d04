"""How Kueue is provisioned, or found."""

import hashlib
from typing import ClassVar

import pulumi

from components.crds.definitions import definitions_of
from components.dynamic.definitions import DefinitionsArgs
from components.dynamic.generated import ServerCertificate
from components.dynamic.guards import CrdGuardProvider
from components.install import NOT_INSTALLED, InstallArgs, Installed, Manifest, SchedulerArgs, install
from components.kueue.manifests import MANAGER, Certificate, bundle, kueue_objects, webhook_names
from components.kueue.settings import RELEASES, KueueSettings
from components.manifest_files import Objects, render
from components.queues.kueue import API_VERSION


class KueueArgs(SchedulerArgs[KueueSettings]):
    """Arguments of Kueue."""


class Kueue(pulumi.ComponentResource):
    """Kueue's CRDs as one resource; then its access and configuration, then its manager, a resource for each object.

    CRDs are never deleted while objects of their kinds exist. With `install: existing` nothing is created: the existing
    installation is read and checked, in previews too.

    Resources that need Kueue depend on this component, which is complete once its Deployment is available. It depends
    on the operator, whose CRDs Kueue looks for when it starts.

    Outputs:
        version: Kueue's version.

    Raises pulumi.RunError if the tree cannot be rendered or is of another release, or if the existing installation is
    not supported.
    """

    version: pulumi.Output[str]

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Kueue", name, None, opts)
        # Children do not inherit the dependencies of a component.
        below = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        settings = args.settings
        try:
            if settings.install == "existing":
                version = args.existing
                if version is None:
                    version = KUEUE.version(args.cluster, settings.namespace)
            else:
                manifest = args.manifest or Manifest(kueue_tree(settings))
                certificate = self._certificate(name, settings)
                first, access, last = kueue_objects(manifest.objects, settings, certificate)
                definitions = DefinitionsArgs(
                    "Kueue",
                    settings.version,
                    definitions_of(manifest.objects),
                    CrdGuardProvider("Kueue"),
                    args.cluster,
                    {"namespace": settings.namespace, "caBundle": certificate.bundle},
                    manifest.changes,
                )
                install(
                    name,
                    InstallArgs(definitions, (first, [*access, *args.policies], last), mirrors=args.mirrors),
                    below,
                )
                version = settings.version
        except NOT_INSTALLED as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(version)
        self.register_outputs({"version": self.version})

    def _certificate(self, name: str, settings: KueueSettings) -> Certificate:
        own = pulumi.ResourceOptions(parent=self)
        made = KueueCertificate(f"{name}-webhook-certificate", webhook_names(settings), own)
        return Certificate(
            made.certificate,
            made.key,
            bundle=made.certificate.apply(bundle),
            digest=made.certificate.apply(lambda pem: hashlib.sha256(pem.encode()).hexdigest()),
        )


def kueue_tree(settings: KueueSettings) -> Objects:
    """The objects of Kueue's kustomize tree. Raises ManifestError."""
    return render(settings.tree, pinned=settings.location is None)


KUEUE = Installed(
    "Kueue",
    "scheduler.kueue",
    MANAGER,
    "clusterqueues.kueue.x-k8s.io",
    crd_version=API_VERSION.rpartition("/")[2],
    releases=RELEASES,
)


class KueueCertificate(ServerCertificate, module="ray-platform", name="KueueCertificate"):
    """The certificate of the webhook and its key, a secret of Pulumi.

    Kueue manages certificates itself (internalCertManagement) and creates none if it finds a valid one. That must also
    be a certificate of its authority, with an RSA key (cert-controller, pkg/rotator/rotator.go: refreshCertIfNeeded and
    buildArtifactsFromSecret).
    """

    subject: ClassVar[str] = "ray-platform-kueue"
    with_rsa: ClassVar[bool] = True
