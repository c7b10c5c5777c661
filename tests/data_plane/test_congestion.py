"""While something keeps SQLite's log from beginning anew, work that writes much waits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from data_plane.executor import Cancelled, Context, Control, ScanTask
from data_plane.executors.scan import scan
from data_plane.jail import Jail
from mediaplane.protocol import wal
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import library_files, scan_batches
from mediaplane.protocol.values import JobKind, Plane
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker, control_loops
from tests.support.scanning import MemoryReport
from tests.support.studio import Studio, photo
from tests.support.waiting import eventually
from tests.support.wal import grown_log, write_much

LIMIT_BYTES = 32 << 20


@pytest.fixture
def database(database: Databases) -> Iterator[Databases]:
    """The same, with the least limit that can be set."""
    control = Database(database.url, Plane.CONTROL, LIMIT_BYTES)
    data = Database(database.url, Plane.DATA, LIMIT_BYTES)
    yield Databases(database.url, control, data)
    control.close()
    data.close()


on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
def test_jobs_wait_while_the_log_is_congested_and_go_on_by_themselves(
    database: Databases, desk: Desk
) -> None:
    with Worker(database.data) as worker:
        desk.wait_for(desk.probe(), "completed")
        with grown_log(database, LIMIT_BYTES // 2):
            assert wal.is_congested(database.data)
            # Asking for jobs goes on, doing them does not.
            jobs = [desk.probe(), desk.probe(priority=100), desk.probe(probe_items=2)]
            assert not worker.runner.work_once()
            assert [desk.job(job)["status"] for job in jobs] == ["pending"] * 3
        write_much(database)  # any commit will do: it finds the reader gone
        for job in jobs:
            desk.wait_for(job, "completed")
    assert not wal.is_congested(database.data)


@on_sqlite
def test_a_job_in_hand_is_finished_and_its_items_wait(database: Databases, desk: Desk) -> None:
    with Worker(database.data, lease_seconds=1.0) as worker:
        whole, cut = desk.probe(0.5), desk.probe(0.05, probe_items=20)
        desk.wait_for(whole, "running")
        with grown_log(database, LIMIT_BYTES // 2):
            desk.wait_for(whole, "completed")
            eventually(lambda: not worker.leases.all() or desk.job(cut)["status"] == "running")
            done = desk.job(cut)["completed_items"]
            assert not worker.runner.work_once()
            assert desk.job(cut)["completed_items"] <= done + 1
        write_much(database)
        job = desk.wait_for(cut, "completed")
    assert (job["completed_items"], job["lease_epoch"]) == (20, 1)


@on_sqlite
def test_what_a_scan_reported_is_taken_over_later(
    database: Databases, desk: Desk, tmp_path: Path
) -> None:
    for number in range(20):
        (tmp_path / f"{number}.jpg").write_bytes(b"x")
    desk.add_library(tmp_path)
    with Worker(database.data):
        job = desk.create(JobKind.SCAN)
        eventually(lambda: count(desk, scan_batches) == 1)
        with grown_log(database, LIMIT_BYTES // 2), control_loops(database):
            eventually(lambda: rows_of_checkpoints(desk) == 1)
            assert count(desk, library_files) == 0
            write_much(database)
            assert count(desk, library_files) == 0
        write_much(database)
        with control_loops(database):
            desk.wait_for(job, "completed")
    assert count(desk, library_files) == 20


def count(desk: Desk, table: object) -> int:
    with desk.database.read() as conn:
        return int(conn.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def rows_of_checkpoints(desk: Desk) -> int:
    with desk.database.read() as conn:
        query = "SELECT count(*) FROM wal_maintenance_jobs WHERE requested_mode = 'truncate'"
        return int(conn.exec_driver_sql(query).scalar() or 0)


def test_a_scan_waits_before_it_reports_more(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"x")
    report = MemoryReport()
    report.verdicts, report.waits = [True], 2
    scan(ScanTask("l", bytes(tmp_path), report), Context(Control(), Jail))
    assert [file.rel_path for file in report.changed] == [b"a.jpg"]
    assert report.waits < 0


def test_a_scan_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"x")
    report, control = MemoryReport(), Control()
    report.waits = 1_000_000
    report.is_held_back = lambda: not control.cancelled.set()  # type: ignore[func-returns-value, method-assign]
    with pytest.raises(Cancelled):
        scan(ScanTask("l", bytes(tmp_path), report), Context(control, Jail))
    assert report.changed == []


@on_sqlite
def test_assets_wait_and_thumbnails_that_somebody_asked_for_do_not(
    database: Databases, desk: Desk, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    for name in ("a.jpg", "b.jpg"):
        (root / name).write_bytes(photo())
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        desk.run(JobKind.SCAN)
    studio = Studio(desk, database.data, tmp_path / "state")
    with grown_log(database, LIMIT_BYTES // 2), studio.worker(image_slots=1, video_slots=0):
        asked = studio.add_thumbnail(b"a.jpg")
        studio.wait_for_thumbnail(asked, "ready")
        assert {studio.asset(path)["status"] for path in (b"a.jpg", b"b.jpg")} == {"pending"}
    write_much(database)
    with studio.worker(image_slots=1, video_slots=0):
        studio.wait_for(b"b.jpg", "proxied")
