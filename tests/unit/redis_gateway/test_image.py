"""The gateway's default image is of no registry: who uses it sets another, or a mirror."""

from typing import Any

import pytest

from components.redis_gateway.settings import IMAGE
from core.problems import StackFileError
from local.rehearsed_file import adapt
from stacks.load import installable, parse

KEPT = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "faultTolerance": True}
EXTERNAL = {
    "mode": "external",
    "external": {"address": "redis.example.com:6379", "secretName": "r", "cidrs": ["10.0.0.7/32"]},
}


def refused(redis: dict[str, Any], images: dict[str, Any] | None = None, **tenant: Any) -> bool:
    tenant = tenant or {"clusters": [KEPT]}
    settings = parse({"redis": redis, "images": images or {}, "tenants": [{"name": "team-a", **tenant}]})
    rules = []
    try:
        installable(settings)
    except StackFileError as error:
        rules = [each.rule for each in error.findings]
    assert rules in ([], ["gateway-image"])
    return bool(rules)


def test_the_default_image_is_refused_where_heads_have_a_gateway() -> None:
    assert refused({"gateway": {}})
    assert refused({"mode": "single", "gateway": {}})
    assert refused({"gateway": {}}, clusterNames=["own"])


@pytest.mark.parametrize("redis", [{}, {"mode": "single"}, EXTERNAL])
def test_no_image_is_necessary_without_a_gateway(redis: dict[str, Any]) -> None:
    assert not refused(redis)
    assert not refused({"gateway": {}}, clusters=[])


def test_an_image_or_a_mirror_of_it_is_enough() -> None:
    assert not refused({"gateway": {"image": "registry.example.com/redis-gateway:1.0.0"}})
    assert not refused({"gateway": {}}, images={"mirrors": {"docker.io/ray-platform": "registry.example.com/ours"}})
    assert refused({"gateway": {}}, images={"mirrors": {"docker.io/rayproject": "registry.example.com/ray"}})


def test_a_rehearsal_names_the_image_that_it_has() -> None:
    redis: dict[str, Any] = {"gateway": {}}
    adapt({"ray-platform:operator": {"install": "existing"}, "ray-platform:redis": redis}, "real")
    assert redis == {"gateway": {"image": IMAGE}}
    assert not refused(redis)
