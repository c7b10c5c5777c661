"""The claim stays cheap: with a long history both databases still find work by index."""

from typing import Any

from sqlalchemy import Connection, event, text

from data_plane.media import CLAIMABLE_THUMBNAIL
from mediaplane.protocol import gate
from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import JOBS, MACHINES, THUMBNAILS
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import APPEND_EVENT
from tests.support.databases import Databases
from tests.support.files import add_files, add_library

FINISHED, MADE, PENDING = 100_000, 5_000, 1_000

NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS"
    " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)",
    "postgresql": "WITH numbers(n) AS (SELECT generate_series(1, :last))",
}
# What a runner asks for.
BY_KIND = "kind = 'delete'"
# As the data plane asks for them.
CHOICES = {
    "jobs.claim": BY_KIND,
    "thumbnails.claim": CLAIMABLE_THUMBNAIL.replace(":type", "'image'"),
    "assets.claim_extract": "type = 'image' AND library_id = 'holidays'",
}


def fill(conn: Connection) -> None:
    for status, last in (("completed", FINISHED), ("pending", PENDING)):
        conn.execute(
            text(
                "INSERT INTO jobs (kind, status, priority, created_at, updated_at) "
                f"{NUMBERS[conn.dialect.name]}"
                f" SELECT 'delete', '{status}', n % 7, n, n FROM numbers"
            ),
            {"last": last},
        )


def plan(database: Databases, machine: Machine, step: Step, where: str = "true") -> str:
    """How the database carries out the very statement that the gate sends."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        sent.append((sql, parameters))

    engine = database.data.engine
    with database.data.write(step.path, APPEND_EVENT) as conn:
        event.listen(engine, "before_cursor_execute", note)
        if step.lease is Lease.TAKE:
            gate.claim(conn, machine, step.name, "worker", 60, 10, where)
        else:
            gate.take_all(conn, machine, step.name, where)
        event.remove(engine, "before_cursor_execute", note)
        sql, parameters = next(pair for pair in sent if pair[0].startswith(("UPDATE", "WITH")))
        explain = "EXPLAIN QUERY PLAN" if database.data.dialect == "sqlite" else "EXPLAIN"
        lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
        return "\n".join(str(line[-1]) for line in lines)


def test_a_claim_among_a_hundred_thousand_finished_jobs_uses_its_index(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        fill(conn)
    with database.control.write() as conn:
        conn.execute(text("ANALYZE jobs"))
    found = plan(database, JOBS, JOBS.step("claim"), BY_KIND)
    assert "ix_jobs_claim" in found
    # The order comes from the index: nothing is sorted, no other row of the table is looked at.
    assert "Sort" not in found
    assert "TEMP B-TREE" not in found
    assert "Seq Scan" not in found
    assert "SCAN jobs" not in found.replace("SCAN jobs USING INDEX", "")


def test_a_claim_among_thousands_of_made_thumbnails_uses_its_index(database: Databases) -> None:
    with database.control.write() as conn:
        types = [{"media_type": one} for one in ("image", "video")]
        made = add_files(conn, add_library(conn, "holidays"), types * (MADE // 2))[-PENDING]
        conn.execute(
            text(
                "INSERT INTO thumbnails (file_id, file_version, group_key, media_type, format,"
                " size_px, status, created_at, updated_at) SELECT id, '1', 'wall', media_type,"
                f" 'jpeg', 320, CASE WHEN id < {made} THEN 'ready' ELSE 'pending' END, id, id"
                " FROM library_files ORDER BY id"
            )
        )
    with database.control.write() as conn:
        conn.execute(text("ANALYZE"))
    step, where = THUMBNAILS.step("claim"), CHOICES["thumbnails.claim"]
    found = plan(database, THUMBNAILS, step, where)
    assert "ix_thumbnails_claim" in found
    assert "Sort" not in found
    assert "TEMP B-TREE" not in found


def test_every_claim_and_every_recovery_has_an_index_that_serves_it(database: Databases) -> None:
    if database.data.dialect == "postgresql":
        with database.control.write() as conn:
            # Empty tables are read whole unless that is ruled out.
            name = conn.execute(text("SELECT current_database()")).scalar()
            conn.execute(text(f"ALTER DATABASE {name} SET enable_seqscan = off"))
    steps = [
        (machine, step)
        for machine in MACHINES
        for step in machine.steps
        if step.plane is Plane.DATA and step.lease in (Lease.TAKE, Lease.REAP)
    ]
    plans = {
        f"{machine.name}.{step.name}": plan(
            database, machine, step, CHOICES.get(f"{machine.name}.{step.name}", "true")
        )
        for machine, step in steps
    }
    unserved = {name: found for name, found in plans.items() if "ix_" not in found}
    assert unserved == {}
