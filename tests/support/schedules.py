"""A desk from which tests keep schedules: they add them, make them due and have them attended."""

from typing import Any

import pytest
from sqlalchemy import select, text

from control_plane.policy import libraries, planning, runs, schedules
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import jobs
from mediaplane.protocol.values import DEFAULT_TENANT
from tests.support import worker
from tests.support.databases import Databases


class Calendar:
    """The schedules of a database, and the jobs that came of them."""

    def __init__(self, database: Databases) -> None:
        self.database = database
        # Those that every installation begins with would do more than a test asks for.
        self.change("DELETE FROM schedules")

    def library(self, slug: str, **settings: Any) -> str:
        with self.database.control.write() as conn:
            root = b"/media/" + slug.encode()
            libraries.create(conn, DEFAULT_TENANT, slug=slug, name=slug, root=root, **settings)
        return slug

    def add(self, name: str, action: str, *, cron: str = "0 3 * * *", **columns: Any) -> str:
        with self.database.control.write() as conn:
            schedules.create(conn, None, name, {"action": action, "cron": cron, **columns})
        return name

    def get(self, name: str) -> Row:
        with self.database.control.read() as conn:
            return schedules.get(conn, None, name)

    def make_due(self, name: str, late_ms: int = 0) -> int:
        """Let the time of a schedule have come so long ago, and return it."""
        due_at = self.now() - late_ms
        self.change(f"UPDATE schedules SET next_run_at = {due_at} WHERE name = '{name}'")
        return due_at

    def attend(self, retention_days: float = 30) -> None:
        """Look until nothing moves."""
        while runs.attend(self.database.control, retention_days):
            planning.resume(self.database.control)

    def run(self, name: str) -> None:
        with self.database.control.write() as conn:
            runs.begin(conn, None, name, 30)

    def work(self, step: str = "complete", **values: Any) -> Row:
        """Do the job that waits."""
        job = worker.claim(self.database.data)
        assert worker.finish(self.database.data, job, step, **values)
        return job

    def jobs(self) -> list[tuple[str, str | None, str]]:
        """Kind, library and status of all jobs, oldest first."""
        with self.database.control.read() as conn:
            query = select(jobs.c.kind, jobs.c.library_id, jobs.c.status).order_by(jobs.c.id)
            return [(row.kind, row.library_id, row.status) for row in conn.execute(query)]

    def now(self) -> int:
        with self.database.control.read() as conn:
            return database_time(conn)

    def change(self, sql: str) -> None:
        with self.database.control.write() as conn:
            conn.execute(text(sql))


@pytest.fixture
def calendar(database: Databases) -> Calendar:
    return Calendar(database)
