"""A RayCronJob: its schedule, and the template of its RayJobs (validation.go: ValidateRayCronJobSpec)."""

import zoneinfo

from . import ray_job
from .formats import duration, integer
from .releases import OperatorContext
from .rules import Body, Found, problem


def check(body: Body, operator: OperatorContext) -> Found:
    """All rules on a RayCronJob."""
    spec = body["spec"]
    if not operator.enabled("RayCronJob"):
        message = "the operator serves no RayCronJob without its feature gate RayCronJob: enable it"
        yield problem("cron-feature-gate", ("kind",), body["kind"], message)
    if fault := schedule_fault(spec["schedule"]):
        message = f"{spec['schedule']!r} is not a valid schedule, {fault}: write for example '0 3 * * *' or '@daily'"
        yield problem("cron-schedule", ("spec", "schedule"), spec["schedule"], message)
    # The jobs do not inherit its annotations.
    yield from ray_job.check(spec["jobTemplate"], ("spec", "jobTemplate"), {}, operator)


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


def schedule_fault(schedule: str) -> str | None:
    """The fault in a schedule; None if it is valid."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, schedule = schedule.partition(" ")
        zone = zone.partition("=")[2]
        if not space or not _is_zone(zone):
            return f"{zone!r} is not a time zone with a schedule behind it"
        schedule = schedule.strip()
    if schedule.startswith("@"):
        return _descriptor_fault(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"it has {len(fields)} fields, not the five of minute, hour, day of month, month and day of week"
    for text, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        if not all(_in_range(part, low, high, names) for part in text.split(",") if part):
            return f"{text!r} is not {name} from {low} to {high}"
    return None


def _is_zone(name: str) -> bool:
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


def _in_range(text: str, low: int, high: int, names: dict[str, int]) -> bool:
    span, *steps = text.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        return False
    step = _number(steps[0], {}) if steps else 1
    if ends[0] in ("*", "?"):
        return bool(step)
    if len(ends) > 2:
        return False
    start = _number(ends[0], names)
    end = high if steps and len(ends) == 1 else _number(ends[-1], names)
    return start is not None and end is not None and bool(step) and low <= start <= end <= high


def _number(text: str, names: dict[str, int]) -> int | None:
    if text.lower() in names:
        return names[text.lower()]
    number = integer(text)
    return number if number is not None and number >= 0 else None
