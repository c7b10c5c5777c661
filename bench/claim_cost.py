"""Promises: what has ended or is not yet due costs a claim next to nothing; one heartbeat of all
leases is one statement."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, event, text

from bench.databases import Fresh
from bench.verdicts import Verdicts, row
from data_plane.leases import Leases
from data_plane.queue import Queue
from data_plane.settings import DataSettings
from mediaplane.protocol import gate, migration
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobKind, Plane
from mediaplane.protocol.write_paths import paths_of

BATCH = 100
BATCHES = 50
LIMIT = 1.2
LEASE_SECONDS = 60.0
DAY_MS = 86_400_000

SERIES = {
    "postgresql": "SELECT i FROM generate_series(1, {count}) AS series(i)",
    "sqlite": (
        "WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series"
        " WHERE i < {count}) SELECT i FROM series"
    ),
}


def measure(fresh: Fresh, history: int, verdicts: Verdicts) -> None:
    """Claim and finish on an empty and on a filled database in turn."""
    without, beside = [], []
    with (
        fresh() as empty_url,
        fresh() as full_url,
        _open(empty_url) as empty,
        _open(full_url) as full,
    ):
        _add_history(full_url, history)
        for _ in range(BATCHES):
            without.append(empty.seconds())
            beside.append(full.seconds())
        statements = full.heartbeat_statements()
    # The first ones prepare statements and fill caches.
    low = row("without them", [seconds * 1000 for seconds in without[5:]], "ms")
    high = row("beside them", [seconds * 1000 for seconds in beside[5:]], "ms")
    verdicts.at_most("claim + finish beside them, times without", high / low, LIMIT)
    verdicts.at_most(f"statements of a heartbeat of {BATCH} leases", statements, 1)


class Claims:
    """One worker's claims, by hand."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._leases = Leases("bench")
        self._queue = Queue(database, self._leases, DataSettings(lease_seconds=LEASE_SECONDS))
        # As a worker that has seen how quick these jobs are, and takes many at once.
        self._queue.note_pace(JobKind.PROBE, 0.0)

    def seconds(self) -> float:
        """Return how long the claim of a batch and its end take."""
        began = time.perf_counter()
        held = self._claim()
        with self._database.write(*paths_of(JOBS, "complete")) as conn:
            ended = gate.finish(conn, JOBS, "complete", [(one, {}) for one in held])
        seconds = time.perf_counter() - began
        if len(ended) != BATCH:
            raise RuntimeError(f"{len(ended)} of {BATCH} jobs were finished.")
        return seconds

    def heartbeat_statements(self) -> int:
        """Return how many statements extend the leases of a whole batch."""
        leases = {one.row_id: one.epoch for one in self._claim()}
        seen: list[str] = []

        def note(_conn: Connection, _cursor: Any, statement: str, *_: Any) -> None:
            if not statement.startswith("BEGIN"):
                seen.append(statement)

        event.listen(self._database.engine, "before_cursor_execute", note)
        with self._database.write(*paths_of(JOBS, "heartbeat")) as conn:
            kept = gate.heartbeat(conn, JOBS, self._leases.worker_id, leases, LEASE_SECONDS)
        event.remove(self._database.engine, "before_cursor_execute", note)
        if len(kept) != BATCH:
            raise RuntimeError(f"{len(kept)} of {BATCH} leases were extended.")
        return len(seen)

    def _claim(self) -> list[Lessee]:
        choice = self._queue.look(0)
        assert choice is not None
        rows = self._queue.claim(replace(choice, limit=BATCH))
        return [Lessee(row["id"], self._leases.worker_id, row["lease_epoch"]) for row in rows]


@contextmanager
def _open(url: str) -> Iterator[Claims]:
    migration.upgrade(url)
    apply_grants(url)
    _insert(url, "status", "'pending'", (BATCHES + 1) * BATCH)
    database = Database(url, Plane.DATA)
    try:
        yield Claims(database)
    finally:
        database.close()


def _add_history(url: str, count: int) -> None:
    _insert(url, "status, started_at, finished_at", "'completed', {now}, {now}", count)
    _insert(url, "status, retry_after", f"'retryable', {{now}} + {DAY_MS} + i", count // 10)


def _insert(url: str, columns: str, values: str, count: int) -> None:
    """Add probe jobs that differ from others in some columns."""
    database = Database(url, Plane.CONTROL)
    now = NOW_SQL[database.dialect]
    series = SERIES[database.dialect].format(count=count)
    statement = (
        f"INSERT INTO jobs (kind, created_at, updated_at, {columns})"
        f" SELECT 'probe', {now}, {now}, {values.format(now=now)} FROM ({series}) AS n"
    )
    with database.write() as conn:
        conn.execute(text(statement))
        conn.execute(text("ANALYZE"))
    database.close()
