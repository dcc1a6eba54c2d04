"""Which operator judges a manifest: its release and how it was started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_FEATURE_GATES: Mapping[str, bool] = {
    "RayClusterStatusConditions": True,
    "RayJobDeletionPolicy": True,
    "RayMultiHostIndexing": True,
    "RayServiceIncrementalUpgrade": False,
    "RayCronJob": False,
    "AsyncJobInfoQuery": False,
}
"""KubeRay 1.6's feature gates (pkg/features/features.go)."""


@dataclass(frozen=True)
class OperatorContext:
    """What of the operator decides which rules hold."""

    version: str = "1.6.2"
    """KubeRay's release. All of 1.6 validate alike; what is not known of 1.7 is said in schema.py."""

    batch_scheduler: str | None = None
    """Gang scheduler that the operator makes pod groups for (`--batch-scheduler`)."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates that were set, by name."""

    @property
    def release(self) -> str:
        """The minor version: `1.6` of `1.6.2`."""
        return ".".join(self.version.split(".")[:2])

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return self.feature_gates.get(gate, DEFAULT_FEATURE_GATES.get(gate, False))
