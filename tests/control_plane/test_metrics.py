"""Metrics over HTTP: whether each library's folder was there, as its scans have found."""

import socket
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Connection, event, text

from control_plane import metrics
from control_plane.store import roots
from mediaplane import __version__
from mediaplane.errors import UnusableSettings
from tests.support import worker
from tests.support.databases import Databases
from tests.support.reports import LIBRARY, known_pair, start_scan
from tests.support.rows import Rows
from tests.support.waiting import must_not_block

LOST = ("root_changed", "root_empty", "root_unavailable")


@pytest.fixture
def url(database: Databases) -> Iterator[str]:
    with metrics.serving(database.control, "127.0.0.1:0") as (host, port):
        yield f"http://{host}:{port}/metrics"


def scrape(url: str) -> dict[str, dict[str, float]]:
    """Every metric with its one label, read as Prometheus does."""
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        families = text_string_to_metric_families(response.read().decode())
    return {
        family.name: {next(iter(s.labels.values())): s.value for s in family.samples}
        for family in families
    }


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


def roots_up(url: str) -> dict[str, float]:
    return scrape(url)["mediaplane_library_root_up"]


def test_the_version_is_told(url: str) -> None:
    assert scrape(url)["mediaplane_build_info"] == {__version__: 1}


def test_a_folder_that_the_last_scan_saw_is_up(database: Databases, url: str) -> None:
    assert roots_up(url) == {}
    slug = library(database, None)
    assert roots_up(url) == {slug: 1}


@pytest.mark.parametrize("code", LOST)
def test_a_folder_that_the_last_scan_lost_is_not_up(
    database: Databases, url: str, code: str
) -> None:
    slug = library(database, None, code)
    assert roots_up(url) == {slug: 0}


@pytest.mark.parametrize("code", LOST)
def test_a_folder_that_was_lost_and_is_back_is_up(database: Databases, url: str, code: str) -> None:
    slug = library(database, code, None)
    assert roots_up(url) == {slug: 1}


@pytest.mark.parametrize(("before", "is_up"), [(None, 1), ("root_unavailable", 0)])
@pytest.mark.parametrize("code", ["cancelled", "lease_expired", "io_error"])
def test_a_scan_that_failed_for_another_reason_tells_nothing(
    database: Databases, url: str, code: str, before: str | None, is_up: int
) -> None:
    slug = library(database, before, code)
    assert roots_up(url) == {slug: is_up}


def test_a_scan_that_runs_tells_nothing(database: Databases, url: str) -> None:
    slug = library(database, "root_empty")
    with database.control.write() as conn:
        rows = Rows(conn)
        rows.add("scan_sessions", library_id=slug, job_id=rows.add("jobs", status="running"))
    assert roots_up(url) == {slug: 0}


def test_libraries_without_a_scan_and_in_the_trash_are_not_shown(
    database: Databases, url: str
) -> None:
    library(database)
    library(database, None, deleted_at=1)
    library(database, "lease_expired")
    shown = library(database, None)
    assert roots_up(url) == {shown: 1}


def test_a_report_that_the_control_plane_refuses_shows_the_folder_as_lost(
    database: Databases, url: str
) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.walked(seen_files=0)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_empty")
    assert roots_up(url) == {LIBRARY: 0}


def test_a_folder_that_a_worker_cannot_open_is_lost_before_its_session_is_closed(
    database: Databases, url: str
) -> None:
    known_pair(database)
    scan = start_scan(database)
    values = {"error_code": "root_unavailable", "error_message": "It is not there."}
    assert worker.finish(database.data, scan.job, "fail", **values)
    assert roots_up(url) == {LIBRARY: 0}
    scan.absorbed()
    assert scan.verdict == ("failed", "scan_ended")
    assert roots_up(url) == {LIBRARY: 0}


def test_no_more_libraries_are_shown_than_may_be(
    database: Databases, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("c", "a", "b"):
        library(database, None, slug=slug)
    monkeypatch.setattr(metrics, "MAX_LIBRARIES", 2)
    assert roots_up(url) == {"a": 1, "b": 1}


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


def test_while_the_database_fails_a_scrape_gets_no_more_than_a_sentence(
    database: Databases, url: str
) -> None:
    slug = library(database, None)
    rename(database, "scan_sessions", "hidden")
    with pytest.raises(HTTPError) as failed:
        scrape(url)
    with failed.value as answer:
        assert answer.code == 500
        said = answer.read().decode()
    assert said == "The database could not be read; the control plane's log says why.\n"
    rename(database, "hidden", "scan_sessions")
    assert roots_up(url) == {slug: 1}


def rename(database: Databases, table: str, name: str) -> None:
    with database.control.write() as conn:
        conn.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))


def test_another_path_is_not_found(url: str) -> None:
    with pytest.raises(HTTPError) as failed:
        scrape(url.removesuffix("metrics"))
    with failed.value as answer:
        assert answer.code == 404


def test_a_client_that_asks_for_nothing_keeps_nobody_waiting(url: str) -> None:
    host, port = url.split("/")[2].split(":")
    with must_not_block(20), socket.create_connection((host, int(port))):
        assert "mediaplane_build_info" in scrape(url)


def test_nobody_listens_once_serving_has_ended(database: Databases) -> None:
    with metrics.serving(database.control, "127.0.0.1:0") as place:
        socket.create_connection(place).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place)


def test_a_port_in_use_is_named_with_what_to_do(database: Databases) -> None:
    with metrics.serving(database.control, "127.0.0.1:0") as (host, port):
        address = f"{host}:{port}"
        with (
            pytest.raises(UnusableSettings, match=f"Cannot serve metrics on {address}.*another"),
            metrics.serving(database.control, address),
        ):
            pass


@pytest.mark.parametrize(
    "address",
    ["9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
     "0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "example.org:9464", "unix:/tmp/metrics"],
)  # fmt: skip
def test_only_loopback_addresses_are_served(database: Databases, address: str) -> None:
    with (
        pytest.raises(UnusableSettings, match="must be a loopback address"),
        metrics.serving(database.control, address),
    ):
        pass
