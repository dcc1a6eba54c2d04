"""Settings of the Pulumi stacks of an environment."""

from typing import Annotated

from pydantic import Field, Strict

from core.types import Settings

MOST_STACKS = 200
"""Each stack's program reads the whole stack file, so stacks for one or two tenants are not worth it."""


class SplitSettings(Settings):
    """Several Pulumi stacks instead of one: one for the platform, and one for each group of tenants.

    Pulumi writes the whole state of a stack at each step. So an update of one stack costs more per tenant the more
    tenants there are.
    """

    stacks: Annotated[int, Strict(), Field(ge=1, le=MOST_STACKS)]
    """Number of groups of tenants. The name of a tenant's namespace decides its group, so that adding or removing
    tenants moves no other."""
