"""How Volcano is provisioned, or found."""

import base64
import hashlib

import pulumi

from components.crds.definitions import definitions_of
from components.dynamic.definitions import DefinitionsArgs
from components.dynamic.generated import ServerCertificate
from components.dynamic.guards import CrdGuardProvider
from components.install import NOT_INSTALLED, InstallArgs, Installed, Manifest, SchedulerArgs, install
from components.manifest_files import Objects, read
from components.volcano.manifests import SCHEDULER, Certificate, volcano_objects, webhook_names
from components.volcano.settings import RELEASES, VolcanoSettings

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler creates at start (pkg/scheduler/cache/cache.go)."""


class VolcanoArgs(SchedulerArgs[VolcanoSettings]):
    """Arguments of Volcano."""


class Volcano(pulumi.ComponentResource):
    """Volcano's CRDs as one resource; then its access and configuration, then its programs, a resource for each object.

    CRDs are never deleted while objects of their kinds exist. With `install: existing` nothing is created: the existing
    installation is read and checked, in previews too.

    Resources that need Volcano depend on this component, which is complete once its Deployments are available.

    Outputs:
        version: Volcano's version.

    Raises pulumi.RunError if the manifest cannot be read or is of another release, or if the existing installation is
    not supported.
    """

    version: pulumi.Output[str]

    def __init__(self, name: str, args: VolcanoArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Volcano", name, None, opts)
        settings = args.settings
        try:
            if settings.install == "existing":
                version = args.existing
                if version is None:
                    version = VOLCANO.version(args.cluster, settings.namespace)
            else:
                manifest = args.manifest or Manifest(volcano_manifest(settings))
                first, access, last = volcano_objects(manifest.objects, settings, self._certificate(name, settings))
                definitions = DefinitionsArgs(
                    "Volcano",
                    settings.version,
                    definitions_of(manifest.objects),
                    CrdGuardProvider("Volcano", OF_THE_SCHEDULER),
                    args.cluster,
                    changes=manifest.changes,
                )
                stages = (first, [*access, *args.policies], last)
                install(
                    name, InstallArgs(definitions, stages, mirrors=args.mirrors), pulumi.ResourceOptions(parent=self)
                )
                version = settings.version
        except NOT_INSTALLED as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(version)
        self.register_outputs({"version": self.version})

    def _certificate(self, name: str, settings: VolcanoSettings) -> Certificate:
        own = pulumi.ResourceOptions(parent=self)
        made = ServerCertificate(f"{name}-webhook-certificate", webhook_names(settings), own)
        return Certificate(
            made.authority,
            made.certificate,
            made.key,
            bundle=made.authority.apply(lambda pem: base64.b64encode(pem.encode()).decode()),
            digest=made.certificate.apply(lambda pem: hashlib.sha256(pem.encode()).hexdigest()),
        )


def volcano_manifest(settings: VolcanoSettings) -> Objects:
    """The objects of Volcano's manifest. Raises ManifestError."""
    return read(settings.manifest, pinned=settings.location is None)


VOLCANO = Installed(
    "Volcano", "scheduler.volcano", SCHEDULER, "queues.scheduling.volcano.sh", crd_version="v1beta1", releases=RELEASES
)
