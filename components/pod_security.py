"""Pod Security: which rights a namespace lets its pods have. Pure functions."""

from typing import Literal

Level = Literal["restricted", "baseline", "privileged"]
"""A level of the Pod Security Standards, the strictest first."""

_MODES = ("enforce", "audit", "warn")


def pod_security(level: Level) -> dict[str, str]:
    """Labels of a namespace whose pods the API server refuses where they want more than the level allows.

    It is the level of the API server's own version. Whoever applies what would make such pods is warned as well
    (kubernetes.io, Enforce Pod Security Standards with Namespace Labels).
    """
    return {f"pod-security.kubernetes.io/{mode}": level for mode in _MODES}
