"""How Volcano is provisioned, or found."""

from collections.abc import Sequence

import pulumi

from components.dynamic.generated import ServerCertificate
from components.dynamic.guards import CrdGuardProvider
from components.install import Installed, Scheduler, SchedulerArgs, certificate_of
from components.manifest_files import read
from components.volcano.manifests import SCHEDULER, volcano_objects, webhook_names
from components.volcano.settings import RELEASES, VolcanoSettings
from core.body import Body

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler creates at start (pkg/scheduler/cache/cache.go)."""

VOLCANO = Installed(
    "Volcano",
    "scheduler.volcano",
    SCHEDULER,
    "queues.scheduling.volcano.sh",
    crd_version="v1beta1",
    releases=RELEASES,
    read=lambda settings: read(settings.manifest, pinned=settings.location is None),
)

VolcanoArgs = SchedulerArgs[VolcanoSettings]


class Volcano(Scheduler):
    """Volcano (`install.Scheduler`). The operator depends on it: it does not start without Volcano's CRDs."""

    program = VOLCANO
    guard = CrdGuardProvider("Volcano", OF_THE_SCHEDULER)

    def _objects(
        self, name: str, manifest: Sequence[Body], settings: VolcanoSettings
    ) -> tuple[tuple[list[Body], ...], None]:
        own = pulumi.ResourceOptions(parent=self)
        made = ServerCertificate(f"{name}-webhook-certificate", webhook_names(settings), own)
        return volcano_objects(manifest, settings, certificate_of(made, made.authority)), None
