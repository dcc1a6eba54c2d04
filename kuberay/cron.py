"""Schedules of cron, as Kubernetes and KubeRay parse them (github.com/robfig/cron/v3: parser.go, ParseStandard)."""

import zoneinfo
from dataclasses import dataclass

from kuberay.formats import duration, integer

_DESCRIPTORS = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS = {name: n for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}

_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("a minute", 0, 59, {}),
    ("an hour", 0, 23, {}),
    ("a day of the month", 1, 31, {}),
    ("a month", 1, 12, _MONTHS),
    ("a day of the week", 0, 6, _WEEKDAYS),
)

_LAST_DAY = {2: 29, **dict.fromkeys((4, 6, 9, 11), 30)}
"""The last day of months that have no 31st, in a leap year."""

NEVER = "no day of any year matches it"
"""The fault of a schedule that Kubernetes accepts."""


def schedule_fault(schedule: str) -> str | None:
    """The fault in a schedule; None if it is valid."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, schedule = schedule.partition(" ")
        zone = zone.partition("=")[2]
        if not space or not is_zone(zone):
            return f"{zone!r} is not a time zone with a schedule behind it"
        schedule = schedule.strip()
    if schedule.startswith("@"):
        return _descriptor_fault(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"it has {len(fields)} fields, not the five of minute, hour, day of month, month and day of week"
    for text, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        if _times(text, low, high, names) is None:
            return f"{text!r} is not {name} from {low} to {high}"
    return None


def cron_job_fault(schedule: str) -> str | None:
    """The fault in the schedule of a Kubernetes CronJob: the API server refuses it (kubernetes, pkg/apis/batch/
    validation: validateScheduleFormat), or no time ever matches it."""
    if fault := schedule_fault(schedule):
        return fault
    if "TZ" in schedule:
        return "it has a time zone, which Kubernetes refuses: its times are those of the cluster, which mostly is UTC"
    return None if schedule.startswith("@") or _ever(schedule) else NEVER


def is_zone_of_cron_job(name: str) -> bool:
    """Whether a CronJob may have this time zone (kubernetes, pkg/apis/batch/validation: validateTimeZone)."""
    return name != "" and name.lower() != "local" and is_zone(name)


@dataclass(frozen=True)
class _Times:
    """The numbers that a field matches."""

    numbers: frozenset[int]
    star: bool = False
    """Whether it matches any, by `*` or `?`."""


def _times(text: str, low: int, high: int, names: dict[str, int]) -> _Times | None:
    parts = [_range(part, low, high, names) for part in text.split(",") if part]
    if None in parts:
        return None
    known = [part for part in parts if part]
    return _Times(frozenset().union(*(each.numbers for each in known)), any(each.star for each in known))


def _range(text: str, low: int, high: int, names: dict[str, int]) -> _Times | None:
    span, *steps = text.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        return None
    step = _number(steps[0], {}) if steps else 1
    if ends[0] in ("*", "?"):
        return _Times(frozenset(range(low, high + 1, step)), star=step == 1) if step else None
    if len(ends) > 2:
        return None
    start = _number(ends[0], names)
    end = high if steps and len(ends) == 1 else _number(ends[-1], names)
    if start is None or end is None or not step or not low <= start <= end <= high:
        return None
    return _Times(frozenset(range(start, end + 1, step)))


def _number(text: str, names: dict[str, int]) -> int | None:
    if text.lower() in names:
        return names[text.lower()]
    number = integer(text)
    return number if number is not None and number >= 0 else None


def _ever(schedule: str) -> bool:
    """Whether any time matches five valid fields (robfig/cron/v3, spec.go: Next and dayMatches)."""
    fields = [_times(text, *each[1:]) for text, each in zip(schedule.split(), _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (each or _Times(frozenset()) for each in fields)
    if not (minutes.numbers and hours.numbers and months.numbers):
        return False
    dated = any(day <= _LAST_DAY.get(month, 31) for day in days.numbers for month in months.numbers)
    # A day has to match both fields if one of them matches any day, else one of them.
    if days.star or weekdays.star:
        return dated and bool(weekdays.numbers)
    return dated or bool(weekdays.numbers)


def is_zone(name: str) -> bool:
    """Whether Go knows a time zone (time.LoadLocation)."""
    if name in ("", "UTC", "Local"):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _descriptor_fault(descriptor: str) -> str | None:
    if descriptor in _DESCRIPTORS:
        return None
    if descriptor.startswith("@every "):
        text = descriptor.removeprefix("@every ")
        return None if duration(text) is not None else f"{text!r} is not a duration such as 1h30m"
    return f"{descriptor!r} is none of {', '.join(sorted(_DESCRIPTORS))} or @every DURATION"
