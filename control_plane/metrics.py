"""What the control plane tells Prometheus: what it has done, and how much work there is."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric

from control_plane.store import queues, roots, schedules, workers
from mediaplane.calls import CallMeter
from mediaplane.counters import Labels
from mediaplane.inquiry import Inquiry
from mediaplane.metrics import (
    DATABASE_SECONDS,
    MAX_LIBRARIES,
    build_info,
    counted,
    database_up,
    distributed,
    gauge,
)
from mediaplane.protocol import wal
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tally import TALLIES
from mediaplane.protocol.values import Plane, ScheduleAction, WorkerState

log = logging.getLogger(__name__)

# Libraries whose folders are looked for in the database; those that are lost are shown first.
_MAX_ROOTS = 1000


@dataclass(frozen=True)
class Figures:
    """What the database knows."""

    depths: dict[Labels, float]
    ages_seconds: dict[str, float]
    workers: dict[str, int]
    roots: dict[str, bool]
    is_checkpoint_busy: bool | None
    schedules: list[Row]
    now_ms: int


def collector(database: Database, meter: CallMeter) -> Callable[[], Iterator[Metric]]:
    """Return what collects all metrics of this process."""
    inquiry = Inquiry(lambda: look(database))

    def collect() -> Iterator[Metric]:
        inquiry.begin()
        yield build_info(Plane.CONTROL)
        yield from counted(*TALLIES[Plane.CONTROL].counters, meter.handled)
        yield from distributed(meter.latency)
        yield from _wal(database)
        try:
            found = inquiry.answer(DATABASE_SECONDS)
        except Exception:  # what this process knows by itself is told all the same
            log.exception("The metrics could not be read from the database")
            yield database_up(False)
            return
        yield database_up(True)
        yield from _told(found)

    return collect


def look(database: Database) -> Figures:
    """Read what the database knows."""
    with database.read() as conn:
        now_ms = database_time(conn)
        ages = {
            machine: 0.0 if since is None else max(0.0, (now_ms - since) / 1000)
            for machine, since in queues.ready_since(conn).items()
        }
        return Figures(
            queues.depths(conn),
            ages,
            workers.count_by_state(conn),
            roots.seen(conn, _MAX_ROOTS),
            queues.is_checkpoint_busy(conn),
            schedules.figures(conn),
            now_ms,
        )


def _told(found: Figures) -> Iterator[Metric]:
    yield gauge(
        "mediaplane_queue_depth",
        f"Rows that wait or are worked on; of more than {queues.MAX_DEPTH:,} the rest is not"
        " counted.",
        ("machine", "status"),
        found.depths,
    )
    yield gauge(
        "mediaplane_oldest_ready_age_seconds",
        "Seconds since the work that is next in line could have been claimed; 0 when none waits.",
        ("machine",),
        {(machine,): age for machine, age in found.ages_seconds.items()},
    )
    yield gauge(
        "mediaplane_workers",
        "Workers of the last day, by state.",
        ("state",),
        {(state,): found.workers.get(state, 0) for state in WorkerState},
    )
    # When there are too many to show, those that are lost come first.
    shown = sorted(found.roots.items(), key=lambda root: (root[1], root[0]))[:MAX_LIBRARIES]
    yield gauge(
        "mediaplane_library_root_up",
        "1 when the last scan that could tell saw the library's folder, 0 when it was lost.",
        ("library",),
        {(slug,): is_seen for slug, is_seen in shown},
    )
    yield from _scheduled(found)
    if found.is_checkpoint_busy is not None:
        yield gauge(
            "mediaplane_checkpoint_busy",
            "1 when the last checkpoint left something in the write-ahead log, 0 when it did not"
            " (SQLite).",
            (),
            {(): found.is_checkpoint_busy},
        )


def _scheduled(found: Figures) -> Iterator[Metric]:
    by_action = {row["action"]: row for row in found.schedules}
    lags = {
        action: max(0.0, (found.now_ms - row["next_run_at"]) / 1000)
        for action, row in by_action.items()
    }
    yield gauge(
        "mediaplane_schedule_lag_seconds",
        "Seconds by which the most overdue schedule is behind its time; 0 when none is.",
        ("action",),
        {(action,): lags.get(action, 0.0) for action in ScheduleAction},
    )
    yield gauge(
        "mediaplane_schedules_failed",
        "Schedules whose last run failed; those that are disabled are not counted.",
        ("action",),
        {(one,): by_action[one]["failed"] if one in by_action else 0 for one in ScheduleAction},
    )
    yield gauge(
        "mediaplane_schedule_last_run_timestamp_seconds",
        "Unix time at which a schedule last began a run; left out where none ever did.",
        ("action",),
        {
            (action,): row["last_run_at"] / 1000
            for action, row in by_action.items()
            if row["last_run_at"] is not None
        },
    )


def _wal(database: Database) -> Iterator[Metric]:
    if database.dialect != "sqlite":
        return
    yield gauge(
        "mediaplane_wal_bytes",
        "Size of the write-ahead log (SQLite).",
        (),
        {(): wal.size_bytes(database)},
    )
    yield gauge(
        "mediaplane_wal_limit_bytes",
        "Size that the write-ahead log is to stay below (SQLite).",
        (),
        {(): database.wal_limit_bytes},
    )
