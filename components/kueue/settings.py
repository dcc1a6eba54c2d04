"""What a stack file may say about Kueue."""

from typing import Literal

from ..types import Settings, Version


class KueueSettings(Settings):
    """Kueue: RayClusters are suspended until their queue has room for all that they start with."""

    version: Version = "0.15.0"
    """Kueue's release, without the leading v."""

    install: Literal["existing"] = "existing"
    """`existing`: it is there already."""

    elastic_jobs: bool = False
    """True: Kueue runs with its feature gate `ElasticJobsViaWorkloadSlices`, without which it refuses RayClusters that
    scale."""
