"""How Kueue is provisioned, or found."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pulumi

from components.dynamic.generated import ServerCertificate
from components.dynamic.guards import CrdGuardProvider
from components.install import Installed, Scheduler, SchedulerArgs, certificate_of
from components.kueue.manifests import MANAGER, kueue_objects, webhook_names
from components.kueue.settings import RELEASES, KueueSettings
from components.manifest_files import render
from components.queues.kueue import API_VERSION
from core.body import Body

KUEUE = Installed(
    "Kueue",
    "scheduler.kueue",
    MANAGER,
    "clusterqueues.kueue.x-k8s.io",
    crd_version=API_VERSION.rpartition("/")[2],
    releases=RELEASES,
    read=lambda settings: render(settings.tree, pinned=settings.location is None),
)

KueueArgs = SchedulerArgs[KueueSettings]


class Kueue(Scheduler):
    """Kueue (`install.Scheduler`). It depends on the operator, whose CRDs Kueue looks for when it starts."""

    program = KUEUE
    guard = CrdGuardProvider("Kueue")

    def _objects(
        self, name: str, manifest: Sequence[Body], settings: KueueSettings
    ) -> tuple[tuple[list[Body], ...], Mapping[str, pulumi.Input[str]]]:
        own = pulumi.ResourceOptions(parent=self)
        made = KueueCertificate(f"{name}-webhook-certificate", webhook_names(settings), own)
        # Its own authority: the API server accepts no other certificate.
        certificate = certificate_of(made, made.certificate)
        webhook = {"namespace": settings.namespace, "caBundle": certificate.bundle}
        return kueue_objects(manifest, settings, certificate), webhook


class KueueCertificate(ServerCertificate, module="ray-platform", name="KueueCertificate"):
    """The certificate of the webhook and its key, a secret of Pulumi.

    Kueue manages certificates itself (internalCertManagement) and creates none if it finds a valid one. That must also
    be a certificate of its authority, with an RSA key (cert-controller, pkg/rotator/rotator.go: refreshCertIfNeeded and
    buildArtifactsFromSecret).
    """

    subject: ClassVar[str] = "ray-platform-kueue"
    with_rsa: ClassVar[bool] = True
