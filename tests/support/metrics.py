"""Everything that both planes can tell Prometheus."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client.core import Metric
from sqlalchemy import insert

import control_plane.metrics
import control_plane.server
import data_plane.metrics
import data_plane.server
from control_plane.feed import Feed
from control_plane.settings import ControlSettings
from data_plane.settings import DataSettings
from data_plane.worker import Worker
from mediaplane.calls import CallMeter
from mediaplane.locations import Locations
from mediaplane.protocol import tables
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases
from tests.support.rows import Rows

Collect = Callable[[], Iterable[Metric]]


def collectors(database: Databases, state: Path) -> dict[Plane, tuple[Collect, CallMeter]]:
    """What collects the metrics of each plane, and the meter of its calls."""
    locations = Locations(state, database.url, "", "")
    locations.prepare()
    worker = Worker(database.data, DataSettings(), locations, threading.Event())
    of_control, of_data = CallMeter(), CallMeter()
    feed = Feed(database.control, Bell(database.control, None), 1.0)
    offered = control_plane.server.services(database.control, feed, ControlSettings())
    of_control.cover(name for name, _ in offered)
    of_data.cover(
        name
        for name, _ in data_plane.server.services(
            database.data, worker.leases, worker.roots, state, DataSettings()
        )
    )
    return {
        Plane.CONTROL: (control_plane.metrics.collector(database.control, of_control), of_control),
        Plane.DATA: (
            data_plane.metrics.collector(database.data, worker, state, of_data),
            of_data,
        ),
    }


def fill(database: Databases, root: Path, libraries: int = 1) -> None:
    """Give the database something to tell of everything that can be told."""
    with database.control.write() as conn:
        rows = Rows(conn)
        job = rows.add("jobs", status="completed")
        slugs = [f"library-{number}" for number in range(libraries)]
        conn.execute(
            insert(tables.libraries),
            [{"slug": slug, "name": slug, "absolute_path": bytes(root)} for slug in slugs],
        )
        scanned = {"job_id": job, "status": "succeeded"}
        conn.execute(
            insert(tables.scan_sessions),
            [
                scanned | {"library_id": slug, "lease_epoch": number}
                for number, slug in enumerate(slugs)
            ],
        )
        rows.add("schedules", is_enabled=True, next_run_at=rows.now(), last_run_at=rows.now())
        rows.add(
            "wal_maintenance_jobs",
            status="completed",
            checkpoint_busy=0,
            checkpoint_log_frames=1,
            checkpointed_frames=1,
        )
