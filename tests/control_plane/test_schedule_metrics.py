"""Metrics of schedules: when they last ran, how late they are, and how many failed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from control_plane import metrics
from mediaplane.calls import CallMeter
from mediaplane.protocol.values import ScheduleAction
from tests.support.databases import Databases
from tests.support.schedules import Calendar
from tests.support.scraping import Samples, told

Tell = Callable[[], Samples]


@pytest.fixture
def tell(database: Databases) -> Tell:
    """What the control plane tells at this moment."""
    return partial(told, metrics.collector(database.control, CallMeter()))


@pytest.fixture
def calendar(database: Databases) -> Calendar:
    return Calendar(database)


def figures(tell: Tell, name: str) -> dict[str, Any]:
    return {action: figure for (action,), figure in tell().get(name, {}).items()}


def test_without_schedules_nothing_is_late_and_nothing_failed(
    calendar: Calendar, tell: Tell
) -> None:
    nothing = dict.fromkeys(ScheduleAction, 0)
    assert figures(tell, "mediaplane_schedule_lag_seconds") == nothing
    assert figures(tell, "mediaplane_schedules_failed") == nothing
    assert figures(tell, "mediaplane_schedule_last_run_timestamp_seconds") == {}


def test_the_most_overdue_schedule_of_a_sort_is_told(calendar: Calendar, tell: Tell) -> None:
    for name, late_ms in (("a", 90_000), ("b", 3_600_000), ("c", -3_600_000)):
        calendar.make_due(calendar.add(name, "sweep", is_enabled=True), late_ms)
    lags = figures(tell, "mediaplane_schedule_lag_seconds")
    assert lags.pop("sweep") >= 3_600
    assert set(lags.values()) == {0}


def test_a_run_is_told_by_when_it_began(calendar: Calendar, tell: Tell) -> None:
    name = calendar.add("nightly", "retention", is_enabled=True)
    calendar.make_due(name)
    calendar.attend()
    began_at = calendar.get(name)["last_run_at"]
    told_at = figures(tell, "mediaplane_schedule_last_run_timestamp_seconds")
    assert told_at == {"retention": began_at / 1000}
    assert figures(tell, "mediaplane_schedule_lag_seconds")["retention"] == 0


def test_failed_runs_are_counted_unless_the_schedule_is_disabled(
    calendar: Calendar, tell: Tell
) -> None:
    for name in ("a", "b", "c"):
        calendar.add(name, "sweep", is_enabled=name != "c")
    calendar.change("UPDATE schedules SET last_outcome = 'failed' WHERE name <> 'b'")
    assert figures(tell, "mediaplane_schedules_failed")["sweep"] == 1
