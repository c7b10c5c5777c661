"""Promises of listings: a page costs the same wherever it lies and however many rows there are."""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from bench import databases
from bench.claim_cost import SERIES
from bench.databases import Fresh
from bench.echo import Echoes, running_echo
from bench.verdicts import Verdicts, row, title
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import control_plane, running
from mediaplane.protocol import migration, tables
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import JobKind, Plane
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from tests.support.files import GROUPS

PAGE_ROWS = 50
# So many pages of 999 rows end where page 1,000 of 50 rows begins.
SKIPPED_PAGES = 50
SKIPPED_PAGE_ROWS = 999
ROUNDS = 30
WARM_UP_ROUNDS = 5
# In a row, so that neither server is asked more often than the other after a pause.
CALLS_OF_A_ROUND = 10
# As many as one call of BatchCreateJobs admits.
JOBS_OF_A_MOMENT = 1_000

LIBRARY_FILES = 100_000
LIBRARY_GROUPS = LIBRARY_FILES // 2
WALKED_PAGE_ROWS = 200
SAMPLED_PAGES = 9

# A content of 32 bytes from a number, in an order that is not that of the numbers.
CONTENT = {
    "sqlite": "CAST(printf('%032d', ({n}) * 7919 % 99999989) AS BLOB)",
    "postgresql": "convert_to(lpad((({n})::bigint * 7919 % 99999989)::text, 32, '0'), 'UTF8')",
}
ADD_GROUPS = (
    "INSERT INTO duplicate_groups (hash_algorithm, content_hash, file_count, size_bytes,"
    " total_size_bytes, reclaimable_bytes, updated_at)"
)


class Listing(NamedTuple):
    """A listing over the wire."""

    noun: str
    call: Callable[[Any], Any]
    request: Callable[..., Any]


def main() -> int:
    """Measure, print and judge."""
    is_quick = os.environ.get("QUICK", "") not in ("", "0")
    sizes = (100_000, 1_000_000) if is_quick else (100_000, 1_000_000, 10_000_000)
    verdicts = Verdicts()
    calls = f"{ROUNDS * CALLS_OF_A_ROUND} calls, {CALLS_OF_A_ROUND} in turn"
    print(f"processors: {os.cpu_count()}; {calls}; median, lowest, highest")
    with databases.sqlite() as fresh, running_echo() as echoes:
        _measure("SQLite", fresh, sizes, echoes, verdicts)
    with databases.postgresql() as (fresh, settings), running_echo() as echoes:
        print("\nPostgreSQL:", ", ".join(f"{name}={value}" for name, value in settings.items()))
        _measure("PostgreSQL", fresh, sizes, echoes, verdicts)
    missed = verdicts.missed
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _measure(
    name: str, fresh: Fresh, sizes: tuple[int, ...], echoes: Echoes, verdicts: Verdicts
) -> None:
    for rows in sizes:
        with _serving(fresh, partial(_fill_listings, rows)) as (client, _):
            for listing in _listings(client):
                title(f"Pages of {PAGE_ROWS} among {rows:,} {listing.noun}, {name}")
                _judge_pages(client, listing, echoes, verdicts)
    title(f"All {LIBRARY_GROUPS:,} groups in pages of {WALKED_PAGE_ROWS}, {name}")
    with _serving(fresh, _fill_library) as (client, database):
        _judge_walk(client, database, verdicts)


def _listings(client: Client) -> list[Listing]:
    groups, jobs = client.duplicate_service, client.job_service
    request = duplicates_pb.ListDuplicateGroupsRequest
    reclaimable = partial(request, order=request.ORDER_RECLAIMABLE)
    return [
        Listing("groups by copies", groups.ListDuplicateGroups, request),
        Listing("groups by what they free", groups.ListDuplicateGroups, reclaimable),
        Listing("jobs", jobs.ListJobs, jobs_pb.ListJobsRequest),
    ]


def _judge_pages(client: Client, listing: Listing, echoes: Echoes, verdicts: Verdicts) -> None:
    token = ""
    for _ in range(SKIPPED_PAGES):
        asked = listing.request(page_size=SKIPPED_PAGE_ROWS, page_token=token)
        token = listing.call(asked).next_page_token
    first = listing.request(page_size=PAGE_ROWS)
    later = listing.request(page_size=PAGE_ROWS, page_token=token)
    (job,) = client.jobs(limit=1)
    calls: dict[str, Callable[[], Any]] = {
        "page 1": partial(listing.call, first),
        "page 1,000": partial(listing.call, later),
        "an echo of page 1": echoes(listing.call(first)),
        # For comparison alone: the least that a call to the control plane reads.
        "GetJob": partial(client.job, job.name),
    }
    measured: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for name, call in calls.items():
            for _ in range(CALLS_OF_A_ROUND):
                began = time.perf_counter()
                call()
                if number >= WARM_UP_ROUNDS:
                    measured[name].append((time.perf_counter() - began) * 1000)
    near, far, echo, _ = (row(name, values, "ms") for name, values in measured.items())
    verdicts.at_most(f"{listing.noun}: page 1,000, times page 1", far / near, 1.5)
    verdicts.at_most(f"{listing.noun}: a page, times an echo of it", max(near, far) / echo, 2)


