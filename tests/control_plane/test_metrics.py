"""Metrics of the control plane: whether the folders of libraries were there, as scans found."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from control_plane import metrics
from control_plane.store import roots
from mediaplane import __version__
from mediaplane.calls import CallMeter
from tests.support import worker
from tests.support.databases import Databases
from tests.support.reports import LIBRARY, known_pair, start_scan
from tests.support.rows import Rows
from tests.support.scraping import Samples, told

Tell = Callable[[], Samples]
LOST = ("root_changed", "root_empty", "root_unavailable")


@pytest.fixture
def tell(database: Databases) -> Tell:
    """What the control plane tells at this moment."""
    return partial(told, metrics.collector(database.control, CallMeter()))


def scanned(conn: Connection, library: str, code: str | None = None, **session: Any) -> None:
    """Add the end of a scan; the job knows the code, and the session what a session is told."""
    rows = Rows(conn)
    status = "failed" if code else "completed"
    job = rows.add("jobs", status=status, error_code=code)
    usual = {"status": "failed", "error_code": "scan_ended"} if code else {"status": "succeeded"}
    rows.add("scan_sessions", library_id=library, job_id=job, **(usual | session))


def library(database: Databases, *codes: str | None, **columns: Any) -> str:
    """Add a library with scans that ended so, the latest last."""
    with database.control.write() as conn:
        slug = str(Rows(conn).add("libraries", **columns))
        for code in codes:
            scanned(conn, slug, code)
    return slug


def roots_up(tell: Tell) -> dict[str, float]:
    found = tell().get("mediaplane_library_root_up", {})
    return {slug: is_up for (slug,), is_up in found.items()}


def test_the_version_is_told(tell: Tell) -> None:
    assert tell()["mediaplane_build_info"] == {("control", __version__): 1}


def test_a_folder_that_the_last_scan_saw_is_up(database: Databases, tell: Tell) -> None:
    assert roots_up(tell) == {}
    slug = library(database, None)
    assert roots_up(tell) == {slug: 1}


@pytest.mark.parametrize("code", LOST)
def test_a_folder_that_the_last_scan_lost_is_not_up(
    database: Databases, tell: Tell, code: str
) -> None:
    slug = library(database, None, code)
    assert roots_up(tell) == {slug: 0}


@pytest.mark.parametrize("code", LOST)
def test_a_folder_that_was_lost_and_is_back_is_up(
    database: Databases, tell: Tell, code: str
) -> None:
    slug = library(database, code, None)
    assert roots_up(tell) == {slug: 1}


@pytest.mark.parametrize(("before", "is_up"), [(None, 1), ("root_unavailable", 0)])
@pytest.mark.parametrize("code", ["cancelled", "lease_expired", "io_error"])
def test_a_scan_that_failed_for_another_reason_tells_nothing(
    database: Databases, tell: Tell, code: str, before: str | None, is_up: int
) -> None:
    slug = library(database, before, code)
    assert roots_up(tell) == {slug: is_up}


def test_a_scan_that_runs_tells_nothing(database: Databases, tell: Tell) -> None:
    slug = library(database, "root_empty")
    with database.control.write() as conn:
        rows = Rows(conn)
        rows.add("scan_sessions", library_id=slug, job_id=rows.add("jobs", status="running"))
    assert roots_up(tell) == {slug: 0}


def test_libraries_without_a_scan_and_in_the_trash_are_not_shown(
    database: Databases, tell: Tell
) -> None:
    library(database)
    library(database, None, deleted_at=1)
    library(database, "lease_expired")
    shown = library(database, None)
    assert roots_up(tell) == {shown: 1}


def test_a_report_that_the_control_plane_refuses_shows_the_folder_as_lost(
    database: Databases, tell: Tell
) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.walked(seen_files=0)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_empty")
    assert roots_up(tell) == {LIBRARY: 0}


def test_a_folder_that_a_worker_cannot_open_is_lost_before_its_session_is_closed(
    database: Databases, tell: Tell
) -> None:
    known_pair(database)
    scan = start_scan(database)
    values = {"error_code": "root_unavailable", "error_message": "It is not there."}
    assert worker.finish(database.data, scan.job, "fail", **values)
    assert roots_up(tell) == {LIBRARY: 0}
    scan.absorbed()
    assert scan.verdict == ("failed", "scan_ended")
    assert roots_up(tell) == {LIBRARY: 0}


def test_of_more_libraries_than_may_be_shown_those_that_are_lost_come_first(
    database: Databases, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("c", "a", "b"):
        library(database, None, slug=slug)
    library(database, "root_empty", slug="lost")
    monkeypatch.setattr(metrics, "MAX_LIBRARIES", 3)
    assert roots_up(tell) == {"lost": 0, "a": 1, "b": 1}


def test_a_scrape_goes_to_the_last_scans_by_index(database: Databases) -> None:
    library(database, *[None] * 300)
    with database.control.write() as conn:
        conn.execute(text("ANALYZE"))
        plan = explained(conn, lambda: roots.seen(conn, 1000))
    assert "ix_scan_sessions_library" in plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan
    assert "Seq Scan on scan_sessions" not in plan


def explained(conn: Connection, ask: Callable[[], object]) -> str:
    """Return how the database carries out the one query that is asked."""
    plans: list[str] = []
    prefix = "EXPLAIN " if conn.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "

    def explain(_conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        cursor.execute(prefix + statement, parameters)
        plans.extend(str(row) for row in cursor.fetchall())

    event.listen(conn, "before_cursor_execute", explain)
    ask()
    event.remove(conn, "before_cursor_execute", explain)
    assert plans
    return "\n".join(plans)


def test_while_the_database_fails_the_process_tells_what_it_knows_by_itself(
    database: Databases, tell: Tell
) -> None:
    slug = library(database, None)
    rename(database, "scan_sessions", "hidden")
    found = tell()
    assert found["mediaplane_database_up"] == {(): 0}
    assert "mediaplane_steps_total" in found
    assert "mediaplane_library_root_up" not in found
    rename(database, "hidden", "scan_sessions")
    assert roots_up(tell) == {slug: 1}


def rename(database: Databases, table: str, name: str) -> None:
    with database.control.write() as conn:
        conn.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))
