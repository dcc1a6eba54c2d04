"""Pod Security: which rights a namespace lets its pods have. Pure functions."""

from typing import Literal

PodSecurityLevel = Literal["restricted", "baseline", "privileged"]
"""Levels of Kubernetes' Pod Security Standards (kubernetes.io, Pod Security Standards), the strictest first."""

PREFIX = "pod-security.kubernetes.io"
"""Of the labels by which Kubernetes' Pod Security admission knows a namespace's level."""

_MODES = ("enforce", "audit", "warn")


def level_labels(level: PodSecurityLevel) -> dict[str, str]:
    """Labels of a namespace whose pods the API server refuses where they want more than the level allows.

    The level is that of the cluster's own Kubernetes (`latest`): a pinned one would miss what later ones forbid.
    """
    return {f"{PREFIX}/{mode}{part}": value for mode in _MODES for part, value in (("", level), ("-version", "latest"))}
