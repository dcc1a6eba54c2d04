"""What a stack file may say about promises that its nodes cannot keep all at once."""

from typing import Literal

from core.types import Settings


class CapacitySettings(Settings):
    """What is thought of promises that the nodes cannot keep all at once. `python -m stacks plan` shows them."""

    overcommitment: Literal["allowed", "warning", "error"] = "warning"
    """Where RayClusters do not all find room to start, or tenants together may have more than there is. `error`:
    `check` and previews refuse it. `warning`: `plan` says it. `allowed`: nothing is said."""
