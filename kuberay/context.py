"""The operator that validates a manifest: its release and its flags."""

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
"""Feature gates by release of the operator, with their defaults. An operator does not start with an unknown gate."""


@dataclass(frozen=True)
class OperatorContext:
    """The properties of an operator that decide which rules apply."""

    version: str = "1.6.2"
    """Release of KubeRay. All 1.6 releases validate alike. For 1.5 the stricter rules of 1.6 apply, and those on fields
    that 1.5 lacks (releases.py). schema.py describes what is not known of 1.7."""

    batch_scheduler: str | None = None
    """Gang scheduler for which the operator creates pod groups (`--batch-scheduler`)."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates that are set, by name."""

    @property
    def release(self) -> str:
        """The minor version: `1.6` of `1.6.2`."""
        return ".".join(self.version.split(".")[:2])

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        defaults = FEATURE_GATES.get(self.release, DEFAULT_FEATURE_GATES)
        return self.feature_gates.get(gate, defaults.get(gate, False))

    def since(self, release: str) -> bool:
        """Whether the operator has that minor version or a later one."""
        return numbers(self.release) >= numbers(release)


def numbers(release: str) -> tuple[int, ...]:
    """A minor version as numbers, so that 1.9 is older than 1.10."""
    return tuple(int(part) for part in release.split("."))
