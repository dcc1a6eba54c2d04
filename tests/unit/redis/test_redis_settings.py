"""Sizes, images and schedules that no Redis could use."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.redis.settings import DEFAULT_IMAGE, RedisSettings, max_memory, resources
from core.problems import Problems
from core.quantities import amount


def rules(**configured: Any) -> set[str]:
    """The violated rules."""
    try:
        RedisSettings.model_validate(configured)
    except ValidationError as error:
        found = [each["ctx"]["error"] for each in error.errors()]
        return {problem.rule for each in found if isinstance(each, Problems) for problem in each.problems} or {"value"}
    return set()


@pytest.mark.parametrize(
    ("memory", "size", "violated"),
    [
        ("32Mi", "128Mi", set()),
        ("31Mi", "128Mi", {"redis-memory"}),
        ("1Gi", "127Mi", {"redis-storage"}),
        ("1Gi", "614Mi", {"redis-storage"}),
        ("1Gi", "615Mi", set()),
        ("16Mi", "1Mi", {"redis-memory", "redis-storage"}),
    ],
)
def test_redis_has_room_in_memory_and_on_its_volume(memory: str, size: str, violated: set[str]) -> None:
    assert rules(resources={"cpu": 1, "memory": memory}, storage={"size": size}) == violated


def test_the_volume_of_a_default_redis_is_not_compared_with_what_it_gets_for_many_clusters() -> None:
    assert max_memory(resources(RedisSettings(), 64).memory) > amount(RedisSettings().storage.size)
    assert rules() == set()


@pytest.mark.parametrize(
    ("image", "accepted"),
    [
        (DEFAULT_IMAGE, True),
        ("redis:7", True),
        ("redis:8.2.1-alpine", True),
        ("redis", True),
        ("redis:latest", True),
        ("redis:alpine3.20", True),
        ("redis:v7.0.15", True),
        ("valkey/valkey:8.1.4", True),
        ("example.com/tools/redis-with-modules:1.2", True),
        ("redis:20240501", True),
        ("redis:6", False),
        ("redis:6.2", False),
        ("redis:v6.2.14", False),
        ("registry.example.com:5000/library/redis:6.2.14-alpine", False),
        ("redis:5.0.14@sha256:" + "0" * 64, False),
    ],
)
def test_an_image_of_redis_is_of_a_release_that_its_scripts_can_use(image: str, accepted: bool) -> None:
    assert rules(image=image) == (set() if accepted else {"value"})


@pytest.mark.parametrize(
    ("schedule", "accepted"), [("@every 6h", True), ("TZ=UTC @daily", False), ("0 3 30 2 *", False)]
)
def test_the_schedule_of_backups_is_one_of_a_cron_job(schedule: str, accepted: bool) -> None:
    assert rules(backup={"schedule": schedule}) == (set() if accepted else {"value"})
