"""A purge takes all that is known of a library out of the database, in bites."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import Connection, event, insert, select, text, update

from control_plane.policy import regrouping, retention, trash
from control_plane.store import trash as trash_rows
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import jobs, libraries, metadata, video_frames
from mediaplane.protocol.values import Plane
from mediaplane.v1 import library_service_pb2 as pb
from mediaplane.v1.job_service_pb2 import RetryJobRequest
from tests.support.control import SCAN, ControlPlane, at_once, refusal
from tests.support.databases import Databases
from tests.support.files import add_files, add_library, content, summarise_all
from tests.support.reports import (
    LIBRARY,
    assets_of,
    files_of,
    known_library,
    seen,
    start_scan,
)

OF_LIBRARIES = (
    "video_frames", "thumbnails", "assets", "library_files", "scan_entries", "scan_batches",
    "scan_errors", "scan_sessions",
)  # fmt: skip
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS"
    " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)",
    "postgresql": "WITH numbers(n) AS (SELECT generate_series(1, :last))",
}


def add_everything(conn: Connection, slug: str, **columns: Any) -> None:
    """A library with a few rows in each table that can hold something of it."""
    add_library(conn, slug, **columns)
    for path in (b"a", b"b"):
        asset = add(conn, "assets", library_id=slug, rel_path=path, type="video", mtime=1, size=1)
        for moment in range(3):
            add(conn, "video_frames", asset_id=asset, timestamp_ms=moment, is_keyframe=True)
        (file,) = add_files(conn, slug, [{"rel_path": path}])
        for size in (1, 2):
            add(conn, "thumbnails", file_id=file, file_version="1", group_key="1", size_px=size,
                media_type="video", format="jpeg")  # fmt: skip
        job = add(conn, "jobs", kind="scan", status="completed", library_id=slug)
        add(conn, "events", job_id=job, type="log")
        session = add(conn, "scan_sessions", library_id=slug, job_id=job, lease_epoch=1)
        add(conn, "scan_entries", session_id=session, change="seen", rel_path=path)
        add(conn, "scan_batches", session_id=session, files=b"")
        add(conn, "scan_errors", session_id=session, rel_path=path)


def add(conn: Connection, table: str, **columns: Any) -> Any:
    added = conn.execute(insert(metadata.tables[table]).values(**columns))
    assert added.inserted_primary_key
    return added.inserted_primary_key[0]


def add_many_files(database: Database, slug: str, count: int, **columns: Any) -> None:
    with database.write() as conn:
        add_library(conn, slug, **columns)
        path = {"sqlite": "CAST(n AS BLOB)", "postgresql": "convert_to(n::text, 'UTF8')"}
        conn.execute(
            text(
                "INSERT INTO library_files"
                " (library_id, rel_path, size_bytes, mtime_ns, created_at, updated_at)"
                f" {NUMBERS[database.dialect]}"
                f" SELECT '{slug}', {path[database.dialect]}, 1, 1, 1, 1 FROM numbers"
            ),
            {"last": count},
        )


def counts(database: Databases, tables: tuple[str, ...] = OF_LIBRARIES) -> dict[str, int]:
    with database.control.read() as conn:
        return {
            name: conn.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in tables
        }


def bite(database: Database, slug: str) -> trash.Purged:
    with database.write() as conn:
        return trash.purge(conn, None, slug)


def purge(control: ControlPlane, slug: str) -> pb.PurgeLibraryResponse:
    return control.libraries.PurgeLibrary(pb.PurgeLibraryRequest(name=f"libraries/{slug}"))


def test_a_purge_leaves_nothing_of_its_library_and_all_of_the_others(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        add_everything(conn, "photos", deleted_at=1)
        add_everything(conn, "films")
    before = counts(database)
    while not bite(database.control, "photos").is_gone:
        pass
    assert counts(database) == {name: count // 2 for name, count in before.items()}
    with database.control.read() as conn:
        assert list(conn.scalars(select(libraries.c.slug))) == ["films"]
        for name in ("assets", "library_files", "scan_sessions"):
            owners = select(metadata.tables[name].c.library_id).distinct()
            assert list(conn.scalars(owners)) == ["films"]


@pytest.mark.parametrize("rows_per_bite", [1, 2, 3, 7, 1000])
def test_no_bite_is_larger_than_it_may_be_and_any_may_be_the_last_of_a_process(
    database: Databases, monkeypatch: pytest.MonkeyPatch, rows_per_bite: int
) -> None:
    monkeypatch.setattr(trash, "PURGED_ROWS", rows_per_bite)
    with database.control.write() as conn:
        add_everything(conn, "photos", deleted_at=1)
    left = sum(counts(database).values())
    assert left == 22
    while left:
        another = Database(database.url, Plane.CONTROL)
        purged = bite(another, "photos")
        another.close()
        assert purged == (min(rows_per_bite, left), False)
        left -= purged.removed_rows
        assert sum(counts(database).values()) == left
    assert counts(database, ("libraries",)) == {"libraries": 1}
    while not (purged := bite(database.control, "photos")).is_gone:
        assert purged.removed_rows == 0  # jobs are let go of
    # Both scans, and the sweep that the end of a purge asks for.
    assert counts(database, ("libraries", "jobs")) == {"libraries": 0, "jobs": 3}


@pytest.mark.parametrize("purged_rows", [1, 3, 4, 6, 8, 9])
def test_a_library_that_was_purged_in_part_is_whole_after_its_next_scan(
    database: Databases, monkeypatch: pytest.MonkeyPatch, purged_rows: int
) -> None:
    monkeypatch.setattr(trash, "PURGED_ROWS", purged_rows)
    pictures = [seen(b"%d.jpg" % n, n, media_type="image") for n in range(4)]
    known_library(database, *pictures)
    with database.control.write() as conn:
        for picture in pictures:
            add(conn, "assets", library_id=LIBRARY, rel_path=picture["rel_path"], type="image",
                mtime=5e-9, size=10)  # fmt: skip
        trash.delete(conn, None, LIBRARY)
    regrouping.settle_all(database.control)
    assert bite(database.control, LIBRARY).removed_rows == min(purged_rows, 8)
    trash.restore(database.control, None, LIBRARY)
    regrouping.settle_all(database.control)
    known = files_of(database)
    new = [picture for picture in pictures if picture["rel_path"] not in known]
    scan = start_scan(database)
    scan.stage_new(*new)
    scan.walked(seen_files=4, new_files=len(new))
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    names = {picture["rel_path"] for picture in pictures}
    assert set(files_of(database)) == set(assets_of(database)) == names


@pytest.mark.parametrize("purged_rows", range(1, 9))
def test_a_video_that_lost_frames_to_a_purge_is_processed_again(
    database: Databases, monkeypatch: pytest.MonkeyPatch, purged_rows: int
) -> None:
    monkeypatch.setattr(trash, "PURGED_ROWS", purged_rows)
    with database.control.write() as conn:
        add_library(conn, LIBRARY, deleted_at=1)
        for path in (b"a", b"b"):
            asset = add(conn, "assets", library_id=LIBRARY, rel_path=path, type="video", mtime=1,
                        size=1, status="proxied")  # fmt: skip
            for moment in range(3):
                add(conn, "video_frames", asset_id=asset, timestamp_ms=moment, is_keyframe=True)
    bite(database.control, LIBRARY)
    with database.control.read() as conn:
        frames = Counter(conn.scalars(select(video_frames.c.asset_id)))
    for asset in assets_of(database).values():
        assert asset["status"] == ("proxied" if frames[asset["id"]] == 3 else "pending")


def test_the_jobs_of_a_purged_library_keep_their_history(control: ControlPlane) -> None:
    control.library("photos")
    job = control.create(SCAN, "libraries/photos")
    control.client.cancel_job(job.name)
    control.client.remove_library("photos")
    events = list(control.client.events(job.name))
    assert events[0].payload["library"] == "photos"
    assert sum(control.client.purge_library("photos")) == 1
    assert list(control.client.events(job.name)) == events
    assert control.client.job(job.name).library == ""


def test_a_scan_of_a_purged_library_cannot_be_retried(control: ControlPlane) -> None:
    control.library("photos")
    job = control.create(SCAN, "libraries/photos")
    control.client.cancel_job(job.name)
    control.client.remove_library("photos")
    for _ in control.client.purge_library("photos"):
        pass
    error = refusal(control.jobs.RetryJob, RetryJobRequest(name=job.name))
    assert (error.code, "no library 'photos'" in error.text) == (StatusCode.NOT_FOUND, True)


def forget(database: Databases) -> None:
    with database.control.write() as conn:
        retention.forget(conn, 30)


def test_the_last_scan_of_a_purged_library_is_forgotten_when_it_is_old(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        add_everything(conn, "photos", deleted_at=1)
        conn.execute(update(jobs).values(created_at=1, finished_at=1))
    forget(database)
    assert counts(database, ("jobs",)) == {"jobs": 1}  # that of the last scan
    while not bite(database.control, "photos").is_gone:
        pass
    forget(database)
    # All but the sweep that the end of the purge asked for.
    assert counts(database, ("jobs", "events")) == {"jobs": 1, "events": 1}


def test_groups_stay_right_at_every_bite_of_a_purge(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trash, "PURGED_ROWS", 2)
    control.library("photos")
    control.library("films")
    with control.database.control.write() as conn:
        add_files(conn, "photos", [content(1)] * 5)
        add_files(conn, "films", [content(1)] * 2)
        summarise_all(conn)
    control.client.remove_library("photos")
    for _rows in control.client.purge_library("photos"):
        (group,) = control.client.duplicate_groups()
        assert (group.file_count, group.reclaimable_bytes) == (2, 10)


def test_the_name_of_a_purged_library_can_be_used_again(control: ControlPlane) -> None:
    control.library("photos")
    control.client.remove_library("photos")
    assert purge(control, "photos").is_gone
    assert control.library("photos") == "libraries/photos"
    assert not control.client.library("photos").HasField("delete_time")


def test_a_library_that_is_not_in_the_trash_is_not_purged(control: ControlPlane) -> None:
    control.library("photos")
    error = refusal(lambda _: purge(control, "photos"), None)
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert "mediaplane library remove photos" in error.text
    assert control.client.library("photos").name == "libraries/photos"


def test_a_purge_of_nothing_is_not_found(control: ControlPlane) -> None:
    assert refusal(lambda _: purge(control, "nothing"), None).code is StatusCode.NOT_FOUND


def test_two_purges_at_once_remove_every_row_once(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trash, "PURGED_ROWS", 10)
    add_many_files(control.database.control, "photos", 200, deleted_at=1)
    removed = []
    for _ in range(10):
        answers, refusals = at_once(*[lambda: purge(control, "photos")] * 2)
        assert refusals == []
        removed += [answer.removed_rows for answer in answers]
    assert removed == [10] * 20
    assert sum(control.client.purge_library("photos")) == 1


def statements_of(database: Database, work: Callable[[], object]) -> list[tuple[str, Any]]:
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        sent.append((sql, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    work()
    event.remove(database.engine, "before_cursor_execute", note)
    return [pair for pair in sent if any(f"FROM {name}" in pair[0] for name in OF_LIBRARIES)]


def test_a_bite_goes_to_its_rows_by_index(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trash, "BITE_SECONDS", 60)
    for slug in ("films", "photos", "sounds"):
        add_many_files(database.control, slug, 20_000, deleted_at=1)
    with database.control.write() as conn:
        conn.execute(
            text(
                "INSERT INTO assets (library_id, rel_path, type, mtime, size, created_at,"
                " updated_at) SELECT library_id, rel_path, 'image', 1, 1, 1, 1 FROM library_files"
            )
        )
        conn.execute(
            text(
                "INSERT INTO video_frames (asset_id, timestamp_ms, is_keyframe)"
                " SELECT id, 1, true FROM assets"
            )
        )
        conn.execute(
            text(
                "INSERT INTO thumbnails (file_id, file_version, group_key, media_type, format,"
                " size_px, created_at, updated_at)"
                " SELECT id, '1', '1', 'image', 'jpeg', 1, 1, 1 FROM library_files"
            )
        )
    with database.control.write() as conn:
        conn.execute(text("ANALYZE"))
    seen = statements_of(database.control, lambda: bite(database.control, "photos"))
    assert "DELETE FROM thumbnails" in seen[2][0]
    while counts(database)["library_files"] > 40_000:
        bite(database.control, "photos")
    seen += statements_of(database.control, lambda: bite(database.control, "photos"))
    assert any("DELETE FROM video_frames" in sql for sql, _ in seen)
    explain = "EXPLAIN" if database.control.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
    with database.control.write() as conn:
        trash_rows.remove_rows(conn, "nothing", 1)  # sets the transaction up
        for sql, parameters in seen:
            lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
            found = "\n".join(str(line[-1]) for line in lines)
            assert "Index" in found or "SEARCH" in found, sql
            for name in OF_LIBRARIES:
                assert f"Seq Scan on {name}" not in found, sql
                assert f"SCAN {name}" not in found, sql


def waits(database: Databases, is_over: threading.Event, *, writes: bool) -> list[float]:
    """Read or write again and again, as another process would; returns how long each took."""
    seconds: list[float] = []
    other = Database(database.url, Plane.CONTROL)
    while not is_over.is_set():
        began = time.monotonic()
        with other.write() if writes else other.read() as conn:
            if writes:
                conn.execute(update(libraries).values(sampling_limit=len(seconds) + 1))
            else:
                conn.execute(select(libraries)).all()
        seconds.append(time.monotonic() - began)
    other.close()
    return seconds


def test_others_read_and_write_between_the_bites_of_a_purge(control: ControlPlane) -> None:
    add_many_files(control.database.control, "photos", 20_000, deleted_at=1)
    is_over = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        reads = pool.submit(waits, control.database, is_over, writes=False)
        writes = pool.submit(waits, control.database, is_over, writes=True)
        began = time.monotonic()
        bites = list(control.client.purge_library("photos"))
        seconds = time.monotonic() - began
        is_over.set()
    assert sum(bites) == 20_001
    assert max(bites) <= trash.PURGED_ROWS
    for waited in (reads.result(), writes.result()):
        assert len(waited) > 8
        # One of them may have met a machine that stood still.
        assert sorted(waited)[-2] < seconds / 4


def test_a_bite_that_takes_long_ends_early(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_many_files(database.control, "photos", 6000, deleted_at=1)
    monkeypatch.setattr(trash, "BITE_SECONDS", 0)
    assert 0 < bite(database.control, "photos").removed_rows < trash.PURGED_ROWS
    monkeypatch.setattr(trash, "BITE_SECONDS", 60)
    assert bite(database.control, "photos").removed_rows == trash.PURGED_ROWS
