"""The settings of updates."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings


def cluster_with(**more: Any) -> RayClusterSettings:
    return valid({"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **more})


def test_the_default_ends_no_busy_worker() -> None:
    assert cluster_with().updates.strategy == "onIdle"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"updates": {"limit": "5m"}}, "limit has no effect with strategy onIdle: remove it, or set strategy to drain"),
        (
            {"updates": {"strategy": "drain"}, "overrides": {"upgradeStrategy": {"type": "Recreate"}}},
            "strategy drain has no effect if KubeRay deletes all pods at each edit",
        ),
        ({"updates": {"strategy": "blueGreen"}}, "Input should be 'onIdle', 'drain', 'immediate' or 'none'"),
    ],
)
def test_settings_without_effect_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cluster_with(**more)
    cluster_with(overrides={"upgradeStrategy": {"type": "Recreate"}})