def _judge_walk(client: Client, database: Database, verdicts: Verdicts) -> None:
    began = time.perf_counter()
    found, pages, token = 0, 0, None
    while token != "":
        request = duplicates_pb.ListDuplicateGroupsRequest(
            page_size=WALKED_PAGE_ROWS, page_token=token or ""
        )
        answer = client.duplicate_service.ListDuplicateGroups(request)
        found, pages, token = found + len(answer.groups), pages + 1, answer.next_page_token
    seconds = time.perf_counter() - began
    if found != LIBRARY_GROUPS:
        raise RuntimeError(f"{found} of {LIBRARY_GROUPS} groups were listed.")
    grouped = [
        _grouping_seconds(database, pages * n // SAMPLED_PAGES) for n in range(SAMPLED_PAGES)
    ]
    row("a page, on the way through", [seconds / pages * 1000], "ms")
    row("a page by GROUP BY", [one * 1000 for one in grouped], "ms")
    times = statistics.median(grouped) * pages / seconds
    verdicts.at_least("the walk, times as fast as GROUP BY for each page", times, 30)


def _grouping_seconds(database: Database, page: int) -> float:
    """Return how long one page takes without a summary, and without the way over the wire."""
    query = text(
        f"{GROUPS} ORDER BY count(*) DESC, sum(size_bytes) DESC, hash_algorithm, content_hash"
        f" LIMIT {WALKED_PAGE_ROWS} OFFSET {page * WALKED_PAGE_ROWS}"
    )
    began = time.perf_counter()
    with database.read() as conn:
        found = len(conn.execute(query).all())
    seconds = time.perf_counter() - began
    if found != WALKED_PAGE_ROWS:
        raise RuntimeError(f"Page {page} by GROUP BY has {found} groups.")
    return seconds


@contextmanager
def _serving(fresh: Fresh, fill: Callable[[Database], None]) -> Iterator[tuple[Client, Database]]:
    """Run a control plane over a database that is filled first."""
    with fresh() as url, tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as state:
        migration.upgrade(url)
        apply_grants(url)
        database = Database(url, Plane.CONTROL)
        fill(database)
        with database.write() as conn:
            conn.execute(text("ANALYZE"))
        environment = {"MEDIAPLANE_STATE": state, "MEDIAPLANE_DATABASE_URL": url}
        locations = Locations.from_environment(environment)
        try:
            with running([control_plane(locations)]), Client(locations.control_address) as client:
                yield client, database
        finally:
            database.close()


def _fill_listings(rows: int, database: Database) -> None:
    """Add so many groups, with few different figures, and so many jobs of all kinds."""
    with database.write() as conn, _indexed_afterwards(conn):
        _add_groups(conn, rows)
        _add_jobs(conn, rows)


@contextmanager
def _indexed_afterwards(conn: Connection) -> Iterator[None]:
    """Leave the indexes for later: row by row, those of ten million take an hour."""
    indexes = [*tables.duplicate_groups.indexes, *tables.jobs.indexes]
    for index in indexes:
        index.drop(conn)
    yield
    for index in indexes:
        index.create(conn)


def _add_groups(conn: Connection, rows: int) -> None:
    series = SERIES[conn.dialect.name].format(count=rows)
    content = CONTENT[conn.dialect.name].format(n="i")
    conn.execute(
        text(
            f"{ADD_GROUPS} SELECT 'blake3', {content}, 2 + i % 7, i % 1000,"
            f" (2 + i % 7) * (i % 1000), (1 + i % 7) * (i % 1000), 0 FROM ({series}) AS n"
            " ORDER BY 2"  # as the key has them: it is filled fastest from its end
        )
    )


def _add_jobs(conn: Connection, rows: int) -> None:
    series, now = SERIES[conn.dialect.name].format(count=rows), NOW_SQL[conn.dialect.name]
    kinds = " ".join(f"WHEN {place} THEN '{kind}'" for place, kind in enumerate(JobKind))
    conn.execute(
        text(
            "INSERT INTO jobs (kind, status, created_at, started_at, finished_at, updated_at)"
            f" SELECT CASE i % {len(JobKind)} {kinds} END, 'completed',"
            f" {now} - i / {JOBS_OF_A_MOMENT}, {now}, {now}, {now} FROM ({series}) AS n"
        )
    )


def _fill_library(database: Database) -> None:
    """Add a library in which there are two files of each content."""
    series = SERIES[database.dialect].format(count=LIBRARY_FILES)
    content = CONTENT[database.dialect]
    path, shared = content.format(n="i"), content.format(n="i / 2")
    with database.write() as conn:
        conn.execute(
            text(
                "INSERT INTO libraries (slug, name, absolute_path, created_at, updated_at)"
                f" SELECT 'photos', 'photos', {content.format(n='1')}, 0, 0"
            )
        )
        conn.execute(
            text(
                "INSERT INTO library_files (library_id, rel_path, size_bytes, mtime_ns,"
                " hash_algorithm, content_hash, created_at, updated_at)"
                f" SELECT 'photos', {path}, 1 + i / 2 % 1000, 1, 'blake3', {shared}, 0, 0"
                f" FROM (SELECT i + 1 AS i FROM ({series}) AS n) AS n"
            )
        )
        conn.execute(
            text(
                f"{ADD_GROUPS} SELECT hash_algorithm, content_hash, file_count, size_bytes,"
                f" total_size_bytes, total_size_bytes - size_bytes, 0 FROM ({GROUPS}) AS g"
            )
        )


if __name__ == "__main__":
    sys.exit(main())
