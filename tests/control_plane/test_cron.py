"""Cron expressions are read as written, and are due when a walk over all minutes says so."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.policy import cron
from mediaplane.errors import InvalidArgument

EXAMPLES = int(os.environ.get("MEDIAPLANE_CRON_EXAMPLES", "60"))
MINUTE = timedelta(minutes=1)
BERLIN = ZoneInfo("Europe/Berlin")
# Set forward and back by an hour, by half an hour, by two hours, at midnight; and never.
ZONES = ["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "America/Santiago",
         "America/Nuuk", "Asia/Kathmandu", "UTC"]  # fmt: skip
# Around the changes of those clocks in 2026.
CHANGES = [datetime(2026, *day, tzinfo=UTC) for day in [(3, 28), (4, 4), (9, 5), (10, 3), (10, 24)]]


def runs(expression: str, zone: str, after: datetime, count: int = 3) -> list[datetime]:
    found = cron.upcoming(cron.parse(expression), cron.zone(zone), after)
    return list(islice(found, count))


def readings(expression: str, after: str, count: int = 3, zone: str = "Europe/Berlin") -> list[str]:
    """The runs after a reading of the clock, as readings with their offset."""
    clock = ZoneInfo(zone)
    began = datetime.fromisoformat(after).replace(tzinfo=clock)
    return [
        moment.astimezone(clock).strftime("%m-%d %H:%M%z")
        for moment in runs(expression, zone, began, count)
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 2 * * *", ["11-17 02:30", "11-18 02:30", "11-19 02:30"]),
        ("*/20 * * * *", ["11-16 12:20", "11-16 12:40", "11-16 13:00"]),
        ("5-59/25 13 * * *", ["11-16 13:05", "11-16 13:30", "11-16 13:55"]),
        ("0 0 1,15 * *", ["12-01 00:00", "12-15 00:00", "01-01 00:00"]),
        ("0 6 * * mon-wed", ["11-17 06:00", "11-18 06:00", "11-23 06:00"]),
        ("0 6 * * FRI-SUN", ["11-20 06:00", "11-21 06:00", "11-22 06:00"]),
        ("0 6 * * 7", ["11-22 06:00", "11-29 06:00", "12-06 06:00"]),
        ("0 6 * * 0", ["11-22 06:00", "11-29 06:00", "12-06 06:00"]),
        ("0 0 1 jan,Jul *", ["01-01 00:00", "07-01 00:00", "01-01 00:00"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        ("@hourly", ["11-16 13:00", "11-16 14:00", "11-16 15:00"]),
        ("@daily", ["11-17 00:00", "11-18 00:00", "11-19 00:00"]),
        ("@weekly", ["11-22 00:00", "11-29 00:00", "12-06 00:00"]),
        (" @Monthly ", ["12-01 00:00", "01-01 00:00", "02-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
    ],
)
def test_an_expression_is_due_as_it_says(expression: str, expected: list[str]) -> None:
    found = readings(expression, "2026-11-16T12:07", zone="UTC")
    assert [reading.removesuffix("+0000") for reading in found] == expected


def test_with_both_days_given_either_is_enough_and_with_a_star_both_must_fit() -> None:
    assert readings("0 0 13 * fri", "2026-11-01T12:00", 4, "UTC") == [
        "11-06 00:00+0000", "11-13 00:00+0000", "11-20 00:00+0000", "11-27 00:00+0000",
    ]  # fmt: skip
    assert readings("0 0 */2 * fri", "2026-11-01T12:00", 2, "UTC") == [
        "11-13 00:00+0000", "11-27 00:00+0000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("61 * * * *", "minute 61 is out of range; give 0 to 59."),
        ("* 24 * * *", "hour 24 is out of range; give 0 to 23."),
        ("* * 0 * *", "day of the month 0 is out of range; give 1 to 31."),
        ("* * * 13 *", "month 13 is out of range; give 1 to 12."),
        ("* * * * 8", "day of the week 8 is out of range; give 0 to 7."),
        ("* * * * mondays", "day of the week 'mondays' is unknown; give 0 to 7 or sun to sat."),
        ("* mon * * *", "hour 'mon' is unknown; give 0 to 23."),
        ("5/15 * * * *", "minute '5/15' has a step without a range; did you mean 5-59/15?"),
        ("*/0 * * * *", "minute '*/0' has a step of 0; give 1 or more."),
        ("* 20-4 * * *", "hour '20-4' runs backwards; write it as two."),
        ("1,,2 * * * *", "minute '' cannot be read"),
        ("½ * * * *", "minute '½' cannot be read"),
        ("-1 * * * *", "minute '-1' cannot be read"),
        ("\x1b[2J * * * *", r"minute '\\x1b[2j' cannot be read"),
        ("30 2 * *", "'30 2 * *' has 4 fields instead of 5"),
        ("0 30 2 * * *", "has 6 fields instead of 5"),
        ("", "'' has 0 fields instead of 5"),
        ("@reboot", "'@reboot' is unknown; there are @hourly, @daily"),
        ("0 0 31 2,4 *", "'0 0 31 2,4 *' is never due: no month of it has such a day."),
        ("*" * 101, "up to 100 characters"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_field_and_what_it_may_be(
    expression: str, complaint: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        cron.parse(expression)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    "name", ["", "Europe/Brelin", "Europe", "../etc/passwd", "/etc/localtime", "zone.tab", "a\0b"]
)
def test_a_time_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="is no time zone; give one such as UTC"):
        cron.zone(name)


def test_a_run_in_the_hour_that_is_left_out_happens_right_after_it() -> None:
    assert readings("30 2 * * *", "2026-03-28T12:00") == [
        "03-29 03:00+0200", "03-30 02:30+0200", "03-31 02:30+0200",
    ]  # fmt: skip


def test_a_run_in_the_hour_that_is_repeated_happens_once() -> None:
    assert readings("30 2 * * *", "2026-10-24T12:00") == [
        "10-25 02:30+0200", "10-26 02:30+0100", "10-27 02:30+0100",
    ]  # fmt: skip


def test_who_asks_in_the_repeated_hour_is_never_told_a_time_that_has_passed() -> None:
    second = datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=1)
    assert runs("30 2 * * *", "Europe/Berlin", second, 1)[0] == datetime(
        2026, 10, 26, 2, 30, tzinfo=BERLIN
    )


def test_several_runs_in_the_hour_that_is_left_out_are_one() -> None:
    assert readings("*/10 2,3 * * *", "2026-03-29T00:00", 2) == [
        "03-29 03:00+0200", "03-29 03:10+0200",
    ]  # fmt: skip


def test_what_is_due_every_hour_goes_on_at_its_pace_over_a_change() -> None:
    assert readings("0 * * * *", "2026-03-29T00:30") == [
        "03-29 01:00+0100", "03-29 03:00+0200", "03-29 04:00+0200",
    ]  # fmt: skip
    assert readings("0 * * * *", "2026-10-25T01:30") == [
        "10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100",
    ]  # fmt: skip


def fields(first: int, last: int) -> st.SearchStrategy[str]:
    number = st.integers(first, last)
    ranges = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.tuples(ranges | st.just("*"), st.integers(1, last)).map("{0[0]}/{0[1]}".format)
    term = number.map(str) | ranges | steps
    return st.just("*") | st.lists(term, min_size=1, max_size=3).map(",".join)


EXPRESSIONS = st.tuples(
    fields(0, 59), fields(0, 23), st.just("*") | fields(1, 31), st.just("*"), fields(0, 7)
).map(" ".join)


def admitted(field: str, first: int, last: int) -> set[int]:
    """The numbers that a field admits, found by trying every number with every term."""
    found = set()
    for number, term in product(range(first, last + 1), field.split(",")):
        ends, _, step = term.partition("/")
        low, _, high = (f"{first}-{last}" if ends == "*" else ends).partition("-")
        if int(low) <= number <= int(high or low) and (number - int(low)) % int(step or 1) == 0:
            found.add(number)
    return found


def fitting(expression: str) -> Callable[[datetime], bool]:
    minute, hour, day, _month, weekday = expression.split()
    minutes, hours = admitted(minute, 0, 59), admitted(hour, 0, 23)
    days, weekdays = admitted(day, 1, 31), {n % 7 for n in admitted(weekday, 0, 7)}
    combine = all if day.startswith("*") or weekday.startswith("*") else any

    def fits(reading: datetime) -> bool:
        is_day = combine([reading.day in days, reading.isoweekday() % 7 in weekdays])
        return is_day and reading.hour in hours and reading.minute in minutes

    return fits


def walk(expression: str, zone: ZoneInfo, after: datetime, minutes: int) -> list[datetime]:
    """Look at every minute: what the clock shows, and what it has just passed over."""
    fits, is_hourly = fitting(expression), len(admitted(expression.split()[1], 0, 23)) == 24
    found, before = [], after.astimezone(zone).replace(tzinfo=None)
    for number in range(1, minutes + 1):
        moment = after + number * MINUTE
        reading = moment.astimezone(zone)
        shown = reading.replace(tzinfo=None, fold=0)
        passed = [before + n * MINUTE for n in range(1, int((shown - before) / MINUTE))]
        is_first = is_hourly or reading.fold == 0
        if (is_first and fits(shown)) or (not is_hourly and any(map(fits, passed))):
            found.append(moment)
        before = shown
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES), st.sampled_from(CHANGES), st.integers(0, 48 * 60))
def test_what_is_due_is_what_a_walk_over_all_minutes_finds(
    expression: str, zone: str, change: datetime, minutes: int
) -> None:
    after, span = change + minutes * MINUTE, 36 * 60
    expected = walk(expression, ZoneInfo(zone), after, span)
    found = runs(expression, zone, after, min(len(expected) + 1, 40))
    assert found[: len(expected)] == expected[: len(found)]
    assert len(found) == 40 or found[-1] > after + span * MINUTE
