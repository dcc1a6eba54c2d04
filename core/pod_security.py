"""Pod Security levels of namespaces. Pure functions."""

from typing import Literal

PodSecurityLevel = Literal["restricted", "baseline", "privileged"]
"""Levels of Kubernetes' Pod Security Standards (kubernetes.io, Pod Security Standards), the strictest first."""

PREFIX = "pod-security.kubernetes.io"
"""Prefix of the labels of Kubernetes' Pod Security admission."""

_MODES = ("enforce", "audit", "warn")


def level_labels(level: PodSecurityLevel) -> dict[str, str]:
    """Labels of a namespace whose pods must meet the level: the API server refuses others.

    The level is that of the cluster's Kubernetes version (`latest`): a pinned version would miss later restrictions.
    """
    return {f"{PREFIX}/{mode}{part}": value for mode in _MODES for part, value in (("", level), ("-version", "latest"))}
