"""Formats as Go parses them. tests/differential compares many more with Go."""

import itertools

import pytest

from kuberay.cron import cron_job_fault, schedule_fault
from kuberay.formats import duration, generic_version, integer, is_mapping, is_qualified_name, older, semver_numbers


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("1h30m", 5400 * 10**9), ("-5m", -300 * 10**9), ("1.5s", 15 * 10**8), ("0", 0), ("5", None), ("1d", None)],
)
def test_a_duration(text: str, nanoseconds: int | None) -> None:
    assert duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "version"), [("v2.52", (2, 52)), ("2.52.0rc1", (2, 52, 0)), ("2", None), ("02.1", None), ("nightly", None)]
)
def test_a_version_that_something_may_follow(text: str, version: tuple[int, ...] | None) -> None:
    assert generic_version(text) == version


def test_versions_of_unequal_length_are_compared_as_with_zeros() -> None:
    assert older((2, 51), than=(2, 52, 0))
    assert not older((2, 52), than=(2, 52, 0))


def test_a_pre_release_is_no_release() -> None:
    assert semver_numbers("2.6") == (2, 6, 0)
    assert semver_numbers("2.6.0-rc.1") is None


@pytest.mark.parametrize(("text", "number"), [("+5", 5), ("-5", -5), ("1_0", None), ("٣", None), (str(2**63), None)])
def test_a_whole_number(text: str, number: int | None) -> None:
    assert integer(text) == number


@pytest.mark.parametrize(("key", "valid"), [("team", True), ("ray.io/team", True), ("/team", False), ("a/b/c", False)])
def test_the_key_of_a_label(key: str, valid: bool) -> None:
    assert is_qualified_name(key) is valid


@pytest.mark.parametrize("schedule", ["@daily", "@every 1h", "*/5 0-6,22 ? jan-MAR mon", "TZ=UTC 0 3 * * *"])
def test_a_schedule(schedule: str) -> None:
    assert schedule_fault(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("* * * *", "it has 4 fields, not the five of minute, hour, day of month, month and day of week"),
        ("0 24 * * *", "'24' is not an hour from 0 to 23"),
        ("0 3 * * 7", "'7' is not a day of the week from 0 to 6"),
        ("@every day", "'day' is not a duration such as 1h30m"),
    ],
)
def test_what_is_wrong_with_a_schedule(schedule: str, fault: str) -> None:
    assert schedule_fault(schedule) == fault


@pytest.mark.parametrize("schedule", ["@every 1h", "0 0 29 2 *", "0 0 31 2 mon", "0 0 */30 2 5", "0 0 31 1,4 *"])
def test_a_schedule_of_a_cron_job(schedule: str) -> None:
    assert cron_job_fault(schedule) is None


@pytest.mark.parametrize(
    "schedule", ["0 0 30 2 *", "0 0 31 4,6 ?", ", * * * *", "0 0 * * ,", "TZ=UTC 0 3 * * *", "0 3"]
)
def test_a_schedule_that_kubernetes_refuses_or_that_no_day_matches(schedule: str) -> None:
    assert cron_job_fault(schedule) is not None


def test_a_mapping_is_looked_at_without_repeating_what_its_anchors_repeat() -> None:
    names = [f"n{number}" for number in range(60)]
    bomb = "n0: &n0 [x, x]\n" + "".join(
        f"{name}: &{name} [*{before}, *{before}]\n" for before, name in itertools.pairwise(names)
    )
    assert is_mapping(bomb)
    assert not is_mapping("- a")
    assert not is_mapping("a: [")
