"""Reads cron expressions and tells when they are due, by the clocks of their time zone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mediaplane.errors import InvalidArgument
from mediaplane.paths import display

MAX_LENGTH = 100
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
# The 29th of February is a given day of the week every 28 years, and over 2100 after 40.
_HORIZON_DAYS = 50 * 366
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_TERM = re.compile(r"(?:(\*)|([0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?)(?:/([0-9]+))?")


@dataclass(frozen=True)
class _Field:
    """One of the five fields of an expression."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()  # of the numbers from the first on


# The most days that each month can have.
_LONGEST = dict(enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True)
class Cron:
    """When something is due: the numbers that each field admits."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # as in ISO 8601: Monday is 1, Sunday 7
    # When both fields for days say something, either of them is enough.
    is_either_day: bool


@lru_cache(maxsize=256)
def parse(expression: str) -> Cron:
    """Return what an expression says; an error names the field and what it may be."""
    if len(expression) > MAX_LENGTH:
        raise InvalidArgument(f"A cron expression has up to {MAX_LENGTH} characters.")
    told = expression.strip().lower()
    if told.startswith("@") and told not in _ALIASES:
        raise InvalidArgument(f"{_shown(told)} is unknown; there are {', '.join(_ALIASES)}.")
    parts = _ALIASES.get(told, told).split()
    if len(parts) != len(_FIELDS):
        raise InvalidArgument(
            f"{_shown(expression)} has {len(parts)} fields instead of 5: minute, hour, day of the"
            " month, month, day of the week, such as '30 2 * * *'."
        )
    minutes, hours, days, months, weekdays = map(_numbers, _FIELDS, parts)
    cron = Cron(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(number or 7 for number in weekdays),
        is_either_day=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )
    if not cron.is_either_day and min(cron.days) > max(map(_LONGEST.__getitem__, cron.months)):
        raise InvalidArgument(f"{_shown(expression)} is never due: no month of it has such a day.")
    return cron


def zone(name: str) -> ZoneInfo:
    """Return a time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise InvalidArgument(
            f"{_shown(name[:100])} is no time zone; give one such as UTC or Europe/Berlin."
        ) from None


def upcoming(cron: Cron, in_zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield the moments, in UTC, at which an expression is due after one.

    What is due in every hour follows the clock as it reads. All else happens once for each time
    that it names: at its first reading when clocks are set back, and as soon as they have been set
    forward over it.
    """
    due_after = _next_reading if len(cron.hours) == 24 else _next_named
    while True:
        after = due_after(cron, in_zone, after)
        yield after


def _next_reading(cron: Cron, in_zone: tzinfo, after: datetime) -> datetime:
    moment = after.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
    while True:
        reading = moment.astimezone(in_zone)
        if _is_day(cron, reading.date()):
            if reading.minute in cron.minutes:
                return moment
            moment += _MINUTE
        else:
            # To a while before the day begins: it need not begin at midnight.
            midnight = datetime.combine(_next_day(cron, reading.date()), time())
            moment = max(moment + _MINUTE, _first_reading(midnight - 2 * _HOUR, in_zone))


def _next_named(cron: Cron, in_zone: tzinfo, after: datetime) -> datetime:
    day = _next_day(cron, after.astimezone(in_zone).date())
    while True:
        for hour, minute in product(cron.hours, cron.minutes):
            moment = _first_reading(datetime.combine(day, time(hour, minute)), in_zone)
            if moment > after:
                return moment
        day = _next_day(cron, day + _DAY)


def _first_reading(reading: datetime, in_zone: tzinfo) -> datetime:
    """Return when clocks first show a time, or have just been set forward over it."""
    while True:
        moment = reading.replace(tzinfo=in_zone).astimezone(UTC)
        if moment.astimezone(in_zone).replace(tzinfo=None) == reading:
            return moment
        reading += _MINUTE


def _next_day(cron: Cron, first: date) -> date:
    """Return the first day on which an expression is due, from a day on."""
    days = (first + number * _DAY for number in range(_HORIZON_DAYS))
    return next(day for day in days if _is_day(cron, day))


def _is_day(cron: Cron, day: date) -> bool:
    by_date, by_weekday = day.day in cron.days, day.isoweekday() in cron.weekdays
    is_admitted = by_date or by_weekday if cron.is_either_day else by_date and by_weekday
    return is_admitted and day.month in cron.months


def _numbers(field: _Field, part: str) -> set[int]:
    return {number for term in part.split(",") for number in _range(field, term)}


def _range(field: _Field, term: str) -> range:
    found = _TERM.fullmatch(term)
    if found is None:
        raise InvalidArgument(
            f"{field.name} {_shown(term)} cannot be read; give a number, a range such as"
            f" {field.first}-{field.last}, *, or a step such as */2."
        )
    star, first, last, step = found.groups()
    if step is not None and not star and last is None:
        raise InvalidArgument(
            f"{field.name} {_shown(term)} has a step without a range; did you mean"
            f" {first}-{field.last}/{step}?"
        )
    if step is not None and int(step) == 0:
        raise InvalidArgument(f"{field.name} {_shown(term)} has a step of 0; give 1 or more.")
    begin = field.first if star else _number(field, first)
    end = field.last if star else _number(field, last or first)
    if last == "sun":
        end = 7  # as the end of a week
    if begin > end:
        raise InvalidArgument(f"{field.name} {_shown(term)} runs backwards; write it as two.")
    return range(begin, end + 1, int(step or 1))


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.first + field.names.index(text)
    if not text.isdecimal():
        known = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise InvalidArgument(
            f"{field.name} {_shown(text)} is unknown; give {field.first} to {field.last}{known}."
        )
    number = int(text)
    if not field.first <= number <= field.last:
        raise InvalidArgument(
            f"{field.name} {number} is out of range; give {field.first} to {field.last}."
        )
    return number


def _shown(text: str) -> str:
    return repr(display(text.encode("utf-8", "surrogatepass")))
