"""Which operator judges a manifest: its release and how it was started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_FEATURE_GATES_1_5: Mapping[str, bool] = {
    "RayClusterStatusConditions": True,
    "RayJobDeletionPolicy": False,
    "RayMultiHostIndexing": False,
    "RayServiceIncrementalUpgrade": False,
}

DEFAULT_FEATURE_GATES: Mapping[str, bool] = {
    **_FEATURE_GATES_1_5,
    "RayJobDeletionPolicy": True,
    "RayMultiHostIndexing": True,
    "RayCronJob": False,
    "AsyncJobInfoQuery": False,
}
"""KubeRay 1.6's feature gates (pkg/features/features.go)."""

FEATURE_GATES: Mapping[str, Mapping[str, bool]] = {"1.5": _FEATURE_GATES_1_5, "1.6": DEFAULT_FEATURE_GATES}
"""Feature gates by the operator's release, and whether they are on unless set. An operator does not start with one that
it does not know."""


@dataclass(frozen=True)
class OperatorContext:
    """What of the operator decides which rules hold."""

    version: str = "1.6.2"
    """KubeRay's release. All of 1.6 validate alike; 1.5 is held against 1.6's rules, which are stricter, and against
    what 1.5 lacks (releases.py); what is not known of 1.7 is said in schema.py."""

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
        defaults = FEATURE_GATES.get(self.release, DEFAULT_FEATURE_GATES)
        return self.feature_gates.get(gate, defaults.get(gate, False))

    def since(self, release: str) -> bool:
        """Whether the operator is of that minor version, or of a later one."""
        return numbers(self.release) >= numbers(release)


def numbers(release: str) -> tuple[int, ...]:
    """A minor version as numbers, so that 1.9 is older than 1.10."""
    return tuple(int(part) for part in release.split("."))
