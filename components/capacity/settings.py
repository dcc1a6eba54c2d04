"""Settings of overcommitment: promises that the nodes cannot keep all at once."""

from typing import Literal

from core.types import Settings


class CapacitySettings(Settings):
    """Overcommitment: promises that the nodes cannot keep all at once. `python -m stacks plan` shows them."""

    overcommitment: Literal["allowed", "warning", "error"] = "warning"
    """The action if not all RayClusters can start at the same time, or if the tenants' limits together exceed the
    nodes.
    `error`: `check` and previews refuse it. `warning`: `plan` reports it. `allowed`: it is not reported."""
